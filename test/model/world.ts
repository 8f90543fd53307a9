import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../src/core/events.ts';
import { instant, leaseIdOf, type InstantMs, type LeaseId } from '../../src/core/words/ids.ts';
import { checkInvariants } from '../../src/core/invariants.ts';
import type { Outcome } from '../../src/core/words/outcome.ts';
import { recover } from '../../src/core/recover.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import { emptyState, type GroupState, type Lease } from '../../src/core/state.ts';
import { nextWakeAt, step } from '../../src/core/step.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import { answersOf, keptControls, SOMEBODY, someTicket, START } from '../support/core-builders.ts';
import type { Action } from './actions.ts';
import { AskLedger } from './ask-ledger.ts';
import { faceOf, placeOf } from './faces.ts';
import { LeaseTable } from './lease-table.ts';
import { NaiveGroup } from './naive-group.ts';

/** When a world ticks: after each jump in time; only when the group asks for it; or far more often. */
export type Ticking = 'after_jumps' | 'at_wakes' | 'around_dues';

export interface Recorded {
  readonly event: GroupEvent;
  readonly at: InstantMs;
}

interface Issued {
  readonly ticket: Ticket;
  attempt: number;
}

/** Attachments of one instance lie below those of the next. */
const ATTACHMENTS_PER_INSTANCE = 1_000_000;

/**
 * The core with everything around it that it needs to live: a clock, rows, callers that are parked, and
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
  readonly #ticking: Ticking;
  readonly #table = new LeaseTable();
  readonly #asks = new AskLedger();
  readonly #issued: Issued[] = [];
  readonly #attachments = new Map<LeaseId, number[]>();
  #state: GroupState;
  #instances = 1;

  constructor(settings: GroupSettings, ticking: Ticking) {
    this.#ticking = ticking;
    this.#state = emptyState(settings, 1);
    this.naive = new NaiveGroup(settings);
  }

  run(action: Action): void {
    if (action.kind === 'advance') return this.#advanceTo(this.now + action.ms);
    if (action.kind === 'reset') return this.#reset(action.isLossy);
    if (action.kind === 'held_up') {
      this.#moveTo(this.now + action.ms);
      return this.#step({ kind: 'held_up', lostMs: action.ms });
    }
    if (action.kind === 'advance_to_due') {
      const due = this.naive.nextDueAt(this.now);
      if (due !== Infinity) this.#advanceTo(Math.max(this.now, due + action.offsetMs));
      return;
    }
    // Asking to resume is an ask of its own: what is due for the parked one comes first.
    if (action.kind === 'resume') this.#step({ kind: 'tick' });
    this.#step(this.#eventOf(action));
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
    this.#table.write();
    this.#asks.assertAllAnswered();
    assert.equal(this.#state.leases.size, 0, 'a lease stayed behind');
    assert.equal(this.#state.queue.byTicket.size, 0, 'a waiter stayed behind');
    const tenants = [...this.#state.accounts.tenants.values()];
    assert.ok(
      tenants.every(({ slots, waiting }) => slots + waiting === 0),
      'an account drifted',
    );
    assert.deepEqual(this.#table.rows(), [], 'a row stayed behind');
  }

  #eventOf(
    action: Exclude<Action, { kind: 'advance' | 'advance_to_due' | 'held_up' | 'reset' }>,
  ): GroupEvent {
    if (action.kind === 'ask') return this.#newAsk(action);
    if (action.kind === 'move') return action;
    if (action.kind === 'end') return this.#endOf(action.pick, action.outcome) ?? { kind: 'tick' };
    if (action.kind === 'reconfigure') {
      return { kind: 'reconfigure', settings: { ...this.naive.settings, ...action.changes } };
    }
    const issued = this.#picked(action.pick);
    const { ticket, attempt } = issued;
    const leaseId = leaseIdOf(ticket.id, attempt);
    switch (action.kind) {
      case 'ask_again':
        return { kind: 'acquire', ticket, leaseId, sliceMs: action.sliceMs };
      case 'next_attempt': {
        const next = leaseIdOf(ticket.id, ++issued.attempt);
        return { kind: 'acquire', ticket, leaseId: next, sliceMs: 30_000 };
      }
      case 'promote': {
        const { lane, toFront } = action;
        return { kind: 'promote', ticketId: ticket.id, lane, toFront };
      }
      case 'release':
        return { kind: 'release', leaseId, outcome: action.outcome, settlement: null };
      case 'detach': {
        const attachment = this.#attachments.get(leaseId)?.at(-1 - action.back) ?? -1;
        return { kind: 'detach', leaseId, attachment };
      }
      case 'cancel':
        return { kind: 'cancel', ticketId: ticket.id };
      case 'resume':
        return {
          kind: 'resume',
          leaseId,
          ticketId: ticket.id,
          holder: ticket.holder,
          lane: ticket.lane,
          slots: ticket.slots,
        };
      case 'renew':
      case 'confirm':
      case 'revoke':
        return { kind: action.kind, leaseId };
    }
  }

  #newAsk(action: Extract<Action, { kind: 'ask' }>): GroupEvent {
    const { ageMs, patienceMs, sliceMs, agentAgeMs, parent } = action;
    const { tenant, agent, lane, slots, wait, manner } = action;
    const parents = parent === null ? [] : [this.#picked(parent)];
    const ticket = someTicket(`t${this.#issued.length}`, instant(this.now - ageMs), {
      holder: { ...SOMEBODY, tenant, agent, caller: tenant === 'cid' ? tenant : SOMEBODY.caller },
      lane,
      slots,
      wait,
      ...manner,
      agentStartedAt: agentAgeMs === null ? null : instant(this.now - agentAgeMs),
      deadlineAt: patienceMs === null ? null : instant(this.now + patienceMs),
      parents: parents.map((each) => leaseIdOf(each.ticket.id, each.attempt)),
    });
    this.#issued.push({ ticket, attempt: 1 });
    return { kind: 'acquire', ticket, leaseId: leaseIdOf(ticket.id, 1), sliceMs };
  }

  #endOf(pick: number, outcome: Outcome): GroupEvent | undefined {
    const held = this.naive.leases().filter(({ phase }) => phase !== 'cooling');
    const lease = held[pick % held.length];
    return lease === undefined
      ? undefined
      : { kind: 'release', leaseId: lease.id, outcome, settlement: null };
  }

  #picked(pick: number): Issued {
    const found = this.#issued.at(-1 - pick);
    if (found !== undefined && !this.naive.mayBeForgotten(found.ticket.id, this.now)) return found;
    const ticket = someTicket(`stranger${this.#issued.length}`, this.now);
    const stranger = { ticket, attempt: 1 };
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

  /** When to tick next on the way to `target`; Infinity: not before it. */
  #nextTick(target: number): number {
    if (this.#ticking === 'after_jumps') return this.now < target ? target : Infinity;
    if (this.#ticking === 'at_wakes') return Math.max(this.now, nextWakeAt(this.#state, this.now));
    const due = this.naive.nextDueAt(this.now);
    if (due <= this.now) return this.now;
    if (this.now >= target) return Infinity;
    // Straight to the millisecond before the next due instant, and from there in single ones.
    return Math.min(target, Math.max(this.now + 1, due - 1));
  }

  #moveTo(at: number): void {
    this.now = instant(Math.max(this.now, at));
    this.#table.advanceTo(this.now);
  }

  #step(event: GroupEvent): void {
    const leasesBefore = new Set(this.#state.leases.keys());
    this.events.push({ event, at: this.now });
    this.#asks.expect(event, this.#state);
    const effects = step(this.#state, event, this.now);
    this.#table.note(effects, this.now);
    const answers = answersOf(effects);
    const told = `at ${this.now - START}, ${event.kind}`;
    assert.deepEqual(answers, this.naive.handle(event, this.now), told);
    for (const answer of answers) this.log.push(`${this.now - START} ${answer}`);
    this.history.push(JSON.stringify([this.now, effects]));
    this.#noteAttachments(effects);
    this.#asks.settle(effects, this.#state);
    const resumed = event.kind === 'resume' ? event.leaseId : null;
    const fresh = [...this.#state.leases.values()].filter(
      ({ id, slots }) => !leasesBefore.has(id) && id !== resumed && slots > 0,
    );
    this.#check(told, fresh);
    if (event.kind === 'tick') {
      assert.ok(nextWakeAt(this.#state, this.now) > this.now, `${told}: it would spin`);
    }
  }

  #reset(isLossy: boolean): void {
    const granted = [...this.#state.leases.values()].filter(({ phase }) => phase !== 'cooling');
    if (isLossy) this.#table.lose();
    else this.#table.write();
    const rows = this.#table.rows();
    for (const { id } of granted) {
      assert.ok(
        rows.some((row) => row.id === id),
        `${id} was granted and has no row`,
      );
    }
    if (!isLossy) {
      const written = rows.map(({ id, phase, extendedUntil, coolingUntil }) => {
        return `${id} ${phase} ${coolingUntil ?? extendedUntil}`;
      });
      const expected = this.naive.leases().map(({ id, phase, extendedUntil, until }) => {
        return `${id} ${phase} ${phase === 'cooling' ? until : extendedUntil}`;
      });
      assert.deepEqual(written.toSorted(), expected.toSorted(), 'the rows tell something else');
    }
    const firstAttachment = ATTACHMENTS_PER_INSTANCE * this.#instances++;
    const { state, effects } = recover(
      this.#state.settings,
      rows,
      keptControls(this.#state),
      firstAttachment,
      this.now,
    );
    this.#state = state;
    this.#table.note(effects, this.now);
    this.naive.recover(rows, firstAttachment, this.now);
    this.#asks.clear();
    this.#check(`at ${this.now - START}, reset`, []);
  }

  #noteAttachments(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'grant') continue;
      const { id, attachment } = effect.lease;
      const earlier = this.#attachments.get(id) ?? [];
      assert.ok(attachment > (earlier.at(-1) ?? 0), `${id} got no larger attachment`);
      this.#attachments.set(id, [...earlier, attachment]);
    }
  }

  /** Checks what must hold after every step, with the leases that it granted. */
  #check(told: string, fresh: readonly Lease[]): void {
    const { leases, queue, settings, accounts, slotsInUse } = this.#state;
    assert.deepEqual(checkInvariants(this.#state, this.now), [], told);
    assert.equal(slotsInUse, this.naive.slotsInUse(), told);
    if (fresh.length > 0 && !settings.isDryRun) {
      assert.ok(slotsInUse <= settings.slotsMax, `${told}: granted above the limit`);
      assert.ok(!settings.paused, `${told}: granted while paused`);
      for (const { holder } of fresh) {
        const { slots = 0 } = accounts.tenants.get(holder.tenant) ?? {};
        assert.ok(slots <= settings.slotsMaxEach, `${told}: granted above the tenant's cap`);
      }
    }
    assert.deepEqual([...leases.values()].map(faceOf), this.naive.leases().map(faceOf), told);
    for (const { key, shares } of accounts.tenants.values()) {
      const { high, normal, low } = shares;
      const had = { high: high.service, normal: normal.service, low: low.service };
      assert.deepEqual(had, this.naive.services(key), `${told}: what ${key} has had`);
    }
    const waiters = [...queue.byTicket.values()];
    assert.deepEqual(waiters.map(placeOf), this.naive.waiters().map(placeOf), told);
    const wakeAt = nextWakeAt(this.#state, this.now);
    assert.ok(wakeAt <= this.naive.nextDueAt(this.now), `${told}: it would sleep too long`);
  }
}
