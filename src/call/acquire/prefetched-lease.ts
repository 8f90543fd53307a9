import type { CallNotes, LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import { PREFETCH_TTL_MS } from '../../core/words/settings.ts';
import { steadyClock } from '../../runtime/clock.ts';
import { LeaseHolder, type AskedLease, type CallLease, type LeaseEnd } from './lease-holder.ts';
import { seeToKeeper, type PrefetchContext } from './prefetched-slots.ts';
import type { PrefetchedCall, LocalPrefetch, LocalSlot } from './local-prefetch.ts';
import { giveBack } from './prefetch-keeper.ts';

/** How long a call runs on a prefetched slot before it acquires its own lease. */
const OWN_AFTER_MS = 1_000;

interface PrefetchedLeaseParts {
  readonly loan: LocalPrefetch;
  readonly slot: LocalSlot;
  readonly access: PrefetchContext;
  readonly known: PrefetchedCall;
  /** Builds the request for a slot, which the lease then answers. */
  readonly asked: () => AskedLease;
  readonly onEnd: (end: LeaseEnd) => void;
}

/**
 * The hold of a call on a prefetched slot. If the call succeeds within a second, its group receives it with others in
 * one report. Otherwise the slot becomes a lease of its own.
 */
export class PrefetchedLease implements CallLease {
  readonly #parts: PrefetchedLeaseParts;
  readonly #beganAt = steadyClock.now();
  /** The lease that the slot has become. null while it is a prefetched slot. */
  #own: LeaseHolder | null = null;
  #status: number | null = null;
  #notes: CallNotes | undefined;
  #isReleased = false;
  #callOff: (() => void) | null = null;
  readonly wantsServed = false;
  readonly hasWaiters = false;

  constructor(parts: PrefetchedLeaseParts) {
    this.#parts = parts;
  }

  get leaseId(): string {
    return this.#parts.known.leaseId;
  }

  reportAnswer(status: number, notes?: CallNotes): void {
    this.#status = status;
    if (notes !== undefined) this.#notes = { ...this.#notes, ...notes };
    this.#own?.reportAnswer(status, notes);
  }

  report(signal: UpstreamSignal, isRepeat: boolean): void {
    // Another call may run on its slot by now.
    if (!this.#isReleased || this.#own !== null) this.#takeOwn().report(signal, isRepeat);
  }

  keep(onRevoked: () => void): void {
    const { after } = this.#parts.access;
    this.#callOff = after(OWN_AFTER_MS, () => {
      if (!this.#isReleased) this.#takeOwn().keep(onRevoked);
    });
  }

  /** A call that waits for other groups never runs on a prefetched slot. */
  async confirm(): Promise<void> {}

  yieldSlot(): Promise<void> {
    return this.release('unused');
  }

  forRun(): ReturnType<CallLease['forRun']> {
    return this.#isReleased ? Promise.resolve(null) : this.#takeOwn().forRun();
  }

  letGo(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#callOff?.();
    this.#takeOwn().letGo();
  }

  async release(outcome: LeaseOutcome, settlement?: Settlement): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#callOff?.();
    const isReported = outcome === 'success' || outcome === 'unused';
    const isReserved = settlement !== undefined && settlement.bill === undefined;
    if (this.#own !== null || !isReported || isReserved) {
      return this.#takeOwn().release(outcome, settlement);
    }
    const { loan: prefetch, slot, access, known, onEnd } = this.#parts;
    if (outcome === 'success') {
      prefetch.note(known, slot, this.#status, this.#beganAt, this.#notes?.requestId, settlement);
    }
    onEnd({ outcome, status: this.#status, reason: null, used: settlement ?? null });
    if (prefetch.takeBack(slot)) await giveBack(prefetch, [slot], access.pool, access.after);
    else seeToKeeper(prefetch, access);
  }

  /** Exchanges the slot for its own lease, with the next message about it. */
  #takeOwn(): LeaseHolder {
    if (this.#own !== null) return this.#own;
    const { loan, slot, access, known, asked, onEnd } = this.#parts;
    const { pool, ctx, after } = access;
    loan.own(slot);
    const lent = { loan: loan.id, slot: slot.slot, told: loan.report() };
    const { renewedAt } = loan;
    const held = { lease: null, leaseId: known.leaseId, attachment: slot.attachment };
    const onKnown = (): void => loan.part(slot);
    const since = { grantedAt: this.#beganAt, renewedAt, ttlMs: PREFETCH_TTL_MS, onKnown, lent };
    this.#own = new LeaseHolder(pool, asked(), held, ctx, after, onEnd, since);
    if (this.#status !== null) this.#own.reportAnswer(this.#status, this.#notes);
    seeToKeeper(loan, access);
    return this.#own;
  }
}
