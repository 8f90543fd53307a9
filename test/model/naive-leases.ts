import type { Outcome } from '../../src/core/words/outcome.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Lease } from '../../src/core/state.ts';
import type { Lane } from '../../src/core/words/ticket.ts';
import type { Claim } from '../../src/core/unclaimed.ts';
import { NaiveBound, type NaiveRow } from './naive-bound.ts';
import { NaiveOrder, slotsOf, type NaiveHold, type NaiveView } from './naive-order.ts';

export type NaiveLease = Pick<
  Lease,
  'id' | 'ticketId' | 'phase' | 'until' | 'attachment' | 'chargedMs' | 'nested'
> &
  NaiveHold & {
    readonly grantedAt: number;
    /** It was claimed, and its parent may be claimed yet. */
    seeksParent: boolean;
    /** An earlier instance has granted it. */
    readonly isClaimed: boolean;
    /** It ended without a word of its holder. */
    isLost: boolean;
  };

function powerOfTwo(least: number): number {
  let power = least === 0 ? 0 : 1;
  while (power < least) power *= 2;
  return power;
}

/** The slots that a lease takes, or would if the one that it passes on ended. */
function boundSlots({ slots, nested }: NaiveLease): number {
  return slots > 0 ? slots : (nested?.slots ?? 0);
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
  protected unclaimed = { slots: 0, until: 0 };
  /** Leases whose answers wait for a write, and those that the instance before had such answers for at last. */
  protected awaited: string[] = [];
  protected grantedBefore: string[] = [];
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

  constructor(settings: GroupSettings, isStored: boolean) {
    this.settings = settings;
    this.bound = new NaiveBound(isStored);
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
    return slotsOf(this.leaseList, () => true) + this.unclaimed.slots;
  }

  slotsUnclaimed(): number {
    return this.unclaimed.slots;
  }

  /** Sums what a mark must cover. */
  slotsHeld(): number {
    return this.leaseList.reduce((sum, lease) => sum + boundSlots(lease), this.unclaimed.slots);
  }

  /** Issues the row that must be written now; `isInRing`: the next one need not tell again what has ended. */
  issue(isInRing: boolean, now: number): NaiveRow {
    const { bound } = this;
    const held = this.slotsHeld();
    const limit = this.settings.isDryRun ? Infinity : this.settings.slotsMax;
    const margin = this.unclaimed.slots > 0 ? 0 : bound.margin(held, limit, now);
    const isEmpty = held === 0 && (bound.isNotedEmpty || bound.isSparse || margin === 0);
    if (isEmpty) this.since = this.attachments;
    const mark = isEmpty ? 0 : held + margin;
    const granted = [...bound.awaitedInFlight(), ...this.awaited];
    bound.add({ kind: 'issued', at: now, mark, held, awaited: this.awaited });
    const revoking = this.leaseList.filter(({ phase }) => phase === 'revoking');
    const ended = [...this.freed, ...revoking.map(({ id }) => id)];
    const { lapsed } = this;
    if (isInRing) {
      this.freed = [];
      this.lapsed = [];
    }
    this.awaited = [];
    const crowd = this.crowd(now);
    const isStillTrue = crowd <= this.toldWaiters && 8 * crowd > 3 * this.toldWaiters;
    if (!isStillTrue) this.toldWaiters = powerOfTwo(crowd);
    const { since, attachments: next, toldWaiters: waiters } = this;
    return { mark, held, since, next, ended, lapsed, granted, waiters };
  }

  /** How many wait, or did before a reset from which they are still on their way back. */
  protected crowd(now: number): number {
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

  protected hasRoom(slots: number): boolean {
    const { paused, slotsMax } = this.settings;
    if (paused || this.now < this.grantsFrom || slotsMax === 0) return false;
    return this.slotsInUse() + slots <= slotsMax;
  }

  protected open(
    wanted: NaiveHold & { readonly id: string; readonly ticketId: string },
    nested: NaiveLease['nested'] = null,
  ): void {
    const lease = {
      ...wanted,
      nested,
      phase: 'held',
      grantedAt: this.now,
      until: this.now + 45_000,
      attachment: this.attachments++,
      chargedMs: 0,
      seeksParent: false,
      isClaimed: false,
      isLost: false,
    } as NaiveLease;
    this.order.see(lease.holder, this.now, this.view());
    this.leaseList.push(lease);
    this.bound.add({ kind: 'granted', at: this.now, slots: boundSlots(lease) });
    this.chargeTo(lease, this.holds.length === 0 ? 1 : this.meanHold());
    this.grant(lease);
  }

  protected grant({ id }: NaiveLease): void {
    this.answers.push(`grant ${id}`);
    const isSettled = this.bound.isSettled(this.now);
    this.settled.push(isSettled);
    if (!isSettled) this.awaited.push(id);
  }

  protected mayClaim({ leaseId, attachment, hasLapsed }: Claim): boolean {
    if (this.unclaimed.slots === 0 || hasLapsed) return false;
    if (this.lapsedBefore.includes(leaseId)) return false;
    return attachment === null || (attachment >= this.since && attachment < this.first);
  }

  /** Makes the lease of a holder of an earlier instance, with slots out of those that nobody has claimed. */
  protected claim(claim: Claim): NaiveLease {
    const { leaseId: id, ticketId, holder, lane, nested, heldMs } = claim;
    const taken = Math.min(claim.slots, this.unclaimed.slots);
    this.unclaimed.slots -= taken;
    this.bound.add({ kind: 'granted', at: this.now, slots: claim.slots - taken });
    const lease = {
      id,
      ticketId,
      holder,
      lane,
      nested,
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
    } as NaiveLease;
    this.order.see(holder, this.now, this.view());
    this.leaseList.push(lease);
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
  }

  /** Ends what earlier instances left, once nothing of it is unclaimed. */
  protected settleUnclaimed(): void {
    if (this.unclaimed.slots > 0 || this.isSettled) return;
    this.isSettled = true;
    this.since = this.first;
    this.grantedBefore = [];
    this.lapsedBefore = [];
    for (const lease of this.leaseList) lease.seeksParent = false;
  }

  protected chargeTo(lease: NaiveLease, heldMs: number): void {
    const slotMs = lease.slots * (heldMs - lease.chargedMs);
    lease.chargedMs = heldMs;
    this.order.charge(lease.holder, slotMs, this.now, this.view());
  }

  protected answerWith(lease: NaiveLease): void {
    lease.attachment = this.attachments++;
    if (lease.phase === 'held') this.renewLease(lease);
    this.grant(lease);
  }

  protected renewLease(lease: NaiveLease): void {
    Object.assign(lease, { until: this.now + 45_000 });
  }

  protected end(lease: NaiveLease, outcome: Outcome): void {
    if (lease.phase === 'cooling') return;
    this.tombstone(lease.id);
    this.answers.push(`ended ${lease.id}`);
    const heldMs = this.now - lease.grantedAt;
    lease.waitsElsewhere = false;
    this.endNesting(lease.id);
    this.chargeTo(lease, outcome === 'unused' ? 0 : heldMs);
    if (outcome === 'success' || outcome === 'cancelled') this.holds.push(heldMs);
    const { releaseCooldownMs, cancelCooldownMs, failureCooldownMs } = this.settings;
    const hold = {
      success: releaseCooldownMs,
      cancelled: cancelCooldownMs === 'auto' ? releaseCooldownMs : cancelCooldownMs,
      failed: failureCooldownMs,
      refused: 0,
      unused: 0,
    }[outcome];
    // No upstream refuses anything here, so nothing is known of a lag.
    const downMs = lease.slots === 0 || hold === 'auto' ? 0 : hold;
    if (downMs > 0) {
      Object.assign(lease, { phase: 'cooling', until: this.now + downMs });
      if (this.bound.isStored) this.freed.push(lease.id);
    } else {
      this.remove(lease);
    }
  }

  /** Takes a lease out: its slots are free. */
  protected remove(lease: NaiveLease): void {
    this.leaseList = this.leaseList.filter((other) => other !== lease);
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
