import type { GroupEvent } from '../../src/core/events.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import type { LeaseRow } from '../../src/core/recover.ts';
import type { GroupSettings } from '../../src/core/settings.ts';
import type { Lease } from '../../src/core/state.ts';

/**
 * What a group should do, written as plainly as possible: arrays, nothing remembered that can be worked
 * out again, every number spelled out here rather than taken from the code under test.
 */
type NaiveLease = Pick<
  Lease,
  'id' | 'ticketId' | 'phase' | 'until' | 'attachment' | 'extendedUntil'
>;

interface NaiveWaiter {
  ticketId: string;
  leaseId: string;
  enqueuedAt: number;
  arrival: number;
  deadlineAt: number;
  sliceEndsAt: number | null;
  orphanAt: number;
}

type Acquire = Extract<GroupEvent, { kind: 'acquire' }>;
type Resume = Extract<GroupEvent, { kind: 'resume' }>;

export class NaiveGroup {
  settings: GroupSettings;
  #leases: NaiveLease[] = [];
  #waiters: NaiveWaiter[] = [];
  #ended: { id: string; forgetAt: number }[] = [];
  #grantsFrom = 0;
  #arrivals = 0;
  #attachments = 1;
  #now = 0;
  #answers: string[] = [];

  constructor(settings: GroupSettings) {
    this.settings = settings;
  }

  recover(rows: readonly LeaseRow[], firstAttachment: number, now: number): void {
    this.#attachments = firstAttachment;
    this.#leases = rows.map((row) => {
      const { id, ticketId, phase, coolingUntil } = row;
      const extendedUntil = coolingUntil === null ? (row.extendedUntil ?? now + 45_000) : null;
      const until = coolingUntil ?? extendedUntil;
      return { id, ticketId, phase, until, extendedUntil, attachment: this.#attachments++ };
    }) as NaiveLease[];
    this.#waiters = [];
    const cooling = rows.filter(({ phase }) => phase === 'cooling');
    this.#ended = cooling.map(({ id }) => ({ id, forgetAt: now + 600_000 }));
    this.#grantsFrom = rows.length > 0 ? now + 500 : 0;
  }

  /** The answers that the event must bring, in order. */
  handle(event: GroupEvent, now: number): string[] {
    this.#now = now;
    this.#answers = [];
    this.#endWhatIsDue();
    this.#apply(event);
    this.#grantWhatFits();
    return this.#answers;
  }

  /** The earliest instant after `now` at which time alone changes something. */
  nextDueAt(now: number): number {
    const dues = this.#leases.map(({ until }): number => until);
    for (const { deadlineAt, sliceEndsAt, orphanAt } of this.#waiters) {
      dues.push(deadlineAt, sliceEndsAt ?? orphanAt);
    }
    if (this.#waiters.length > 0 && this.#grantsFrom > now) dues.push(this.#grantsFrom);
    return Math.min(...dues);
  }

  leases(): NaiveLease[] {
    return this.#leases;
  }

  /** The waiting line, best first. */
  line(): NaiveWaiter[] {
    return this.#waiters.toSorted((a, b) => a.enqueuedAt - b.enqueuedAt || a.arrival - b.arrival);
  }

  mayGrant(now: number): boolean {
    const { paused, slotsMax } = this.settings;
    return !paused && now >= this.#grantsFrom && this.#leases.length < slotsMax;
  }

  #apply(event: GroupEvent): void {
    const lease = 'leaseId' in event ? this.#lease(event.leaseId) : undefined;
    switch (event.kind) {
      case 'acquire':
        return this.#acquire(event);
      case 'resume':
        return this.#resume(event);
      case 'renew':
        if (lease?.phase === 'held') this.#prolong(lease);
        return;
      case 'release':
        if (lease !== undefined) return this.#end(lease, event.outcome);
        this.#dismiss((waiter) => waiter.leaseId === event.leaseId);
        return this.#bury(event.leaseId);
      case 'detach':
        if (lease?.attachment === event.attachment) this.#end(lease, 'cancelled');
        return;
      case 'cancel':
        this.#dismiss((waiter) => waiter.ticketId === event.ticketId);
        for (const held of this.#leases.filter(({ ticketId }) => ticketId === event.ticketId)) {
          this.#end(held, 'cancelled');
        }
        return this.#bury(event.ticketId);
      case 'revoke':
        if (lease?.phase !== 'held') return;
        lease.phase = 'revoking';
        this.#answers.push(`revoked ${lease.id}`);
        return;
      case 'reconfigure':
        this.settings = event.settings;
        return;
      case 'move':
        for (const { ticketId } of this.line()) this.#answers.push(`moved ${ticketId}`);
        if (this.#waiters.length === 0) return;
        this.#waiters = [];
        this.#grantsFrom = Math.max(this.#grantsFrom, this.#now + 250);
        return;
      case 'tick':
        return;
    }
  }

  #acquire({ ticket, leaseId, sliceMs }: Acquire): void {
    const isAnswered = this.#answers.some((answer) => answer.split(' ')[1] === ticket.id);
    if (isAnswered) return;
    if (this.#hasEnded(leaseId) || this.#hasEnded(ticket.id)) {
      this.#answers.push(`gone ${ticket.id}`);
      return;
    }
    const lease = this.#lease(leaseId);
    if (lease?.phase === 'held') return this.#answerWith(lease);
    if (lease !== undefined) {
      this.#answers.push(`gone ${ticket.id}`);
      return;
    }
    const sliceEndsAt = this.#now + sliceMs;
    const known = this.#waiters.find(({ ticketId }) => ticketId === ticket.id);
    if (known !== undefined) {
      known.sliceEndsAt = sliceEndsAt;
      return;
    }
    const { timeoutMs, paused, queueLengthMax } = this.settings;
    const enqueuedAt = Math.min(Math.max(ticket.enqueuedAt, this.#now - timeoutMs), this.#now + 1);
    const deadlineAt = Math.min(ticket.deadlineAt ?? Infinity, enqueuedAt + timeoutMs);
    const place = { enqueuedAt, arrival: this.#arrivals++, deadlineAt, sliceEndsAt, orphanAt: 0 };
    const waiter = { ticketId: ticket.id, leaseId, ...place };
    this.#waiters.push(waiter);
    this.#grantWhatFits();
    if (!this.#waiters.includes(waiter)) return;
    if (!ticket.wait) this.#reject(waiter, paused ? 'paused' : 'busy');
    else if (this.#waiters.length > queueLengthMax) this.#reject(waiter, 'queue_full');
  }

  #resume({ leaseId, ticketId }: Resume): void {
    if (this.#hasEnded(leaseId) || this.#hasEnded(ticketId)) {
      this.#answers.push(`gone ${ticketId}`);
      return;
    }
    this.#waiters = this.#waiters.filter((waiter) => waiter.ticketId !== ticketId);
    const lease = this.#lease(leaseId);
    if (lease === undefined) this.#open(leaseId, ticketId);
    else this.#answerWith(lease);
  }

  #endWhatIsDue(): void {
    for (const lease of this.#leases.filter(({ until }) => this.#now >= until)) {
      this.#leases = this.#leases.filter((other) => other !== lease);
      if (lease.phase === 'revoking') this.#bury(lease.id);
      if (lease.phase !== 'cooling') this.#answers.push(`ended ${lease.id}`);
    }
    for (const waiter of this.line()) {
      if (this.#now >= waiter.deadlineAt) {
        this.#reject(waiter, this.settings.paused ? 'paused' : 'queue_timeout');
      } else if (waiter.sliceEndsAt === null) {
        if (this.#now >= waiter.orphanAt) this.#remove(waiter);
      } else if (this.#now >= waiter.sliceEndsAt) {
        waiter.sliceEndsAt = null;
        waiter.orphanAt = this.#now + 5_000;
        this.#answers.push(`pending ${waiter.ticketId} at ${this.line().indexOf(waiter)}`);
      }
    }
  }

  #grantWhatFits(): void {
    for (const waiter of this.line()) {
      if (!this.mayGrant(this.#now)) return;
      if (waiter.sliceEndsAt === null) continue;
      this.#remove(waiter);
      this.#open(waiter.leaseId, waiter.ticketId);
    }
  }

  #open(id: string, ticketId: string): void {
    const until = this.#now + 45_000;
    const attachment = this.#attachments++;
    const lease = { id, ticketId, phase: 'held', until, attachment, extendedUntil: null };
    this.#leases.push(lease as NaiveLease);
    this.#answers.push(`grant ${id}`);
  }

  #answerWith(lease: NaiveLease): void {
    lease.attachment = this.#attachments++;
    if (lease.phase === 'held') this.#prolong(lease);
    this.#answers.push(`grant ${lease.id}`);
  }

  #prolong(lease: NaiveLease): void {
    Object.assign(lease, { until: this.#now + 45_000, extendedUntil: null });
  }

  #end(lease: NaiveLease, outcome: Outcome): void {
    if (lease.phase === 'cooling') return;
    this.#bury(lease.id);
    this.#answers.push(`ended ${lease.id}`);
    const { releaseCooldownMs, cancelCooldownMs, failureHoldMs, slotsMax } = this.settings;
    const hold = {
      success: releaseCooldownMs,
      cancelled: cancelCooldownMs,
      failed: failureHoldMs,
      unused: 0,
    }[outcome];
    const downMs = hold === 'auto' ? (slotsMax <= 4 ? 200 : 0) : hold;
    if (downMs > 0) Object.assign(lease, { phase: 'cooling', until: this.#now + downMs });
    else this.#leases = this.#leases.filter((other) => other !== lease);
  }

  #reject(waiter: NaiveWaiter, reason: string): void {
    this.#remove(waiter);
    this.#answers.push(`reject ${waiter.ticketId} ${reason}`);
  }

  #dismiss(isMeant: (waiter: NaiveWaiter) => boolean): void {
    for (const waiter of this.#waiters.filter(isMeant)) {
      this.#remove(waiter);
      this.#answers.push(`gone ${waiter.ticketId}`);
    }
  }

  #remove(waiter: NaiveWaiter): void {
    this.#waiters = this.#waiters.filter((other) => other !== waiter);
  }

  #bury(id: string): void {
    const others = this.#ended.filter((other) => other.id !== id && other.forgetAt > this.#now);
    this.#ended = [...others, { id, forgetAt: this.#now + 600_000 }];
  }

  #hasEnded(id: string): boolean {
    return this.#ended.some((other) => other.id === id);
  }

  #lease(id: string): NaiveLease | undefined {
    return this.#leases.find((lease) => lease.id === id);
  }
}
