import { keepProbes } from '../../src/core/parts/breaker.ts';
import type { LeaseOutcome } from '../../src/core/words/outcome.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { ActiveLease } from '../../src/core/state.ts';
import type { Lane, Ticket } from '../../src/core/words/ticket.ts';
import type { Claim } from '../../src/core/orphaned.ts';
import { NaiveAnswers, type NaiveAtGrant } from './naive-answers.ts';
import { NaiveBound, type NaiveRow } from './naive-bound.ts';
import { NaivePlaces } from './naive-places.ts';
import { NaiveRoom } from './naive-room.ts';
import {
  NaiveScopes,
  type NaiveMember,
  type NaiveLessons,
  type ScopeRules,
} from './naive-scopes.ts';
import {
  NaiveOrder,
  slotsOf,
  type NaiveHold,
  type NaiveView,
  type NaiveWaiter,
} from './naive-order.ts';

export type NaiveLease = Pick<
  ActiveLease,
  'id' | 'ticketId' | 'phase' | 'until' | 'attachment' | 'chargedMs' | 'nested' | 'heirOf'
> &
  Omit<NaiveHold, 'holder'> & {
    /** Has the names of its body once the body was read. */
    holder: Ticket['holder'];
    readonly grantedAt: number;
    /** The member that its holder was told; empty: the group named none. */
    named: string;
    /** It was claimed, and its parent may be claimed yet. */
    seeksParent: boolean;
    /** An earlier instance has granted it. */
    readonly isClaimed: boolean;
    /** It ended without a word of its holder. */
    isLost: boolean;
    /** No answer's disposal ends it. */
    isById: boolean;
    /** When its call could start. */
    callableAt: number;
    isRefused: boolean;
    hasAnswer: boolean;
    /** It was refused because the upstream still counted others. */
    isLagging: boolean;
    /** It cools down after a failure with its caller's own key. */
    isOfKey: boolean;
    /** The slots at the upstream when it could start: of its member, and of its scopes there. */
    atGrant: NaiveAtGrant;
    atGrantIn: Map<NaiveLessons, NaiveAtGrant>;
  };

/** The part of a lease that answers of the upstream are about, before there was one. */
function unanswered(now: number) {
  return {
    callableAt: now,
    isRefused: false,
    hasAnswer: false,
    isLagging: false,
    isOfKey: false,
    atGrant: { slotsAtGrant: 0, slotsCounted: 0, gapMs: Infinity },
    atGrantIn: new Map(),
  };
}

function powerOfTwo(least: number): number {
  let power = least === 0 ? 0 : 1;
  while (power < least) power *= 2;
  return power;
}

/** The slots that a lease takes, or would if the one that it passes on ended. */
export function boundSlots({ slots, nested }: NaiveLease): number {
  return slots > 0 ? slots : (nested?.slots ?? 0);
}

/** Whether a waiter may have a slot before that is written. */
export function mayInherit({ ticket, isAnew }: NaiveWaiter): boolean {
  const isPlain = ticket.slots === 1 && ticket.parents.length === 0;
  return isPlain && !isAnew && ticket.isById !== true;
}

/** The leases of a naive group, and what is told about them. */
export abstract class NaiveLeases {
  settings: GroupSettings;
  protected leaseList: NaiveLease[] = [];
  protected order = new NaiveOrder();
  protected ended: { id: string; at: number }[] = [];
  /** How long the calls that ended well held their slots. */
  protected holds: number[] = [];
  protected grantsFrom = 0;
  protected attachments = 1;
  protected now = 0;
  protected answers: string[] = [];
  /** Of each grant among the answers, whether it waits for no write. */
  settled: boolean[] = [];
  protected bound: NaiveBound;
  protected unclaimedUntil = 0;
  /** When a call last ended. */
  protected lastEndAt = -Infinity;
  /** When a call was last granted. */
  protected lastGrantAt = -Infinity;
  readonly places: NaivePlaces;
  readonly room: NaiveRoom;
  readonly answering: NaiveAnswers;
  /** Lessons about all members in each write, by the number of the write. */
  readonly #written = new Map<number, ReadonlyMap<string, NaiveMember>>();
  /** Leases whose answers wait for a write, and those that the instance before had such answers for at last. */
  protected awaited: string[] = [];
  protected grantedBefore: { readonly id: string; readonly member: string }[] = [];
  /** Leases that the instance before may have granted in the slots of others. */
  protected heirsBefore: string[] = [];
  /** When each slot may be free that was given back, and that one of these may have; and where. */
  protected passedBefore: { readonly freeAt: number; member: string }[] = [];
  /** Leases with a smaller attachment have no slot here; those of this instance have none smaller than `first`. */
  protected since = 1;
  protected first = 1;
  /** Whether all that earlier instances left is accounted for. */
  protected isSettled = true;
  /** Leases that have ended since the last row of the ring. */
  protected freed: string[] = [];
  protected lapsed: string[] = [];
  /** Waiters that the last row tells of. */
  protected toldWaiters = 0;
  /** Leases that lapsed in the instance before: what is unclaimed is not theirs. */
  protected lapsedBefore: string[] = [];

  constructor(settings: GroupSettings, isStored: boolean, rules: ScopeRules, now: number) {
    this.settings = settings;
    this.bound = new NaiveBound(isStored);
    this.places = new NaivePlaces(this);
    const scopes = new NaiveScopes(rules);
    this.room = new NaiveRoom(this, scopes);
    this.answering = new NaiveAnswers(this, this.room);
    // The group learns from its creation, and each member from its first mention.
    scopes.member('', now);
    scopes.waiting = () => this.view().waiters.map(({ ticket }) => ticket.holder);
    scopes.onMoved = (own, moved) => {
      for (const lease of this.leaseList) {
        const isThere = this.room.lessonsOf(lease).includes(moved);
        const isHere = this.room.memberOf(lease).own === own;
        if (isThere && isHere) lease.atGrantIn.set(moved, lease.atGrant);
      }
    };
    this.#written.set(0, this.answering.reports.written(now));
    this.knowServing();
  }

  /** Returns all known members: those that serve, and those where leases count. */
  protected knowServing(at = 0): void {
    for (const { id } of this.places.all()) this.room.scopes.member(id, at);
  }

  /** Notes that the write with this number contains all lessons. */
  noteWritten(seq: number): void {
    this.#written.set(seq, this.answering.reports.written(this.now));
  }

  /** Restores the lessons of the write with this number. 0 if there was no write. */
  protected recoverLearned(seq: number): void {
    const written = this.#written.get(seq);
    if (written === undefined) throw new Error(`write ${seq} took nothing that was learned`);
    this.room.scopes.recover(written);
    this.answering.recover();
  }

  /** The part of the group that the order looks at. */
  protected abstract view(): NaiveView;

  leases(): NaiveLease[] {
    return this.leaseList;
  }

  /** Sums what a tenant has had, by the count of each lane. */
  services(tenant: string): Record<Lane, number> {
    const { high, normal, low } = this.order.account(tenant, null, this.now).lanes;
    return { high: high.service, normal: normal.service, low: low.service };
  }

  slotsInUse(): number {
    return slotsOf(this.leaseList, () => true) + this.slotsOrphaned();
  }

  /** Lists where each lease counts, and where its holder was told that it runs. */
  placed(): unknown[] {
    return this.leaseList.map((lease) => [lease.id, this.places.countsAt(lease), lease.named]);
  }

  slotsOrphaned(): number {
    return this.places.orphaned();
  }

  /** Sums what a mark must cover. */
  slotsHeld(): number {
    return this.leaseList.reduce((sum, lease) => sum + boundSlots(lease), this.slotsOrphaned());
  }

  /** Slots of the group over all members, by its configured and learned limits. */
  protected slotsMax(): number {
    return this.room.slotsLearned();
  }

  /** Issues the row that must be written now; `isInRing`: the next one need not tell again what has ended. */
  issue(isInRing: boolean, now: number): NaiveRow {
    const { bound } = this;
    const held = this.slotsHeld();
    const { isDryRun } = this.settings;
    const serving = this.places.serving();
    const parts = this.places.all().map(({ id }) => {
      const here = this.leaseList.filter((lease) => this.places.countsAt(lease) === id);
      const heldHere = here.reduce(
        (sum, lease) => sum + boundSlots(lease),
        this.places.orphaned(id),
      );
      const isServing = serving.some((each) => each.id === id);
      const limit = isDryRun ? Infinity : isServing ? this.room.slotsLearnedAt(id) : 0;
      const above = this.slotsOrphaned() > 0 ? 0 : bound.margin(heldHere, limit, now);
      return [id, { mark: heldHere + above, held: heldHere }] as const;
    });
    const margin = parts.reduce((sum, [, part]) => sum + part.mark - part.held, 0);
    const isEmpty = held === 0 && (bound.isNotedEmpty || bound.isSparse || margin === 0);
    if (isEmpty) this.since = this.attachments;
    const mark = isEmpty ? 0 : held + margin;
    const granted = [...bound.awaitedInFlight(), ...this.awaited];
    const { ids, unlisted } = this.listNextHolders(now);
    const isOfMembers = this.settings.members.length > 0 && !isEmpty;
    const members = isOfMembers
      ? Object.fromEntries(parts.filter((each) => each[1].mark > 0))
      : undefined;
    const listed = { awaited: this.awaited, answering: granted, heirs: ids, unlisted, members };
    const mayOutlive = !isEmpty && bound.mayOutlive();
    bound.add({ kind: 'issued', at: now, mark, held, ...listed, mayOutlive });
    const nextHolders = [...this.heirsBefore, ...ids];
    const revoking = this.leaseList.filter(({ phase }) => phase === 'revoking');
    const ended = [...this.freed, ...revoking.map(({ id }) => id)];
    const { lapsed } = this;
    if (isInRing) {
      this.freed = [];
      this.lapsed = [];
    }
    this.awaited = [];
    const callersAtOnce = this.callersAtOnce(now);
    const isStillTrue =
      callersAtOnce <= this.toldWaiters && 8 * callersAtOnce > 3 * this.toldWaiters;
    if (!isStillTrue) this.toldWaiters = powerOfTwo(callersAtOnce);
    const { since, attachments: next, toldWaiters: waiters } = this;
    const reported = {
      mark,
      held,
      since,
      next,
      ended,
      lapsed,
      granted,
      heirs: nextHolders,
      waiters,
    };
    const row = { ...reported, ...(mayOutlive && { mayOutlive }) };
    if (members === undefined) return row;
    const memberOf = (id: string): string => {
      const lease = this.lease(id);
      return lease === undefined ? '' : this.places.countsAt(lease);
    };
    const grantedAt = Object.fromEntries(granted.map((id) => [id, memberOf(id)]));
    return { ...row, members, grantedAt };
  }

  /** Lists the next waiters in order, for a write to name as heirs. */
  protected listNextHolders(now: number): { readonly ids: string[]; readonly unlisted: number } {
    const wanted = Math.min(8, this.view().waiters.length);
    if (!this.isPassing(now)) return { ids: [], unlisted: 0 };
    // A write may be later than the last event.
    const view = { ...this.view(), now };
    let { waiters } = view;
    const next: NaiveWaiter[] = [];
    while (next.length < 8) {
      const best = this.order.next({ ...view, waiters });
      if (best === undefined) break;
      next.push(best);
      waiters = waiters.filter((waiter) => waiter !== best);
    }
    const ids = next.filter(mayInherit).map(({ leaseId }) => leaseId);
    return { ids, unlisted: wanted - ids.length };
  }

  /** Whether slots go from hand to hand: all are in use, and none is down after its call. */
  protected isPassing(now: number): boolean {
    const { isDryRun, paused, releaseCooldownMs } = this.settings;
    const lags = this.room.serving().map(({ own }) => own.lag.ms);
    const downMs = releaseCooldownMs === 'auto' ? Math.max(...lags) : releaseCooldownMs;
    const isDown = downMs > 0;
    if (isDryRun || paused || isDown || this.view().waiters.length === 0) return false;
    if (this.slotsOrphaned() > 0 || now < this.grantsFrom) return false;
    return this.slotsInUse() >= this.slotsMax();
  }

  /** Whether the next waiters are to be written now. */
  protected areNextHoldersDue(now: number): boolean {
    const { waiters } = this.view();
    const write = this.bound.exactWrite;
    if (write === null || !this.isPassing(now) || !this.bound.isQuick(now)) return false;
    const wanted = Math.min(8, waiters.length) - write.unlisted;
    const left = waiters.filter(({ leaseId }) => write.heirs.includes(leaseId)).length;
    if (wanted <= 0) return false;
    // A lease that two answers bring is one.
    const answering = new Set(write.answering).size;
    const isLittle = left < wanted / 2 || answering > write.held / 2;
    return isLittle || now >= write.at + 1_000;
  }

  /** How many wait, or did before a reset from which they are still on their way back. */
  protected callersAtOnce(now: number): number {
    const { length } = this.view().waiters;
    return now < this.grantsFrom ? Math.max(length, this.toldWaiters) : length;
  }

  /** The oldest write on its way has arrived. */
  confirm(): void {
    this.bound.add({ kind: 'confirmed' });
  }

  /** Whether a holder has its lease from an instance that has replaced this one. */
  isOfNewer(attachment: number | null): boolean {
    return this.bound.isStored && attachment !== null && attachment >= this.attachments;
  }

  protected open(
    wanted: NaiveHold & {
      readonly id: string;
      readonly ticketId: string;
      readonly named: string;
      readonly isById: boolean;
    },
    nested: NaiveLease['nested'] = null,
    by: Pick<NaiveLease, 'heirOf'> & { readonly isAnew: boolean } = { heirOf: [], isAnew: false },
  ): void {
    const { heirOf: nextHolderOf, isAnew } = by;
    const lease = {
      ...wanted,
      nested,
      heirOf: nextHolderOf,
      phase: 'held',
      grantedAt: this.now,
      until: this.now + 45_000,
      attachment: this.attachments++,
      chargedMs: 0,
      seeksParent: false,
      isClaimed: false,
      isLost: false,
      ...unanswered(this.now),
    } as NaiveLease;
    this.knowMember(lease);
    if (lease.isById) this.bound.add({ kind: 'by_id' });
    this.order.see(lease.holder, this.now, this.view());
    this.order.noteActive(lease.holder, this.now);
    this.leaseList.push(lease);
    this.answering.callable(lease, this.now);
    const isPassed = nextHolderOf.length > 0;
    this.addGranted(lease, boundSlots(lease), isPassed);
    this.chargeTo(lease, this.holds.length === 0 ? 1 : this.meanHold());
    this.lastGrantAt = this.now;
    this.grant(lease, isAnew, isPassed);
  }

  /** Adds the member of a lease if it is unknown. */
  protected knowMember(lease: Pick<NaiveLease, 'named'>): void {
    this.room.scopes.member(this.places.countsAt(lease), this.now);
  }

  protected addGranted(lease: NaiveLease, slots: number, isPassed: boolean): void {
    const member = this.places.countsAt(lease);
    this.bound.add({ kind: 'granted', at: this.now, member, slots, isPassed });
  }

  /** Answers with a lease; `isAnew`: somebody who has lost an answer. */
  protected grant({ id, isById }: NaiveLease, isAnew = false, isPassed = false): void {
    this.answers.push(`grant ${id}`);
    const isUntold = isById && !this.bound.isOutlivingReported();
    const mustWait = this.bound.isStored && (isAnew || isUntold);
    const isSettled = !mustWait && (isPassed || this.bound.isSettled(this.now));
    this.settled.push(isSettled);
    if (!isSettled) this.awaited.push(id);
  }

  protected mayClaim({ leaseId, attachment, hasLapsed }: Claim): boolean {
    if (this.slotsOrphaned() === 0 || hasLapsed) return false;
    if (this.lapsedBefore.includes(leaseId)) return false;
    return attachment === null || (attachment >= this.since && attachment < this.first);
  }

  /** Makes the lease of a holder of an earlier instance, with slots out of those that nobody has claimed. */
  protected claim(claim: Claim): NaiveLease {
    const { leaseId: id, ticketId, holder, lane, nested, heldMs, member: named = '' } = claim;
    const { isById = false } = claim;
    const member = this.places.countsAt({ named });
    this.knowMember({ named });
    this.hearOfHeir(claim, member);
    const unmarked = claim.slots - this.places.claim(member, claim.slots);
    this.places.claim('', unmarked);
    this.bound.add({ kind: 'granted', at: this.now, member, slots: unmarked, isPassed: false });
    const lease = {
      named,
      id,
      ticketId,
      holder,
      lane,
      nested,
      heirOf: claim.heirOf,
      waitsElsewhere: false,
      phase: 'held',
      slots: claim.slots,
      grantedAt: this.now - heldMs,
      chargedMs: heldMs,
      until: this.now + 45_000,
      attachment: this.attachments++,
      seeksParent: nested !== null,
      isClaimed: true,
      isLost: false,
      isById,
      ...unanswered(this.now - heldMs),
    } as NaiveLease;
    if (isById) this.bound.add({ kind: 'by_id' });
    this.order.see(holder, this.now, this.view());
    this.order.noteActive(holder, this.now);
    this.leaseList.push(lease);
    this.places.noteRun(lease, this.now);
    const isConcerned = (each: NaiveLease): boolean => each === lease || each.nested?.in === id;
    for (const child of this.leaseList.filter(isConcerned)) this.nestAgain(child);
    return lease;
  }

  /** Lets a lease that was claimed pass on its parent's slots again, once both are there. */
  protected nestAgain(child: NaiveLease): void {
    const parent = this.leaseList.find(({ id }) => id === child.nested?.in);
    if (!child.seeksParent || child.phase === 'cooling') return;
    if (parent === undefined || parent.phase === 'cooling') return;
    if (parent.nested !== null && parent.slots === 0) return;
    Object.assign(child, { slots: 0, seeksParent: false });
    this.order.see(child.holder, this.now, this.view());
    this.order.noteActive(child.holder, this.now);
  }

  /** Ends what earlier instances left, once nothing of it is unclaimed. */
  protected settleUnclaimed(): void {
    if (this.slotsOrphaned() > 0 || this.isSettled) return;
    this.isSettled = true;
    this.since = this.first;
    this.grantedBefore = [];
    this.lapsedBefore = [];
    this.heirsBefore = [];
    this.passedBefore = [];
    for (const lease of this.leaseList) lease.seeksParent = false;
    this.endLostProbes();
  }

  /** Ends probes of an earlier instance whose leases were not reclaimed. */
  protected endLostProbes(): void {
    for (const member of this.room.scopes.members.values()) {
      for (const { breaker } of this.room.scopes.allOf(member)) {
        keepProbes(breaker, (id) => this.leaseList.some((lease) => lease.id === id));
      }
    }
  }

  protected chargeTo(lease: NaiveLease, heldMs: number): void {
    const slotMs = lease.slots * (heldMs - lease.chargedMs);
    lease.chargedMs = heldMs;
    this.order.charge(lease.holder, slotMs, this.now, this.view());
  }

  protected answerWith(lease: NaiveLease, isAnew = false): void {
    lease.attachment = this.attachments++;
    if (lease.phase === 'held') this.renewLease(lease);
    this.grant(lease, isAnew);
  }

  /** An heir of the instance before tells who had its slot before it: they have ended. */
  protected hearOfHeir({ leaseId, heirOf }: Claim, member: string): void {
    const heirs = [leaseId, ...heirOf];
    for (const [index, before] of heirOf.entries()) {
      this.#hearOfPassage(heirs[index], before, member);
    }
  }

  #hearOfPassage(heir: string | undefined, before: string, member: string): void {
    if (heir === undefined || !this.heirsBefore.includes(heir)) return;
    this.heirsBefore = this.heirsBefore.filter((id) => id !== heir);
    if (this.hasEnded(before)) {
      const here = this.#passed().find((passed) => passed.member === member);
      const kept = here ?? this.#passed().find((passed) => passed.member === '');
      this.passedBefore = this.passedBefore.filter((passed) => passed !== kept);
      return;
    }
    this.forgetWaiter(before);
    if (this.lease(before) !== undefined) return;
    this.tombstone(before);
    if (this.bound.isStored) this.freed.push(before);
  }

  /** Takes out who waits under an id, without a word. */
  protected abstract forgetWaiter(leaseId: string): void;

  /** A ticket has no lease that an instance before granted. */
  protected strikeHeirs(ticketId: string): void {
    this.heirsBefore = this.heirsBefore.filter((id) => id.replace(/\.\d+$/, '') !== ticketId);
    this.freePassed();
  }

  /** Keeps the slot of a lease of an earlier instance that has ended, for the heir that may have it. */
  protected keepForHeir(lease: NaiveLease): void {
    if (this.heirsBefore.length === 0 || lease.slots !== 1 || lease.nested !== null) return;
    const freeAt = lease.phase === 'cooling' ? lease.until : this.now;
    this.leaseList = this.leaseList.filter((other) => other !== lease);
    const member = this.places.countsAt(lease);
    this.places.holdOrphaned(member, 1);
    this.unclaimedUntil = Math.max(this.unclaimedUntil, freeAt);
    this.passedBefore.push({ freeAt, member });
  }

  /** Frees those of which there are more than heirs. */
  protected freePassed(): void {
    for (
      let next = this.#nextPassed();
      next !== undefined && this.now >= next.freeAt;
      next = this.#nextPassed()
    ) {
      const freed = next;
      this.passedBefore = this.passedBefore.filter((passed) => passed !== freed);
      this.places.claim(freed.member, 1);
    }
  }

  protected passedDueAt(): number {
    return this.#nextPassed()?.freeAt ?? Infinity;
  }

  #passed(): readonly { readonly freeAt: number; readonly member: string }[] {
    return this.passedBefore.toSorted((a, b) => a.freeAt - b.freeAt);
  }

  /** Finds the first slot at whose member more were given back than there are heirs. */
  #nextPassed(): { readonly freeAt: number; readonly member: string } | undefined {
    const countAt = (member: string): number =>
      this.passedBefore.filter((passed) => passed.member === member).length;
    return this.#passed().find(({ member }) => countAt(member) > this.heirsBefore.length);
  }

  protected renewLease(lease: NaiveLease): void {
    Object.assign(lease, { until: this.now + 45_000 });
  }

  protected end(lease: NaiveLease, outcome: LeaseOutcome, isUnused = outcome === 'unused'): void {
    if (lease.phase === 'cooling') return;
    if (!isUnused) {
      this.answering.endedThere(lease, this.now);
      this.lastEndAt = this.now;
    }
    this.tombstone(lease.id);
    this.answers.push(`ended ${lease.id}`);
    const heldMs = this.now - lease.grantedAt;
    lease.waitsElsewhere = false;
    this.endNesting(lease.id);
    this.chargeTo(lease, outcome === 'unused' ? 0 : heldMs);
    if (outcome === 'success' || outcome === 'cancelled') this.holds.push(heldMs);
    if (outcome === 'success') this.answering.endedWell(lease, this.now);
    this.answering.left(lease, this.room.lessonsOf(lease), false, this.now);
    const downMs = lease.slots === 0 ? 0 : this.#downMs(lease, outcome);
    if (downMs > 0) {
      Object.assign(lease, { phase: 'cooling', until: this.now + downMs, isRefused: false });
      lease.isOfKey = outcome === 'failed' && (lease.holder.credential ?? null) !== null;
      if (this.bound.isStored) this.freed.push(lease.id);
    } else {
      this.remove(lease);
    }
  }

  /** The cool-down of the slots of a lease that ends this way. */
  #downMs(lease: NaiveLease, outcome: LeaseOutcome): number {
    const { releaseCooldownMs, cancelCooldownMs, failureCooldownMs } = this.settings;
    if (outcome === 'failed' && !this.answering.speaksForAll(lease, this.now)) return 0;
    const downMs = {
      success: releaseCooldownMs,
      cancelled: cancelCooldownMs === 'auto' ? releaseCooldownMs : cancelCooldownMs,
      failed: lease.isLagging ? releaseCooldownMs : failureCooldownMs,
      refused: 0,
      unused: 0,
    }[outcome];
    return downMs === 'auto' ? this.answering.cooldownMs(lease) : downMs;
  }

  /** Takes a lease out: its slots are free. */
  protected remove(lease: NaiveLease): void {
    this.leaseList = this.leaseList.filter((other) => other !== lease);
    this.order.noteActive(lease.holder, this.now);
    // What cools down was told of when that began.
    const isTold = lease.phase === 'cooling' || !this.bound.isStored;
    const hasLapsed = lease.phase === 'held' && this.now >= lease.until;
    if (!isTold) (hasLapsed ? this.lapsed : this.freed).push(lease.id);
    if (lease.isLost) this.bound.add({ kind: 'lost' });
  }

  /** Ends the passage on its slots: what passed there counts itself from now on. */
  protected endNesting(id: string): void {
    for (const lease of this.nestedIn(id)) {
      const chargedMs = this.now - lease.grantedAt;
      // Its run begins here if it was idle for long: a nested call uses no slots of its own until now.
      this.order.see(lease.holder, this.now, this.view());
      this.order.noteActive(lease.holder, this.now);
      Object.assign(lease, { slots: lease.nested?.slots, chargedMs });
    }
  }

  /** Lists what passes on the slots of a lease. */
  protected nestedIn(id: string): NaiveLease[] {
    return this.leaseList.filter(({ nested, slots }) => nested?.in === id && slots === 0);
  }

  /** Of n samples the newest counts an n-th, and a fifth from the fifth on; ten seconds before the first. */
  protected meanHold(): number {
    return this.holds.reduce((mean, heldMs, at) => {
      return mean + Math.max(0.2, 1 / (at + 1)) * (heldMs - mean);
    }, 10_000);
  }

  protected tombstone(id: string): void {
    this.ended = [...this.ended.filter((other) => other.id !== id), { id, at: this.now }];
  }

  /**
   * Whether something of a ticket ended so long ago that a group may have forgotten it. This one never does.
   */
  mayBeForgotten(ticketId: string, now: number): boolean {
    return this.ended.some(
      ({ id, at }) => now >= at + 600_000 && (id === ticketId || id.startsWith(`${ticketId}.`)),
    );
  }

  protected hasEnded(id: string): boolean {
    return this.ended.some((other) => other.id === id);
  }

  protected lease(id: string): NaiveLease | undefined {
    return this.leaseList.find((lease) => lease.id === id);
  }
}
