import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../src/core/events.ts';
import {
  IMPLICIT,
  instant,
  leaseIdOf,
  memberId,
  type InstantMs,
  type LeaseId,
} from '../../src/core/words/ids.ts';
import { checkInvariants } from '../../src/core/invariants.ts';
import type { BoundRow } from '../../src/core/parts/bound.ts';
import type { LeaseOutcome } from '../../src/core/words/outcome.ts';
import type { Waiter } from '../../src/core/parts/queue.ts';
import { recover, emptyState } from '../../src/core/recover.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import { emptyControls } from '../../src/core/member.ts';
import { boundSlotsOf } from '../../src/core/leases.ts';
import type { GroupState, ActiveLease } from '../../src/core/state.ts';
import { isOfNewer, type Claim } from '../../src/core/orphaned.ts';
import { slotsHeld } from '../../src/core/stats.ts';
import { confirmWrite, takeWrite } from '../../src/core/writes.ts';
import { emptyTotals } from '../../src/core/parts/totals.ts';
import { nextWakeAt, step } from '../../src/core/step.ts';
import { SERVED } from '../../src/core/words/signal.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import { answersOf, SOMEBODY, someTicket, START } from '../support/core-builders.ts';
import { PLAIN_ASK, type Action, type ActionsCallNames } from './actions.ts';
import { AskLedger } from './ask-ledger.ts';
import { Disk } from './disk.ts';
import { outlookOf } from '../../src/core/outlook.ts';
import { waitersAhead } from '../../src/core/estimate.ts';
import { faceOf, placeOf, rejectionsOf } from './faces.ts';
import { NaiveGroup } from './naive-group.ts';
import { RULES } from './naive-scopes.ts';
import { checkLearned, decisiveLessons } from './learned-checks.ts';

/** When a world ticks: after each jump in time; only when the group asks for it; or far more often. */
export type Ticking = 'after_jumps' | 'at_wakes' | 'around_dues';

export interface Recorded {
  readonly event: GroupEvent;
  readonly at: InstantMs;
}

interface ModelWorldIssued {
  ticket: Ticket;
  /** The names in its body. */
  readonly names: Pick<ActionsCallNames, 'model' | 'tier'>;
  readonly mayAskLater: boolean;
  attempt: number;
}

/** Tenants with their own callers. */
const CALLERS: ReadonlySet<string> = new Set(['cid', 'mal']);

const NO_NAMES = { model: null, tier: null, credential: null };

/** A lease as its holder knows it. */
interface ModelWorldFacts {
  readonly attachments: number[];
  readonly grantedAt: InstantMs;
  readonly nested: ActiveLease['nested'];
  readonly heirOf: ActiveLease['heirOf'];
  readonly named: ActiveLease['named'];
}

/** A write that nobody waits for is issued within this. */
const WRITE_DELAY_MS = 50;

/** The parts of a row that not every row has, but for members of which there is nothing to tell. */
function partsOf({
  members,
  grantedAt,
  mayOutlive,
}: BoundRow): Pick<BoundRow, 'members' | 'grantedAt' | 'mayOutlive'> {
  const outlive = mayOutlive === undefined ? {} : { mayOutlive };
  if (members === undefined || grantedAt === undefined) return outlive;
  const reported = Object.entries(members).filter(([, { mark }]) => mark > 0);
  return { members: Object.fromEntries(reported), grantedAt, ...outlive };
}

const NO_VIOLATIONS = emptyTotals().violations;

/** Attachments of one instance lie below those of the next. */
const ATTACHMENTS_PER_INSTANCE = 1_000_000;

/**
 * The core with everything around it that it needs to live: a clock, a disk, callers that are parked, and
 * beside it the naive group that it must agree with. Every step is checked.
 */
export class World {
  readonly naive: NaiveGroup;
  now: InstantMs = START;
  /** Every answer, with its time. */
  readonly log: string[] = [];
  /** Every event, with its time. */
  readonly events: Recorded[] = [];
  /** Every effect of every step, as text. */
  readonly history: string[] = [];
  /** The leases and slots that each new instance found on disk, as text. */
  readonly found: string[] = [];
  readonly #ticking: Ticking;
  readonly #disk = new Disk();
  /** The write that the answer with a lease left behind, as the last number issued then. */
  readonly #leftBehind = new Map<LeaseId, number>();
  #writeAt = Infinity;
  readonly #asks = new AskLedger();
  readonly #issued: ModelWorldIssued[] = [];
  readonly #known = new Map<LeaseId, ModelWorldFacts>();
  #state: GroupState;
  #instances = 1;
  /** The group goes by the members of the last write that was sent: what is on disk tells of each. */
  #isMarkedEach = false;

  constructor(settings: GroupSettings, ticking: Ticking, isStored = true, rules = RULES) {
    this.#ticking = ticking;
    this.#state = emptyState(settings, 1, emptyControls(START), isStored);
    this.naive = new NaiveGroup(settings, isStored, START, rules);
  }

  run(action: Action): void {
    if (action.kind === 'advance') return this.#advanceTo(this.now + action.ms);
    if (action.kind === 'reset') return this.#reset(action.lost);
    if (action.kind === 'write') return this.#write();
    if (action.kind === 'crowd') {
      for (let index = 0; index < action.count; index += 1) this.#step(this.#newAsk(action.ask));
      return;
    }
    if (action.kind === 'make_up') return this.#makeUp(action);
    if (action.kind === 'rename') return this.#rename(action.pick);
    if (action.kind === 'lag') {
      this.#disk.lagMs = action.ms;
      return;
    }
    if (action.kind === 'held_up') {
      this.#moveTo(this.now + action.ms);
      return this.#step({ kind: 'held_up', lostMs: action.ms });
    }
    if (action.kind === 'advance_to_due') {
      const due = this.#nextChangeAt();
      if (due !== Infinity) this.#advanceTo(Math.max(this.now, due + action.offsetMs));
      return;
    }
    // Asking to resume is an ask of its own: what is due for the parked one comes first.
    if (action.kind === 'resume') this.#step({ kind: 'tick' });
    const event = this.#eventOf(action);
    if (event.kind === 'resume' && this.#refuses(event.claim)) return;
    this.#step(event);
    if (event.kind === 'report' && action.kind === 'answer' && action.end !== null) {
      const { leaseId } = event;
      this.#step({ kind: 'release', leaseId, outcome: action.end, settlement: null, isSole: true });
    }
  }

  /** Calls with made-up names come one after the other, and each that is granted is refused. */
  #makeUp({ tenant, of, count, signal }: Extract<Action, { kind: 'make_up' }>): void {
    for (let index = 0; index < count; index += 1) {
      const made = `${of}-${this.#issued.length}`;
      const names = { model: 'pro', tier: null, credential: null, [of]: made };
      this.#step(this.#newAsk({ ...PLAIN_ASK, tenant, wait: false, names }));
      const ticketId = this.#issued.at(-1)?.ticket.id;
      const lease = this.naive.leases().find((each) => each.ticketId === ticketId);
      if (lease === undefined) continue;
      const scope = of === 'credential' ? 'credential' : 'model';
      const refusal = { ...SERVED, ...signal, scope } as const;
      this.#step({ kind: 'report', leaseId: lease.id, signal: refusal, isRepeat: false });
      const end = { outcome: 'failed', settlement: null, isSole: true } as const;
      this.#step({ kind: 'release', leaseId: lease.id, ...end });
    }
  }

  /** A member changes its id and keeps its key. */
  #rename(pick: number): void {
    const { members } = this.naive.settings;
    const renamed = members[pick % members.length];
    if (renamed === undefined) return;
    const [first = '', ...rest] = renamed.id;
    const id = memberId([first === 'm' ? 'n' : 'm', ...rest].join(''));
    const others = members.map((each) => (each === renamed ? { ...each, id } : each));
    this.#step({ kind: 'reconfigure', settings: { ...this.naive.settings, members: others } });
  }

  /** Lets every call end in order and checks that nothing stays behind. */
  windUp(): void {
    this.#open({ slotsMax: Infinity, slotsMaxEach: Infinity });
    this.#idle(() => undefined);
  }

  /** Nobody comes any more, and whoever holds a slot lets go: everybody must have an answer by then. */
  drain(): void {
    this.#open({ slotsMax: Math.max(1, this.naive.settings.slotsMax) });
    this.#idle(() => this.#endOf(0, 'success'));
  }

  #open(changes: Partial<GroupSettings>): void {
    const settings = { ...this.naive.settings, paused: false, ...changes };
    this.#step({ kind: 'reconfigure', settings });
  }

  /** Does what there is to do, and else lets time pass, until nothing is left. */
  #idle(work: () => GroupEvent | undefined): void {
    for (let steps = 0; ; steps += 1) {
      assert.ok(steps < 1_000, 'the group does not come to rest');
      const event = work();
      if (event === undefined && this.naive.nextDueAt(this.now) === Infinity) break;
      const wakeAt = nextWakeAt(this.#state, this.now);
      assert.notEqual(wakeAt, Infinity, 'the group sleeps while something is due');
      if (event === undefined) this.#moveTo(wakeAt);
      this.#step(event ?? { kind: 'tick' });
    }
    this.#asks.assertAllAnswered();
    assert.equal(this.#state.leases.size, 0, 'a lease stayed behind');
    assert.equal(this.#state.queue.byTicket.size, 0, 'a waiter stayed behind');
    const tenants = [...this.#state.accounts.tenants.values()];
    assert.ok(
      tenants.every(({ slots, waiting }) => slots + waiting === 0),
      'an account drifted',
    );
    assert.equal(this.#disk.mark, 0, 'something is marked on disk');
    assert.equal(slotsHeld(this.#state), 0, 'slots stayed unclaimed');
  }

  #eventOf(
    action: Exclude<
      Action,
      {
        kind:
          | ('advance' | 'advance_to_due' | 'held_up' | 'reset' | 'write' | 'lag')
          | ('crowd' | 'make_up' | 'rename');
      }
    >,
  ): GroupEvent {
    if (action.kind === 'ask') return this.#newAsk(action);
    if (action.kind === 'move' || action.kind === 'pass_over') return action;
    if (action.kind === 'relearn') return { kind: 'relearn' };
    if (action.kind === 'answer') return this.#answerTo(action) ?? { kind: 'tick' };
    if (action.kind === 'end') return this.#endOf(action.pick, action.outcome) ?? { kind: 'tick' };
    if (action.kind === 'reconfigure') {
      return { kind: 'reconfigure', settings: { ...this.naive.settings, ...action.changes } };
    }
    const issued = this.#picked(action.pick);
    const { ticket, attempt, mayAskLater } = issued;
    const leaseId = leaseIdOf(ticket.id, attempt);
    switch (action.kind) {
      case 'ask_again': {
        const { sliceMs, isAnew, isTry = ticket.isTry } = action;
        const asked = { ...ticket, isTry };
        return { kind: 'acquire', ticket: asked, leaseId, sliceMs, mayAskLater, isAnew };
      }
      case 'next_attempt': {
        const next = leaseIdOf(ticket.id, ++issued.attempt);
        return { kind: 'acquire', ticket, leaseId: next, sliceMs: 30_000, mayAskLater };
      }
      case 'promote': {
        const { lane, toFront } = action;
        return { kind: 'promote', ticketId: ticket.id, lane, toFront };
      }
      case 'release': {
        const { outcome, told: reported } = action;
        const claim =
          reported === null ? { isSole: true } : { claim: this.#claimOf(issued, reported) };
        return { kind: 'release', leaseId, outcome, settlement: null, ...claim };
      }
      case 'detach': {
        const attachment = this.#known.get(leaseId)?.attachments.at(-1 - action.back) ?? -1;
        return { kind: 'detach', leaseId, attachment };
      }
      case 'cancel':
        return { kind: 'cancel', ticketId: ticket.id };
      case 'resume':
        return { kind: 'resume', claim: this.#claimOf(issued, action) };
      case 'renew': {
        const { isById } = ticket;
        const told = { back: 0, hasLapsed: false };
        const claim = isById === true ? { claim: this.#claimOf(issued, told) } : {};
        return { kind: 'renew', leaseId, ...claim };
      }
      case 'confirm':
      case 'revoke':
        return { kind: action.kind, leaseId };
    }
  }

  /** A lease as its holder tells of it. */
  #claimOf(
    { ticket, attempt }: ModelWorldIssued,
    { back, hasLapsed }: Pick<Extract<Action, { kind: 'resume' }>, 'back' | 'hasLapsed'>,
  ): Claim {
    const { id: ticketId, holder, lane, slots, isById = false } = ticket;
    const leaseId = leaseIdOf(ticketId, attempt);
    const {
      attachments = [],
      grantedAt = this.now,
      nested = null,
      heirOf = [],
      named = IMPLICIT,
    } = this.#known.get(leaseId) ?? {};
    const newer = this.#state.nextAttachment + 3;
    const attachment = back === 'newer' ? newer : (attachments.at(-1 - (back ?? Infinity)) ?? null);
    const heldMs = this.now - grantedAt;
    const told = { ticketId, holder, lane, slots, heldMs, nested, heirOf, isById, reserved: null };
    const member = named === IMPLICIT ? {} : { member: named };
    return { leaseId, attachment, hasLapsed, ...told, ...member };
  }

  /** An instance that another one has replaced takes nobody's lease up. */
  #refuses(claim: Claim): boolean {
    const isNewer = isOfNewer(this.#state, claim);
    assert.equal(isNewer, this.naive.isOfNewer(claim.attachment), 'whose lease it is');
    return isNewer;
  }

  #newAsk(action: Extract<Action, { kind: 'ask' }>): GroupEvent {
    const { ageMs, patienceMs, timeoutMs, sliceMs, agentAgeMs, parent } = action;
    const { tenant, agent, lane, slots, wait, manner, mayAskLater, isById = false } = action;
    const { excluded = [], names = NO_NAMES, isUnread = false, session = null } = action;
    const { model, tier, credential } = names;
    const read = { model, ...(tier !== null && { tier }) };
    const parents = parent === null ? [] : [this.#picked(parent)];
    const ticket = someTicket(`t${this.#issued.length}`, instant(this.now - ageMs), {
      holder: {
        ...SOMEBODY,
        tenant,
        agent,
        caller: CALLERS.has(tenant) ? tenant : SOMEBODY.caller,
        ...(isUnread ? { isUnread } : read),
        ...(credential !== null && { credential }),
        ...(session !== null && agent === null && { session }),
      },
      lane,
      slots,
      wait,
      ...manner,
      isById,
      ...(excluded.length > 0 && { excluded: excluded.map(memberId) }),
      agentStartedAt: agentAgeMs === null ? null : instant(this.now - agentAgeMs),
      deadlineAt: patienceMs === null ? null : instant(this.now + patienceMs),
      ...(timeoutMs === null ? {} : { timeoutMs }),
      parents: parents.map((each) => leaseIdOf(each.ticket.id, each.attempt)),
    });
    this.#issued.push({ ticket, mayAskLater, attempt: 1, names: { model, tier } });
    return { kind: 'acquire', ticket, leaseId: leaseIdOf(ticket.id, 1), sliceMs, mayAskLater };
  }

  #endOf(pick: number, outcome: LeaseOutcome): GroupEvent | undefined {
    const held = this.naive.leases().filter(({ phase }) => phase !== 'cooling');
    const lease = held[pick % held.length];
    return lease === undefined
      ? undefined
      : { kind: 'release', leaseId: lease.id, outcome, settlement: null, isSole: true };
  }

  /** The upstream answers one of the calls that run, the oldest first. */
  #answerTo({
    pick,
    signal,
    isRepeat,
    told,
  }: Extract<Action, { kind: 'answer' }>): GroupEvent | undefined {
    const held =
      told === null ? this.naive.leases().filter(({ phase }) => phase !== 'cooling') : [];
    const lease = held[pick % held.length];
    const issued =
      told === null
        ? this.#issued.find(({ ticket }) => ticket.id === lease?.ticketId)
        : this.#picked(pick);
    if (issued === undefined) return undefined;
    const { ticket, attempt, names } = issued;
    // A queued call has reached no upstream.
    const isWaiting = this.naive.waiters().some(({ ticketId }) => ticketId === ticket.id);
    if (told !== null && isWaiting) return undefined;
    const leaseId = lease?.id ?? leaseIdOf(ticket.id, attempt);
    const claim = told === null ? {} : { claim: this.#claimOf(issued, told) };
    // The body of a refused call was read for its answer.
    const isRead = signal.kind !== 'served';
    const read = { ...SERVED, ...signal, ...(isRead && { names }) };
    return { kind: 'report', leaseId, signal: read, isRepeat, ...claim };
  }

  #picked(pick: number): ModelWorldIssued {
    const found = this.#issued.at(-1 - pick);
    if (found !== undefined && !this.naive.mayBeForgotten(found.ticket.id, this.now)) return found;
    const ticket = someTicket(`stranger${this.#issued.length}`, this.now);
    const stranger = { ticket, mayAskLater: false, attempt: 1, names: NO_NAMES };
    this.#issued.unshift(stranger);
    return stranger;
  }

  #advanceTo(target: number): void {
    for (let at = this.#nextTick(target); at <= target; at = this.#nextTick(target)) {
      this.#moveTo(at);
      this.#step({ kind: 'tick' });
    }
    this.#moveTo(target);
  }

  /** The next instant at which time alone changes something, or may. */
  #nextChangeAt(): number {
    return Math.min(this.naive.nextDueAt(this.now), this.naive.changesAt(this.now));
  }

  /** When to tick next on the way to `target`; Infinity: not before it. */
  #nextTick(target: number): number {
    if (this.#ticking === 'after_jumps') return this.now < target ? target : Infinity;
    if (this.#ticking === 'at_wakes') return Math.max(this.now, nextWakeAt(this.#state, this.now));
    const due = this.#nextChangeAt();
    if (due <= this.now) return this.now;
    if (this.now >= target) return Infinity;
    // Straight to the millisecond before the next due instant, and from there in single ones.
    return Math.min(target, Math.max(this.now + 1, due - 1));
  }

  /** Lets time pass, and what is written and arrives in it. */
  #moveTo(at: number): void {
    for (;;) {
      const next = Math.min(this.#writeAt, this.#disk.nextArrivalAt);
      if (next > at) break;
      this.now = instant(Math.max(this.now, next));
      if (this.#disk.nextArrivalAt <= next) this.#arrive();
      else this.#write();
    }
    this.now = instant(Math.max(this.now, at));
  }

  /** Issues a write: both groups must agree on what it says. */
  #write(): void {
    this.#writeAt = Infinity;
    if (!this.#state.bound.isStored) return;
    const write = takeWrite(this.#state, this.now);
    const { mark, held, since, next, ended, lapsed, granted, heirs, waiters } = write.bound;
    const listed = { ended: ended.toSorted(), lapsed, granted, heirs };
    const row = { mark, held, since, next, ...listed, waiters, ...partsOf(write.bound) };
    const expected = this.naive.issue(write.isInRing, this.now);
    assert.deepEqual(row, { ...expected, ended: expected.ended.toSorted() }, 'the row');
    if (write.kept !== null) this.naive.noteWritten(write.bound.seq);
    this.#disk.send(write, this.now);
    this.#isMarkedEach = write.bound.members !== undefined;
    if (this.#disk.lagMs === 0) while (this.#disk.nextArrivalAt <= this.now) this.#arrive();
  }

  #arrive(): void {
    const seq = this.#disk.arrive();
    if (seq === null) return;
    confirmWrite(this.#state, seq);
    this.naive.confirm();
  }

  /** Writes what a step asks for; tells its grants which write they leave behind. */
  #perform(effects: readonly Effect[], told: string): void {
    const grants = effects.filter((effect) => effect.kind === 'grant');
    const settled = grants.map(({ isCovered }) => isCovered);
    assert.deepEqual(settled, this.naive.settled, `${told}: which grants are settled`);
    const writes = effects.filter((effect) => effect.kind === 'write');
    const isAhead = writes.some((effect) => effect.isAhead);
    assert.equal(isAhead, this.naive.wantsWrite(this.now), `${told}: whether to write ahead`);
    if (isAhead || settled.includes(false)) this.#write();
    else if (writes.length > 0) this.#writeAt = Math.min(this.#writeAt, this.now + WRITE_DELAY_MS);
    const { seq } = this.#state.bound;
    for (const { lease, isCovered } of grants) {
      if (!isCovered || !this.#leftBehind.has(lease.id)) {
        this.#leftBehind.set(lease.id, isCovered ? 0 : seq);
      }
    }
  }

  #step(event: GroupEvent): void {
    const leasesBefore = new Set(this.#state.leases.keys());
    // Who asks for one of these had it from the instance before.
    for (const id of this.#state.bound.grantedBefore.keys()) leasesBefore.add(id);
    this.events.push({ event, at: this.now });
    if (event.kind === 'reconfigure') this.#isMarkedEach = false;
    this.#asks.expect(event, this.#state);
    const told = `at ${this.now - START}, ${event.kind}`;
    // A served call moves a ceiling by fractions, and reports of holders are not stored until they are confirmed.
    const signal = event.kind === 'report' ? event.signal : SERVED;
    const isRefusal = signal.kind !== 'served' && signal.reportedBy === undefined;
    const before = isRefusal ? decisiveLessons(this.#state) : null;
    const effects = step(this.#state, event, this.now);
    const isWritten = before === null || this.#state.isControlsDirty;
    assert.ok(
      isWritten || decisiveLessons(this.#state) === before,
      `${told}: lessons stay unwritten`,
    );
    const answers = answersOf(effects);
    assert.deepEqual(answers, this.naive.handle(event, this.now), told);
    assert.deepEqual(rejectionsOf(effects), this.naive.rejections, `${told}: what rejections say`);
    for (const answer of answers) this.log.push(`${this.now - START} ${answer}`);
    this.history.push(JSON.stringify([this.now, effects]));
    this.#noteKnown(effects);
    this.#perform(effects, told);
    this.#asks.settle(effects, this.#state);
    const claimed = 'claim' in event ? event.claim?.leaseId : null;
    const fresh = [...this.#state.leases.values()].filter(
      ({ id, slots }) => !leasesBefore.has(id) && id !== claimed && slots > 0,
    );
    this.#check(told, fresh);
    for (const answer of answers) {
      const [, id] = /^unread (.*)$/.exec(answer) ?? [];
      if (id !== undefined) this.#askRead(id, event);
    }
    if (event.kind === 'tick') {
      assert.ok(nextWakeAt(this.#state, this.now) > this.now, `${told}: it would spin`);
    }
  }

  /** The caller of a call that was not read reads its body, and asks again. */
  #askRead(id: string, event: GroupEvent): void {
    const issued = this.#issued.find(({ ticket }) => ticket.id === id);
    assert.ok(issued !== undefined);
    const { isUnread: _, ...holder } = issued.ticket.holder;
    const { model, tier } = issued.names;
    issued.ticket = {
      ...issued.ticket,
      holder: { ...holder, model, ...(tier !== null && { tier }) },
    };
    const { ticket, attempt, mayAskLater } = issued;
    const isOwn = event.kind === 'acquire' && event.ticket.id === id;
    const leaseId = leaseIdOf(ticket.id, attempt);
    const ask = { kind: 'acquire', leaseId, sliceMs: 30_000, mayAskLater } as const;
    this.#step({ ...(isOwn ? event : ask), ticket });
  }

  #reset(lost: number): void {
    const { settings, bound } = this.#state;
    this.#disk.lose(lost);
    this.#writeAt = Infinity;
    this.#checkMark();
    const stored = this.#disk.read();
    const firstAttachment = ATTACHMENTS_PER_INSTANCE * this.#instances++;
    const { isStored } = bound;
    this.#state = recover(settings, stored, firstAttachment, isStored, this.now);
    const ended = stored.bound?.ended ?? [];
    const { mark, held, granted, lapsed, heirs } = stored.bound ?? {};
    this.found.push(JSON.stringify([mark, held, granted, ended, lapsed, heirs]));
    const { learnedBy } = this.#disk;
    const { now, naive } = this;
    naive.recover(stored.bound, ended, stored.untold, learnedBy, firstAttachment, now);
    this.#leftBehind.clear();
    this.#asks.clear();
    this.#check(`at ${this.now - START}, reset`, []);
    // Whatever was handed out counts from now on, and an older instance cannot write any more.
    if (slotsHeld(this.#state) > 0) this.#write();
  }

  /** Checks that what anybody has heard of is marked on disk. */
  #checkMark(): void {
    const { bound, leases, unclaimed, members } = this.#state;
    if (!bound.isStored) return;
    let left = unclaimed.slots;
    const leftAt = new Map<string, number>();
    for (const { id, unclaimed: slots } of members.values()) leftAt.set(id, slots);
    for (const lease of leases.values()) {
      if ((this.#leftBehind.get(lease.id) ?? 0) > this.#disk.seq) continue;
      left += boundSlotsOf(lease);
      leftAt.set(lease.member, (leftAt.get(lease.member) ?? 0) + boundSlotsOf(lease));
    }
    assert.ok(left <= this.#disk.mark, `${left} slots are held, ${this.#disk.mark} marked`);
    if (!this.#isMarkedEach || this.#disk.seq < bound.seq) return;
    for (const [member, slots] of leftAt) {
      // What was handed out while the group named no members may be at any of them.
      const mark = this.#disk.markAt(member) + (member === '' ? 0 : this.#disk.markAt(''));
      assert.ok(slots <= mark, `${slots} slots are held at ${member}, ${mark} marked`);
    }
  }

  #noteKnown(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'grant') continue;
      const { id, attachment, grantedAt, nested, heirOf, named } = effect.lease;
      const { attachments, ...known } = this.#known.get(id) ?? {
        attachments: [],
        grantedAt,
        nested,
        heirOf,
        named,
      };
      assert.ok(attachment > (attachments.at(-1) ?? 0), `${id} got no larger attachment`);
      this.#known.set(id, { ...known, named, attachments: [...attachments, attachment] });
    }
  }

  /** Checks what must hold after every step, with the leases that it granted. */
  #check(told: string, fresh: readonly ActiveLease[]): void {
    const { leases, queue, settings, accounts, slotsInUse } = this.#state;
    assert.deepEqual(checkInvariants(this.#state, this.now), [], told);
    assert.equal(slotsInUse, this.naive.slotsInUse(), told);
    assert.equal(this.#state.unclaimed.slots, this.naive.slotsOrphaned(), `${told}: unclaimed`);
    assert.equal(slotsHeld(this.#state), this.naive.slotsHeld(), `${told}: held`);
    assert.deepEqual(this.#state.totals.violations, NO_VIOLATIONS, told);
    if (fresh.length > 0 && !settings.isDryRun) {
      assert.ok(slotsInUse <= settings.slotsMax, `${told}: granted above the limit`);
      assert.ok(!settings.paused, `${told}: granted while paused`);
      for (const { holder } of fresh) {
        const { slots = 0 } = accounts.tenants.get(holder.tenant) ?? {};
        assert.ok(slots <= settings.slotsMaxEach, `${told}: granted above the tenant's cap`);
      }
    }
    assert.deepEqual([...leases.values()].map(faceOf), this.naive.leases().map(faceOf), told);
    const placed = [...leases.values()].map(({ id, member, named }) => [id, member, named]);
    assert.deepEqual(placed, this.naive.placed(), `${told}: where calls count`);
    const unclaimedAt = [...this.#state.members.values()].filter((each) => each.unclaimed > 0);
    for (const { id, unclaimed } of unclaimedAt) {
      assert.equal(unclaimed, this.naive.places.orphaned(id), `${told}: unclaimed at ${id}`);
    }
    for (const { key, shares } of accounts.tenants.values()) {
      const { high, normal, low } = shares;
      const had = { high: high.service, normal: normal.service, low: low.service };
      assert.deepEqual(had, this.naive.services(key), `${told}: what ${key} has had`);
    }
    checkLearned(this.#state, this.naive, told);
    const waiters = [...queue.byTicket.values()];
    assert.deepEqual(waiters.map(placeOf), this.naive.waiters().map(placeOf), told);
    this.#checkOutlooks(waiters, told);
    const wakeAt = nextWakeAt(this.#state, this.now);
    assert.ok(wakeAt <= this.naive.nextDueAt(this.now), `${told}: it would sleep too long`);
  }

  /** Checks why some of the waiters wait, and for how long they will. Of all of them it would take minutes. */
  #checkOutlooks(waiters: readonly Waiter[], told: string): void {
    const apart = waiters.length <= 3 ? 1 : Math.ceil(waiters.length / 2);
    for (let index = 0; index < waiters.length; index += apart) {
      const waiter = waiters[index];
      if (waiter === undefined) return;
      const ahead = waitersAhead(this.#state, waiter);
      const { cause, scope = null, estimateMs } = outlookOf(this.#state, waiter, ahead, this.now);
      const expected = this.naive.outlookOf(waiter.ticket.id);
      assert.deepEqual([cause, scope, estimateMs], expected, `${told}: ${waiter.ticket.id} waits`);
    }
  }
}
