import { endHoldBack } from '../../src/core/parts/evidence.ts';
import { setProbing } from '../../src/core/parts/pause.ts';
import type { GroupEvent } from '../../src/core/events.ts';
import type { Claim } from '../../src/core/orphaned.ts';
import { instant, type LeaseId, type MemberId } from '../../src/core/words/ids.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import { NaiveBound, type NaiveRow } from './naive-bound.ts';
import { boundSlots, mayInherit, NaiveLeases, type NaiveLease } from './naive-leases.ts';
import {
  NaiveOrder,
  runOf,
  type NaiveArrival,
  type NaiveView,
  type NaiveWaiter,
} from './naive-order.ts';
import { NaivePlacing } from './naive-placing.ts';
import { RULES } from './naive-scopes.ts';
import type { NaiveRejection } from './naive-room.ts';
import {
  aboveItsShare,
  lastHeld,
  lastOf,
  longestLines,
  tooWide,
  worstBelow,
} from './naive-rejections.ts';

type NaiveGroupEventOf<Kind extends GroupEvent['kind']> = Extract<GroupEvent, { kind: Kind }>;

/** An operator's pause may end at any time, and stops all calls. */
const BY_OPERATOR: NaiveRejection = { reason: 'paused', until: null, scope: null };

function namesOf({ members }: GroupSettings): string {
  return JSON.stringify(members.map(({ id }) => id).toSorted());
}

/** How long nothing is granted after a reset. */
function settlingMs(waiters: number, slots: number): number {
  return Math.min(5_000, 500 + waiters + Math.floor(slots / 5));
}

/**
 * Twin of the core that does what a group should do, written as plainly as possible: arrays, nothing remembered
 * that can be worked out again, every number spelled out here rather than taken from the code under test.
 */
export class NaiveGroup extends NaiveLeases {
  /** Contents of the rejections for a stop or for slots. */
  rejections: (NaiveRejection & { readonly ticketId: string })[] = [];
  readonly #placing: NaivePlacing;
  #waiters: NaiveWaiter[] = [];
  #arrivals = 0;
  /** Other pools that are full, and until when calls that need them are passed over. */
  private passedOver = new Map<string, number>();
  #drainsFrom = 0;
  #dispersedAt = 0;
  /** The last event has found that it must be written that nothing is held. */
  private isEmptyDue = false;

  constructor(settings: GroupSettings, isStored: boolean, now: number, rules = RULES) {
    super(settings, isStored, rules, now);
    this.#placing = new NaivePlacing(this, this.room);
    this.#applyReactions();
  }

  /** Begins anew as an instance that knows nothing but the last row, what has ended by those before it, and what it must tell of that. */
  recover(
    row: (NaiveRow & { readonly at: number; readonly waitersUntil?: number }) | null,
    ended: readonly string[],
    untold: readonly string[],
    learnedBy: number,
    first: number,
    now: number,
  ): void {
    const next = Math.max(first, (row?.next ?? 0) + 1_000_000);
    const mark = row?.mark ?? 0;
    this.now = now;
    this.attachments = next;
    this.first = next;
    this.since = mark === 0 ? next : (row?.since ?? next);
    this.isSettled = mark === 0;
    this.unclaimedUntil = now + 45_000;
    const { members, grantedAt } = row ?? {};
    const marks = Object.entries(members ?? {}).map(([id, part]) => [id, part.mark] as const);
    this.places.recover(members === undefined ? [['', mark]] : marks);
    this.bound = new NaiveBound(this.bound.isStored);
    this.bound.add({ kind: 'held', at: now, slots: mark });
    if (row?.mayOutlive === true) this.bound.add({ kind: 'by_id' });
    this.order = new NaiveOrder();
    this.holds = [];
    this.leaseList = [];
    this.freed = [...untold];
    this.lapsed = [];
    const { lapsed = [], granted = [] } = row ?? {};
    this.lapsedBefore = mark > 0 ? lapsed.filter((id) => !granted.includes(id)) : [];
    this.awaited = [];
    const before = granted.map((id) => ({ id, member: grantedAt?.[id] ?? '' }));
    this.grantedBefore = mark > 0 ? before : [];
    this.heirsBefore = mark > 0 ? [...(row?.heirs ?? [])] : [];
    this.passedBefore = [];
    this.#waiters = [];
    this.#held = [];
    this.passedOver = new Map();
    this.lastEndAt = -Infinity;
    this.lastGrantAt = -Infinity;
    this.#arrivals = 0;
    this.ended = ended.map((id) => ({ id, at: now }));
    this.recoverLearned(learnedBy);
    for (const { id } of this.places.serving()) this.room.scopes.member(id);
    this.#applyReactions();
    for (const { id } of this.places.all()) this.room.scopes.member(id, now);
    if (mark === 0) this.endLostProbes();
    const isOver = row === null || now >= (row.waitersUntil ?? row.at + this.settings.timeoutMs);
    this.toldWaiters = isOver ? 0 : row.waiters;
    const wasInUse = mark > 0 || this.toldWaiters > 0;
    this.grantsFrom = wasInUse ? now + settlingMs(this.toldWaiters, mark) : 0;
    this.#drainsFrom = wasInUse ? now : 0;
    this.#dispersedAt = wasInUse ? now : 0;
  }

  /** The answers that the event must bring, in order. */
  handle(event: GroupEvent, now: number): string[] {
    this.now = now;
    this.answers = [];
    this.rejections = [];
    this.settled = [];
    this.#held = [];
    this.answering.reports.end(now);
    for (const member of this.room.serving()) {
      for (const { ceiling } of this.room.scopes.allOf(member)) {
        endHoldBack(ceiling.evidence, instant(now));
      }
    }
    this.room.beginEvent(now);
    if (event.kind === 'held_up') this.#extendByLostTime(event.lostMs);
    if (now >= this.unclaimedUntil) this.places.expire();
    this.freePassed();
    this.settleUnclaimed();
    this.#endWhatIsDue();
    this.#apply(event);
    this.freePassed();
    this.settleUnclaimed();
    const areOthers = event.kind === 'reconfigure' && this.settings.members.length > 0;
    if (areOthers || this.room.isStoppedForLonger(now)) this.#dropStopped();
    // A grant may probe a pause, and so stop other calls.
    for (let isFirst = true; isFirst || this.room.isStoppedForLonger(now); isFirst = false) {
      if (!isFirst) this.#dropStopped();
      this.room.beginEvent(now);
      this.#grantWhatFits();
    }
    this.bound.add({ kind: 'held', at: now, slots: this.slotsHeld() });
    this.isEmptyDue = now >= this.bound.emptyDueAt();
    if (this.isEmptyDue) this.bound.add({ kind: 'noted_empty' });
    return this.answers;
  }

  /** Whether a write must be asked for that nobody waits for yet. */
  wantsWrite(now: number): boolean {
    return this.isEmptyDue || this.bound.isRunningOut(now) || this.areNextHoldersDue(now);
  }

  /** The earliest instant after `now` at which time alone changes something. */
  nextDueAt(now: number): number {
    const dues = this.leaseList.map(({ until }): number => until);
    if (this.slotsOrphaned() > 0) dues.push(this.unclaimedUntil);
    dues.push(this.bound.emptyDueAt(), this.bound.lostAt(), this.passedDueAt());
    for (const { deadlineAt, sliceEndsAt, orphanAt } of this.#waiters) {
      dues.push(deadlineAt, sliceEndsAt ?? orphanAt);
    }
    if (this.#waiters.length > 0 && this.grantsFrom > now) dues.push(this.grantsFrom);
    for (const { heldUntil } of this.#held) {
      if (heldUntil !== null && heldUntil > now) dues.push(heldUntil);
    }
    return Math.min(...dues);
  }

  /** All later instants at which time alone may release waiters. */
  changesAt(now: number): number {
    if (this.#waiters.length === 0) return Infinity;
    const passed = [...this.passedOver.values()].filter((until) => until > now);
    return Math.min(...this.room.changes(now), ...this.#kept(now), ...passed);
  }

  /** Until when calls that belong together are known to. */
  #kept(now: number): readonly number[] {
    return this.places.untils().filter((at) => at > now);
  }

  /** Everybody who waits, in the order of their arrival. */
  waiters(): NaiveWaiter[] {
    return this.#waiters;
  }

  protected view(): NaiveView {
    const settings = { ...this.settings, slotsMax: this.slotsMax() };
    const { room, answering: answers, now, passedOver } = this;
    const meanHoldMs = this.meanHold();
    const { leaseList: leases } = this;
    return { settings, waiters: this.#waiters, leases, room, answers, now, meanHoldMs, passedOver };
  }

  #apply(event: GroupEvent): void {
    const lease = 'leaseId' in event ? this.lease(event.leaseId) : undefined;
    switch (event.kind) {
      case 'acquire':
        return this.#acquire(event);
      case 'resume':
        return this.#resume(event);
      case 'renew': {
        if (lease?.phase !== 'held') return;
        this.renewLease(lease);
        if (!lease.isById && event.claim?.isById === true) {
          this.bound.add({ kind: 'by_id' });
          lease.isById = true;
        }
        const heldMs = this.now - lease.grantedAt;
        if (heldMs > lease.chargedMs) this.chargeTo(lease, heldMs);
        return;
      }
      case 'confirm':
        if (lease !== undefined && lease.phase !== 'cooling') this.#confirm(lease);
        return;
      case 'promote':
        return this.#promote(event);
      case 'release':
        if (lease !== undefined) return this.#release(lease, event);
        return this.#releaseUnseen(event);
      case 'pass_over':
        this.passedOver.set(event.pool, this.now + Math.min(5_000, event.forMs));
        return;
      case 'detach':
        if (lease?.attachment !== event.attachment || lease.phase === 'cooling') return;
        if (lease.isById) return;
        lease.isLost = true;
        return this.end(lease, 'cancelled');
      case 'cancel':
        this.#dismiss(this.#waiters.find((each) => each.ticketId === event.ticketId));
        for (const held of this.leaseList.filter(({ ticketId }) => ticketId === event.ticketId)) {
          this.end(held, 'cancelled', true);
        }
        this.strikeHeirs(event.ticketId);
        return this.tombstone(event.ticketId);
      case 'revoke':
        if (lease?.phase !== 'held') return;
        lease.phase = 'revoking';
        this.answers.push(`revoked ${lease.id}`);
        return;
      case 'reconfigure':
        return this.#reconfigure(event.settings);
      case 'report':
        return this.#report(event);
      case 'relearn':
        this.answering.forgetRefusals();
        return this.room.scopes.relearn(this.now);
      case 'move':
        for (const { ticketId } of this.#waiters) this.answers.push(`moved ${ticketId}`);
        if (this.#waiters.length === 0) return;
        for (const waiter of this.#waiters) this.#remove(waiter);
        this.grantsFrom = Math.max(this.grantsFrom, this.now + 250);
        this.#dispersedAt = this.now;
        return;
      case 'keep_loan': // nobody here borrows
      case 'leave_loan':
      case 'give_back':
      case 'take_over': // no pool here has been on trial
      case 'bring_back': // no member is ever out here
      case 'correct_spend': // no money is spent here
      case 'undo_correction':
      case 'held_up':
      case 'tick':
        return;
    }
  }

  /** All groups of a call have granted it, so it starts. */
  #confirm(lease: NaiveLease): void {
    if (!lease.waitsElsewhere) return;
    lease.waitsElsewhere = false;
    this.answering.callable(lease, this.now);
    this.answering.granted(lease, this.now);
  }

  #report({ leaseId, claim, signal, isRepeat }: NaiveGroupEventOf<'report'>): void {
    const lease = this.lease(leaseId) ?? this.#claimed(leaseId, claim);
    if (lease === undefined || lease.phase === 'cooling') return;
    if (signal.kind !== 'served') {
      this.#confirm(lease);
      lease.isRefused = true;
    }
    this.answering.answered(lease, signal, isRepeat, this.now);
    this.#askForNames();
  }

  /** Asks for the names of unread queued calls while calls are held by names. */
  #askForNames(): void {
    if (!this.room.scopes.holdByNames(this.room.serving(), this.now)) return;
    for (const waiter of this.#waiters) {
      if (waiter.ticket.holder.isUnread !== true || waiter.sliceEndsAt === null) continue;
      waiter.sliceEndsAt = null;
      waiter.orphanAt = this.now + 5_000;
      this.answers.push(`unread ${waiter.ticketId}`);
    }
  }

  /** Creates the lease of an earlier instance if its slots are orphaned. */
  #claimed(leaseId: string, claim: Claim | undefined): NaiveLease | undefined {
    if (claim === undefined || !this.#isHere(claim)) return undefined;
    const isKnown = this.hasEnded(leaseId) || this.hasEnded(claim.ticketId);
    return isKnown ? undefined : this.claim(claim);
  }

  #release(lease: NaiveLease, { outcome, isSole = false }: NaiveGroupEventOf<'release'>): void {
    const { id, slots, nested, phase } = lease;
    const mayPass = isSole && phase === 'held' && slots === 1 && nested === null;
    const isVacant = mayPass && this.nestedIn(id).length === 0;
    this.end(lease, outcome);
    if (isVacant && !this.leaseList.includes(lease)) {
      const member = this.places.countsAt(lease);
      this.bound.add({ kind: 'vacated', id, member, heirOf: lease.heirOf });
    }
  }

  protected forgetWaiter(leaseId: string): void {
    for (const waiter of this.#waiters) if (waiter.leaseId === leaseId) this.#remove(waiter);
  }

  /** Ends who waits under that id; of a lease of an earlier instance, gives its slots back. */
  #releaseUnseen({ leaseId, outcome, claim }: NaiveGroupEventOf<'release'>): void {
    const waiter = this.#waiters.find((each) => each.leaseId === leaseId);
    this.#dismiss(waiter);
    const lease = this.#claimed(leaseId, claim);
    if (lease === undefined) return this.tombstone(leaseId);
    this.end(lease, outcome);
    this.keepForHeir(lease);
  }

  /** Whether the slots of a lease are among those that nobody has claimed. */
  #isHere(claim: Claim): boolean {
    this.knowMember({ named: claim.member ?? '' });
    return claim.slots <= this.places.orphanedFor(claim) && this.mayClaim(claim);
  }

  /** Extends what holders could not renew for a while: they have as long left as before it. */
  #extendByLostTime(lostMs: number): void {
    this.unclaimedUntil += lostMs;
    for (const lease of this.leaseList.filter(({ phase }) => phase !== 'cooling')) {
      lease.until = instant(lease.until + lostMs);
    }
  }

  #acquire(event: NaiveGroupEventOf<'acquire'>): void {
    const { ticket, leaseId, sliceMs, mayAskLater = false, isAnew = false } = event;
    if (isAnew) this.strikeHeirs(ticket.id);
    const isAnswered = this.answers.some((answer) => answer.split(' ')[1] === ticket.id);
    if (isAnswered) return;
    if (this.hasEnded(leaseId) || this.hasEnded(ticket.id)) {
      this.answers.push(`gone ${ticket.id}`);
      return;
    }
    const lease = this.lease(leaseId);
    if (lease?.phase === 'held') {
      if (!lease.isById) lease.named = this.places.countsAt(lease);
      return this.answerWith(lease, isAnew);
    }
    if (lease !== undefined) {
      this.answers.push(`gone ${ticket.id}`);
      return;
    }
    const known = this.#waiters.find(({ ticketId }) => ticketId === ticket.id);
    if (known?.leaseId === leaseId) {
      if (known.ticket.holder.isUnread === true && ticket.holder.isUnread !== true) {
        const { session: _, ...holder } = ticket.holder;
        const { session } = known.ticket.holder;
        known.ticket = { ...known.ticket, holder: { ...holder, ...(session && { session }) } };
        this.room.scopes.noteCall(ticket.holder, this.room.serving(), this.now);
      }
      known.sliceEndsAt = this.now + sliceMs;
      known.isAnew = isAnew;
      this.order.stillWaits(ticket.holder, this.now);
      this.#askForNames();
      this.#grantWhatFits();
      if (!this.#waiters.includes(known)) return;
      if (ticket.isTry) {
        known.sliceEndsAt = null;
        known.orphanAt = this.now + 5_000;
        this.#answerDeclined(known);
      } else if (mayAskLater && this.#isDeferred(known)) this.#unpark(known, sliceMs);
      return;
    }
    if (known !== undefined) this.#remove(known);
    if (this.#claimGranted(ticket, leaseId, isAnew)) return;
    const serving = this.room.serving();
    if (ticket.holder.isUnread === true && this.room.scopes.goByNames(serving, this.now)) {
      this.answers.push(`unread ${ticket.id}`);
      return;
    }
    this.room.scopes.noteCall(ticket.holder, serving, this.now);
    this.#freeForOtherKey(ticket);
    const waiter = this.#joinQueue(ticket, leaseId, sliceMs, isAnew);
    if (waiter === null || !mayAskLater) return;
    if (this.#isDeferred(waiter)) return this.#unpark(waiter, sliceMs);
    const ahead = this.order.ahead(waiter, this.view());
    if (this.#waiters.includes(waiter) && ahead >= 100 && this.now >= this.grantsFrom) {
      this.#unpark(waiter, null);
    }
  }

  /** Takes out the leases that cool down after failures with another caller's own key. */
  #freeForOtherKey({ holder }: Ticket): void {
    for (const lease of this.leaseList) {
      const isOther = lease.holder.credential !== holder.credential;
      if (lease.isOfKey && lease.phase === 'cooling' && isOther) this.remove(lease);
    }
  }

  /** Whether nobody need be parked for a waiter, which stands far back and waits for its turn alone. */
  #isDeferred(waiter: NaiveWaiter): boolean {
    const { ticket, deadlineAt, sliceEndsAt } = waiter;
    if (!this.#waiters.includes(waiter)) return false;
    if (ticket.parents.length > 0 || sliceEndsAt === null) return false;
    if (this.holds.length < 10) return false;
    const isLikely = (ahead: number) => ahead >= 16 && this.#estimateBehind(ahead) > 60_000;
    const places = [
      this.order.turnsAhead(waiter, this.view()),
      this.order.surelyAhead(waiter, this.view()),
    ];
    return places.every(isLikely) && deadlineAt > sliceEndsAt + 5_000;
  }

  #unpark(waiter: NaiveWaiter, askAgainMs: number | null): void {
    waiter.sliceEndsAt = null;
    waiter.orphanAt = this.now + (askAgainMs ?? 0) + 5_000;
    const ahead = this.order.ahead(waiter, this.view());
    const again = askAgainMs === null ? '' : ` again in ${askAgainMs}`;
    this.answers.push(`pending ${waiter.ticketId} at ${ahead}${again}`);
  }

  /** Gives a caller the lease again whose answer was lost with the instance before. */
  #claimGranted(ticket: Ticket, leaseId: LeaseId, isAnew: boolean): boolean {
    const { id: ticketId, holder, lane, slots, parents, isById = false } = ticket;
    const known = this.grantedBefore.find(({ id }) => id === leaseId);
    if (known === undefined) return false;
    const member = known.member as MemberId;
    this.knowMember({ named: member });
    if (parents.length > 0 || slots > this.places.orphanedFor({ member })) return false;
    this.grantedBefore = this.grantedBefore.filter((each) => each !== known);
    const unheard = {
      attachment: null,
      hasLapsed: false,
      heldMs: 0,
      nested: null,
      reserved: null,
      heirOf: [],
    };
    const claim = { leaseId, ticketId, holder, lane, member, slots, isById, ...unheard };
    this.grant(this.claim(claim), isAnew);
    return true;
  }

  /** Returns who is in the queue now; null: nobody came to stand there. */
  #joinQueue(
    ticket: Ticket,
    leaseId: string,
    sliceMs: number,
    isAnew: boolean,
  ): NaiveWaiter | null {
    const { isDryRun, isDraining } = this.settings;
    const timeoutMs = ticket.timeoutMs ?? this.settings.timeoutMs;
    const isNew = ticket.enqueuedAt >= this.#drainsFrom;
    const rejection = isDraining && isNew ? 'draining' : this.#tooWide(ticket);
    if (rejection !== null && !isDryRun) {
      this.answers.push(`reject ${ticket.id} ${rejection}`);
      return null;
    }
    if (ticket.isTry) this.#grantWhatFits();
    const enqueuedAt = Math.min(Math.max(ticket.enqueuedAt, this.now - timeoutMs), this.now + 1);
    const { holder, agentStartedAt } = ticket;
    const run = this.order.see(holder, this.now, this.view(), enqueuedAt);
    const startedAt = holder.agent === null ? enqueuedAt : (agentStartedAt ?? run.startedAt);
    const earliest = enqueuedAt - (this.settings.ageCreditMs ?? Infinity);
    const waiter: NaiveWaiter = {
      ticketId: ticket.id,
      leaseId,
      ticket,
      enqueuedAt,
      age: Math.min(enqueuedAt, Math.max(startedAt, earliest)),
      arrival: this.#arrivals++,
      deadlineAt: Math.min(ticket.deadlineAt ?? Infinity, enqueuedAt + timeoutMs),
      lane: ticket.lane,
      isPromoted: ticket.hadTurn === true,
      isAnew,
      sliceEndsAt: this.now + sliceMs,
      orphanAt: 0,
      heldUntil: null,
      waitsFor: null,
    };
    const forget = this.order.join(
      { ...ticket, enqueuedAt: instant(enqueuedAt) },
      this.now,
      this.view(),
    );
    this.#waiters.push(waiter);
    if (rejection !== null) this.#grant(waiter, ticket.slots);
    this.#grantWhatFits();
    if (!this.#waiters.includes(waiter)) return null;
    this.#decide(waiter);
    if (ticket.isTry) forget();
    return this.#waiters.includes(waiter) ? waiter : null;
  }

  #decide(waiter: NaiveWaiter): void {
    const { paused, queueLengthMax } = this.settings;
    const { ticket } = waiter;
    if (!ticket.isTry) waiter.waitsFor = this.#arrivalOf(waiter);
    if (this.#waitsForItself(ticket)) return this.#reject(waiter, 'nested');
    if (ticket.isTry) {
      this.#answerDeclined(waiter);
      this.#waiters = this.#waiters.filter((other) => other !== waiter);
      return;
    }
    const why = this.#stoppedBy(waiter) ?? (ticket.wait ? null : this.#busy(waiter));
    if (why !== null) return this.#reject(waiter, why);
    const { tenant, agent } = ticket.holder;
    const ofTenant = this.#waiters.filter((each) => each.ticket.holder.tenant === tenant);
    const ofAgent = ofTenant.filter((each) => runOf(each.ticket.holder) === runOf(ticket.holder));
    const isAgentFull = agent !== null && ofAgent.length > this.settings.queueLengthMaxEachAgent;
    const isTenantFull = ofTenant.length > this.settings.queueLengthMaxEach;
    const isFull = this.#waiters.length > queueLengthMax;
    const exceeded = isAgentFull
      ? ofAgent
      : isTenantFull
        ? ofTenant
        : isFull
          ? this.#waiters
          : null;
    const within = ticket.hadTurn === true ? null : exceeded;
    const evicted = within === null ? null : this.#callToReject(waiter, within);
    if (within !== null && evicted === null) return this.#reject(waiter, 'queue_full');
    const isSure = this.holds.length >= 10 && !paused;
    const stop = this.room.blockFor(ticket, this.now);
    const stopMs = stop === null ? 0 : Math.round(stop.until - this.now);
    if (isSure && this.now + Math.max(stopMs, this.#estimate(waiter)) > waiter.deadlineAt) {
      return this.#reject(waiter, 'infeasible');
    }
    if (evicted !== null) this.#reject(evicted, 'queue_full');
  }

  /** Finds who goes so that the newcomer may stay, of those within the bound that it exceeds. */
  #callToReject(waiter: NaiveWaiter, within: readonly NaiveWaiter[]): NaiveWaiter | null {
    const isOfGroup = within === this.#waiters;
    const { weights } = this.settings;
    const worst = isOfGroup ? worstBelow(waiter, within, weights) : null;
    if (worst !== null) return worst;
    const hadPlace = waiter.enqueuedAt < this.#dispersedAt;
    if (hadPlace && this.now < this.#dispersedAt + 35_000) {
      const last = lastOf([
        waiter,
        ...(isOfGroup ? longestLines(waiter.lane, within, weights) : within),
      ]);
      if (last !== waiter) return last;
    }
    const above = isOfGroup ? aboveItsShare(waiter, within, weights) : null;
    if (above !== null || this.room.scopesHolding(waiter.ticket, this.now).length > 0) return above;
    return lastHeld(waiter, within, ({ ticket }) => {
      return this.room.scopesHolding(ticket, this.now).length > 0;
    });
  }

  #estimate(waiter: NaiveWaiter): number {
    return this.#estimateBehind(this.order.turnsAhead(waiter, this.view()));
  }

  #estimateBehind(ahead: number): number {
    const slotsMax = this.slotsMax();
    if (slotsMax === 0) return 60_000;
    const free = Math.max(0, slotsMax - this.slotsInUse());
    const turns = Math.max(0, ahead + 1 - free);
    const ids = this.places.serving().map(({ id }) => id);
    const stoppedMs = (this.room.blockAt(ids, null, this.now)?.until ?? this.now) - this.now;
    const inTurnMs = Math.min(3_600_000, stoppedMs) + (turns * this.meanHold()) / slotsMax;
    const isTimeLacking = this.#roomDueAt !== Infinity && this.#roomDueAt > this.grantsFrom;
    return Math.round(Math.max(inTurnMs, isTimeLacking ? this.#roomDueAt - this.now : 0));
  }

  #reconfigure(settings: GroupSettings): void {
    if (settings.byAgent && !this.settings.byAgent) this.order.levelAgents();
    if (settings.isDraining && !this.settings.isDraining) {
      const isInUse = this.slotsInUse() + this.leaseList.length + this.#waiters.length > 0;
      this.#drainsFrom = isInUse ? this.now : 0;
    }
    const areOthers = namesOf(settings) !== namesOf(this.settings);
    this.#rename(settings);
    const before = this.leaseList.map((lease) => {
      return { lease, member: this.room.memberOf(lease), lessons: this.room.lessonsOf(lease) };
    });
    this.settings = settings;
    this.knowServing(this.now);
    if (areOthers) this.bound.add({ kind: 'others' });
    if (settings.members.length === 0) {
      this.places.unplace();
      for (const passed of this.passedBefore) passed.member = '';
    }
    for (const { lease, member, lessons } of before) {
      if (this.room.memberOf(lease) === member) continue;
      this.answering.left(lease, lessons, false, this.now);
      lease.atGrantIn.clear();
    }
    this.room.scopes.separateFromWaiting(this.room.serving(), this.now);
    this.#applyReactions();
    if (settings.isDryRun) return;
    for (const waiter of this.#waiters) {
      const rejection = this.#tooWide(waiter.ticket);
      if (rejection !== null) this.#reject(waiter, rejection);
    }
  }

  /** Members that change their ids and keep their keys keep their lessons and their running calls. */
  #rename({ members }: GroupSettings): void {
    const before = this.settings.members.filter(({ id }) =>
      members.every((each) => each.id !== id),
    );
    for (const { id, place } of members) {
      const from = before.find((each) => each.place === place);
      if (from === undefined) continue;
      this.room.scopes.rename(from.id, id, this.now);
      this.places.rename(from.id, id);
      this.answering.rename(id);
    }
  }

  /** Long pauses are probed where calls are granted. */
  #applyReactions(): void {
    for (const member of this.room.serving()) {
      member.hasServed = true;
      for (const { pause } of this.room.scopes.allOf(member)) {
        setProbing(pause, true, instant(this.now));
      }
    }
  }

  /** Rejects calls that cannot wait until their stop ends. */
  #dropStopped(): void {
    if (this.settings.isDryRun) return;
    for (const waiter of this.#waiters) {
      const why = this.#stoppedBy(waiter);
      if (why !== null) this.#reject(waiter, why);
    }
  }

  /** Rejects a call that does not allow queueing, with the cause if it is not that all slots are in use. */
  #busy(waiter: NaiveWaiter): NaiveRejection {
    const rejection = this.room.rejectionForSlots(waiter.ticket, this.now);
    const { cause } = this.#waitReason(waiter);
    const isOfSlots = ['slots', 'upstream_pause', 'members_out', 'operator_pause'].includes(cause);
    return isOfSlots ? rejection : { ...rejection, cause };
  }

  /** Names the stop that outlasts a waiter. null if there is none. */
  #stoppedBy({ ticket, deadlineAt }: NaiveWaiter): NaiveRejection | null {
    const block = this.room.blockFor(ticket, this.now);
    const patientUntil = ticket.wait ? deadlineAt : this.now;
    const isTooLong = block !== null && block.until > patientUntil;
    if (this.settings.paused && (isTooLong || !ticket.wait)) return BY_OPERATOR;
    if (!isTooLong) return null;
    return this.room.rejectionFor(ticket, block, this.now);
  }

  /** The position of a queued waiter, and its wait reason. */
  #arrivalOf(waiter: NaiveWaiter): NaiveArrival {
    return { position: this.order.ahead(waiter, this.view()), ...this.#waitReason(waiter) };
  }

  /** Names the wait reason. Of several, the one that does not end with running calls. */
  #waitReason(waiter: NaiveWaiter): Pick<NaiveArrival, 'cause' | 'scope'> {
    const { room, now } = this;
    const { ticket } = waiter;
    if (this.settings.paused) return { cause: 'operator_pause', scope: null };
    const places = this.places.possible(ticket);
    const ids = places.map(({ id }) => id);
    const block = room.blockAt(ids, null, now);
    if (block?.reason === 'members_out') return { cause: 'members_out', scope: null };
    const isBroken = block?.reason === 'breaker_open' || room.areBroken(places, now);
    const [sole, other] = ids;
    const about = sole === undefined || other !== undefined ? null : room.aboutOwn(sole);
    if (block?.reason === 'paused') return { cause: 'upstream_pause', scope: about };
    if (isBroken) return { cause: 'breaker', scope: about };
    if (now < this.grantsFrom) return { cause: 'settling', scope: null };
    const [scope] = room.scopesHolding(ticket, now);
    if (scope !== undefined) return { cause: room.causeOf(scope, now), scope: scope.scope };
    if (!this.order.isUnderCap(waiter, this.view())) return { cause: 'cap', scope: null };
    const { slots } = ticket;
    const isFull =
      this.slotsInUse() + slots > room.slotsNow(now) ||
      ids.every((id) => room.usedAt(id) + slots > room.slotsNowAt(id, now));
    if (isFull) return { cause: 'slots', scope: room.learnedOf(places) };
    const isLater = ids.every((id) => this.#placing.isFullAt(id, slots, this.grantsFrom, now));
    if (isLater) return { cause: 'rates', scope: null };
    const { needs = [] } = ticket;
    const isPassedOver = needs.some((pool) => (this.passedOver.get(pool) ?? -Infinity) > now);
    if (isPassedOver) return { cause: 'elsewhere', scope: null };
    return { cause: waiter.heldUntil === null ? 'order' : 'member', scope: null };
  }

  /** Tells why a waiter waits now, and for how long as far as that is known (null: it is not). */
  outlookOf(ticketId: string): readonly [cause: string, scope: unknown, estimateMs: number | null] {
    const waiter = this.#waiters.find((each) => each.ticketId === ticketId);
    if (waiter === undefined) return ['gone', null, null];
    const { cause, scope } = this.#waitReason(waiter);
    return [cause, scope, this.#foreseen(waiter, cause)];
  }

  #foreseen(waiter: NaiveWaiter, cause: NaiveArrival['cause']): number | null {
    const { ticket, heldUntil } = waiter;
    const ahead = this.order.ahead(waiter, this.view());
    const inUse = this.slotsInUse();
    const isStalled = this.#isStalled();
    if (['operator_pause', 'cap', 'elsewhere'].includes(cause)) return null;
    if (cause === 'member') return Math.max(0, (heldUntil ?? this.now) - this.now);
    if (cause === 'order' && ahead > 0 && inUse > 0 && isStalled) return null;
    if (cause === 'slots' && this.room.scopesHolding(ticket, this.now).length > 0) return null;
    const isStop = ['upstream_pause', 'breaker', 'members_out'].includes(cause);
    const stop = isStop ? (this.room.blockFor(ticket, this.now)?.until ?? Infinity) : this.now;
    const ids = this.places.serving().map(({ id }) => id);
    const stopOfAll = this.room.blockAt(ids, null, this.now)?.until ?? this.now;
    const slotsMax = this.slotsMax();
    if (this.settings.paused || slotsMax === 0 || Math.max(stop, stopOfAll) === Infinity) {
      return null;
    }
    const free = Math.max(0, slotsMax - inUse);
    const ends = Math.max(cause === 'slots' ? 1 : 0, ahead + 1 - free);
    if (ends > 0 && (this.holds.length === 0 || (inUse > 0 && isStalled))) return null;
    const bySlots = (ends * this.meanHold()) / slotsMax;
    const isTimeLacking = this.#roomDueAt !== Infinity && this.#roomDueAt > this.grantsFrom;
    if (isTimeLacking && ahead > 0 && this.#roomDueAt > Math.max(this.now, stopOfAll)) return null;
    const first = isTimeLacking ? this.#roomDueAt - this.now : 0;
    const inTurn = Math.round(Math.max(0, stopOfAll - this.now + bySlots, first));
    const until = cause === 'settling' ? this.grantsFrom : stop;
    return Math.max(inTurn, Math.round(until - this.now), 0);
  }

  #gapMs(): number {
    return this.meanHold() / Math.max(1, this.slotsMax());
  }

  #promote({ ticketId, lane, toFront }: NaiveGroupEventOf<'promote'>): void {
    const waiter = this.#waiters.find((each) => each.ticketId === ticketId);
    if (waiter === undefined) return;
    waiter.lane = lane ?? waiter.lane;
    waiter.isPromoted ||= toFront;
    this.#waiters = [...this.#waiters.filter((each) => each !== waiter), waiter];
  }

  #resume({ claim }: NaiveGroupEventOf<'resume'>): void {
    const { leaseId, ticketId, holder, lane, slots, attachment, member: named = '' } = claim;
    const isRevoked = this.leaseList.some(
      ({ id, phase }) => id === leaseId && phase === 'revoking',
    );
    if (this.hasEnded(leaseId) || this.hasEnded(ticketId) || isRevoked) {
      this.answers.push(`gone ${ticketId}`);
      return;
    }
    this.attachments = Math.max(this.attachments, (attachment ?? 0) + 1);
    for (const waiter of this.#waiters) if (waiter.ticketId === ticketId) this.#remove(waiter);
    const isLost = this.lease(leaseId) === undefined && !this.#isHere(claim);
    if (claim.isById === true && isLost) {
      this.answers.push(`gone ${ticketId}`);
      return;
    }
    const lease = this.lease(leaseId);
    if (lease !== undefined) {
      const before = this.places.countsAt(lease);
      const lessons = this.room.lessonsOf(lease);
      lease.named = named;
      this.knowMember(lease);
      const isMoved = this.places.countsAt(lease) !== before;
      if (isMoved) {
        this.answering.left(lease, lessons, false, this.now);
        lease.atGrantIn.clear();
        this.addGranted(lease, boundSlots(lease), false);
      }
      return this.answerWith(lease);
    }
    if (this.mayClaim(claim)) this.grant(this.claim(claim));
    else {
      const bare = { waitsElsewhere: false, isById: false };
      this.open({ id: leaseId, ticketId, holder, lane, slots, named, ...bare });
    }
    if (this.bound.isStored) return;
    this.grantsFrom = this.now + settlingMs(this.#waiters.length, this.slotsHeld());
  }

  #endWhatIsDue(): void {
    for (const lease of this.leaseList.filter(({ until }) => this.now >= until)) {
      if (lease.phase !== 'cooling') {
        this.answering.left(lease, this.room.lessonsOf(lease), true, this.now);
        this.endNesting(lease.id);
      }
      if (lease.phase !== 'cooling') this.chargeTo(lease, this.now - lease.grantedAt);
      this.order.see(lease.holder, this.now, this.view());
      if (lease.phase !== 'cooling') lease.isLost = true;
      this.remove(lease);
      if (lease.phase === 'revoking') this.tombstone(lease.id);
      if (lease.phase !== 'cooling') this.answers.push(`ended ${lease.id}`);
    }
    for (const waiter of this.#waiters) {
      if (this.now >= waiter.deadlineAt) {
        this.#reject(waiter, this.#whyAtDeadline(waiter));
      } else if (waiter.sliceEndsAt === null) {
        if (this.now >= waiter.orphanAt) this.#remove(waiter);
      } else if (this.now >= waiter.sliceEndsAt) {
        this.#unpark(waiter, null);
      }
    }
  }

  #whyAtDeadline({ ticket }: NaiveWaiter): string | NaiveRejection {
    if (this.settings.paused) return BY_OPERATOR;
    const block = this.room.blockFor(ticket, this.now);
    const isTimeout = block === null || block.reason === 'breaker_open';
    return isTimeout ? 'queue_timeout' : this.room.rejectionFor(ticket, block, this.now);
  }

  #grantWhatFits(): void {
    do this.#grantInTurn();
    while (this.#passNested());
    if (!this.settings.isDryRun) return;
    for (const waiter of this.#waiters.filter(({ sliceEndsAt }) => sliceEndsAt !== null)) {
      this.#grant(waiter, waiter.ticket.slots);
    }
  }

  /** Lets everybody pass who finds room on the slots of a parent. */
  #passNested(): boolean {
    if (this.settings.nested === 'reject' || this.settings.isDryRun) return false;
    const waiting = this.#waiters.length;
    for (const waiter of this.#waiters.filter(({ sliceEndsAt }) => sliceEndsAt !== null)) {
      const { ticket } = waiter;
      const way = this.#ways(ticket).find(({ root, inside }) => {
        // A child of an earlier instance may be on its way to the lease of its parent.
        const unheard = root.isClaimed ? this.slotsOrphaned() : 0;
        return this.#sum(inside) + unheard + ticket.slots <= root.slots;
      });
      const nested = way && { in: way.root.id, slots: ticket.slots };
      const member = way === undefined ? '' : this.places.countsAt(way.root);
      if (nested !== undefined) this.#grant(waiter, 0, member, nested);
    }
    return this.#waiters.length < waiting;
  }

  #waitsForItself(ticket: Ticket): boolean {
    if (this.settings.nested === 'reject') return this.#parentsOf(ticket).length > 0;
    const ways = this.#ways(ticket);
    return (
      ways.length > 0 &&
      !ways.some(({ root, inside }) => {
        const stay = inside.filter(({ id }) => ticket.parents.includes(id));
        return this.#sum(stay) + ticket.slots <= root.slots;
      })
    );
  }

  #parentsOf({ parents }: Ticket): NaiveLease[] {
    const held = parents.map((id) => this.leaseList.find((lease) => lease.id === id));
    return held.filter((lease) => lease !== undefined && lease.phase !== 'cooling') as NaiveLease[];
  }

  /** The leases on whose slots a ticket may ever pass, and what passes on each. */
  #ways(ticket: Ticket): { readonly root: NaiveLease; readonly inside: NaiveLease[] }[] {
    const isSplit = this.settings.members.length > 0;
    const own = this.#parentsOf(ticket).filter((parent) => {
      const isExcluded =
        ticket.excluded?.some((id) => id === this.places.countsAt(parent)) ?? false;
      return parent.holder.caller === ticket.holder.caller && !(isSplit && isExcluded);
    });
    return own.map((parent) => {
      if (parent.nested === null) return { root: parent, inside: this.nestedIn(parent.id) };
      // One that has outlived the call that it was made for has nothing to pass on.
      if (parent.slots > 0) return { root: { ...parent, slots: 0 }, inside: [] };
      const root = this.lease(parent.nested.in);
      if (root === undefined) throw new Error(`${parent.id} passes on what is not there`);
      return { root, inside: this.nestedIn(root.id) };
    });
  }

  #sum(leases: readonly NaiveLease[]): number {
    return leases.reduce((sum, { nested }) => sum + (nested?.slots ?? 0), 0);
  }

  /** Grants slots while a waiter may start that has room somewhere. */
  #grantInTurn(): void {
    for (let next = this.#nextTurn(); next !== null; next = this.#nextTurn()) {
      this.#grant(next.waiter, next.waiter.ticket.slots, next.member);
    }
  }

  /** Those who wait for their own member now, while another has room. */
  #held: NaiveWaiter[] = [];
  /** When time alone makes room for the first waiter. */
  #roomDueAt = Infinity;

  /**
   * Finds the next waiter and its member. A waiter without room bars the members that it waits for. In a dry run, a
   * waiter starts even if it became too wide while it waited.
   */
  #nextTurn(): { readonly waiter: NaiveWaiter; readonly member: string } | null {
    this.#held = [];
    this.#roomDueAt = Infinity;
    const view = this.view();
    let left = view.waiters;
    let barred: readonly string[] = [];
    const waiting: string[] = [];
    while (this.#mayHaveRoom(barred)) {
      const waiter = this.order.next({ ...view, waiters: left });
      if (waiter === undefined) return null;
      if (this.#tooWide(waiter.ticket) !== null) return { waiter, member: '' };
      left = left.filter((each) => each !== waiter);
      const { now, grantsFrom } = this;
      const when = { meanHoldMs: this.meanHold(), grantsFrom, now };
      const placed = this.#placing.place(waiter, barred, waiting, when);
      if (placed.kind === 'now') return { waiter, member: placed.member };
      if (placed.kind === 'later') {
        barred = [...barred, ...placed.members];
        this.#roomDueAt = Math.min(this.#roomDueAt, placed.at);
      } else {
        waiter.heldUntil ??= placed.until;
        waiting.push(placed.member);
        this.#held.push(waiter);
      }
    }
    return null;
  }

  /** Whether some member has a slot left. */
  #mayHaveRoom(barred: readonly string[]): boolean {
    const { paused, members, slotsMax } = this.settings;
    if (paused || (members.length > 0 && this.slotsInUse() >= slotsMax)) return false;
    return this.places.serving().some(({ id }) => {
      const inUse = this.room.inUse(id, this.room.scopes.member(id).own);
      return !barred.includes(id) && inUse < Math.max(1, this.room.slotsLearnedAt(id));
    });
  }

  /** Names why a ticket could never have all its slots; null: it could. */
  #tooWide(ticket: Ticket): string | null {
    const widest = Math.max(...this.places.possible(ticket).map(({ slotsMax }) => slotsMax));
    if (widest > 0 && ticket.slots > widest) return 'never_fits';
    return tooWide(ticket, this.settings);
  }

  #grant(
    waiter: NaiveWaiter,
    slots: number,
    named = '',
    nested: NaiveLease['nested'] = null,
  ): void {
    const { ticketId, leaseId, lane, ticket } = waiter;
    const { holder, waitsElsewhere } = ticket;
    this.#remove(waiter);
    this.order.granted(waiter, this.now, this.view());
    const nextHolderOf = mayInherit(waiter) ? this.bound.takeVacated(leaseId, named, this.now) : [];
    const { isAnew } = waiter;
    const { isById = false } = waiter.ticket;
    const own = { waitsElsewhere, isById };
    const wanted = { id: leaseId, ticketId, holder, lane, slots, named, ...own };
    this.places.noteGrant(wanted, this.now);
    this.open(wanted, nested, { heirOf: nextHolderOf as LeaseId[], isAnew });
    const granted = this.lease(leaseId);
    if (granted !== undefined && !waitsElsewhere) this.answering.granted(granted, this.now);
  }

  #reject(waiter: NaiveWaiter, why: string | NaiveRejection): void {
    this.#remove(waiter);
    const { ticketId } = waiter;
    this.answers.push(`reject ${ticketId} ${typeof why === 'string' ? why : why.reason}`);
    if (typeof why !== 'string') this.rejections.push({ ...why, ticketId });
  }

  /** Whether no call has begun or ended for so long that a wait for slots cannot be estimated. */
  #isStalled(): boolean {
    const quietMs = this.now - Math.max(this.lastEndAt, this.lastGrantAt);
    return quietMs > Math.max(2_000, 5 * this.#gapMs());
  }

  /** Tells a try how long its call would wait, unless that cannot be estimated. */
  #answerDeclined(waiter: NaiveWaiter): void {
    const isCapped = !this.order.isUnderCap(waiter, this.view());
    const isHeld = this.room.scopesHolding(waiter.ticket, this.now).length > 0;
    const isUnknown = this.lastEndAt === -Infinity || this.#isStalled() || isCapped || isHeld;
    const wait = isUnknown ? '' : ` for ${this.#estimate(waiter)}`;
    this.answers.push(`declined ${waiter.ticketId}${wait}`);
  }

  #dismiss(waiter: NaiveWaiter | undefined): void {
    if (waiter === undefined) return;
    this.#remove(waiter);
    this.answers.push(`gone ${waiter.ticketId}`);
  }

  #remove(waiter: NaiveWaiter): void {
    this.order.noteActive(waiter.ticket.holder, this.now);
    this.#waiters = this.#waiters.filter((other) => other !== waiter);
  }
}
