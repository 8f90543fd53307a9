import type { Outcome } from '../../src/core/words/outcome.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Lease } from '../../src/core/state.ts';
import type { Lane } from '../../src/core/words/ticket.ts';
import { NaiveOrder, slotsOf, type NaiveHold, type NaiveView } from './naive-order.ts';

export type NaiveLease = Pick<
  Lease,
  | 'id'
  | 'ticketId'
  | 'phase'
  | 'until'
  | 'attachment'
  | 'extendedUntil'
  | 'extensions'
  | 'chargedMs'
  | 'nested'
> &
  NaiveHold & { readonly grantedAt: number };

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

  constructor(settings: GroupSettings) {
    this.settings = settings;
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
    return slotsOf(this.leaseList, () => true);
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
      extendedUntil: null,
      extensions: 0,
      chargedMs: 0,
    } as NaiveLease;
    this.order.see(lease.holder, this.now, this.view());
    this.leaseList.push(lease);
    this.chargeTo(lease, this.holds.length === 0 ? 1 : this.meanHold());
    this.answers.push(`grant ${wanted.id}`);
  }

  protected chargeTo(lease: NaiveLease, heldMs: number): void {
    const slotMs = lease.slots * (heldMs - lease.chargedMs);
    lease.chargedMs = heldMs;
    this.order.charge(lease.holder, slotMs, this.now, this.view());
  }

  protected answerWith(lease: NaiveLease): void {
    lease.attachment = this.attachments++;
    if (lease.phase === 'held') this.renewLease(lease);
    this.answers.push(`grant ${lease.id}`);
  }

  protected renewLease(lease: NaiveLease): void {
    Object.assign(lease, { until: this.now + 45_000, extendedUntil: null, extensions: 0 });
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
    const { releaseCooldownMs, cancelCooldownMs, failureCooldownMs, slotsMax } = this.settings;
    const hold = {
      success: releaseCooldownMs,
      cancelled: cancelCooldownMs,
      failed: failureCooldownMs,
      refused: 0,
      unused: 0,
    }[outcome];
    const autoMs = slotsMax <= 4 ? 200 : 0;
    const downMs = lease.slots === 0 ? 0 : hold === 'auto' ? autoMs : hold;
    if (downMs > 0) Object.assign(lease, { phase: 'cooling', until: this.now + downMs });
    else this.leaseList = this.leaseList.filter((other) => other !== lease);
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
