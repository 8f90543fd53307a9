import { renewed, type GrantedLease } from './granted.ts';
import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { backOff, later, steadyNow } from './waits.ts';

/** Minimum time between two renewals. */
const PACE_MS = 200;

/** Part of the time until a lease has to be renewed after which it is: at random, so that many do not come at once. */
const soon = (withinMs: number): number => Math.max(PACE_MS, withinMs * (0.6 + Math.random() / 4));

/** Renews one lease for as long as it is held, and notes when it is none any more. */
export class LeaseRenewals {
  /** The newest name of the lease, which Headgate wants to hear next. */
  lease: string;
  /** When it ends unless it is renewed. */
  endsAt: number;
  /** Why it ended, once it has. */
  ended: HeadgateError | null = null;
  readonly #gate: Gate;
  readonly #onEnd: (error: HeadgateError) => void;
  #timers: (() => void)[] = [];
  #renewing: Promise<void> | null = null;
  #failures = 0;
  #isStopped = false;

  constructor(gate: Gate, granted: GrantedLease, onEnd: (error: HeadgateError) => void) {
    this.#gate = gate;
    this.#onEnd = onEnd;
    this.lease = granted.lease;
    this.endsAt = granted.lifetime.endsAt;
    this.#schedule(soon(granted.lifetime.renewWithinMs));
  }

  /** Stops, once a renewal that is under way is over: one that came after the release would be too late. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#clear();
    await this.#renewing;
  }

  #schedule(inMs: number): void {
    this.#clear();
    if (this.#isStopped) return;
    this.#timers = [
      later(inMs, () => {
        this.#renewing = this.#renew();
      }),
      later(this.endsAt - steadyNow(), () => this.#expire()),
    ];
  }

  async #renew(): Promise<void> {
    try {
      const path = `/leases/${encodeURIComponent(this.lease)}`;
      const answer = await this.#gate.server.exchange({ method: 'PUT', path });
      if (this.ended !== null) return;
      const { lease, lifetime } = renewed(answer);
      this.lease = lease;
      this.endsAt = lifetime.endsAt;
      this.#failures = 0;
      this.#schedule(soon(lifetime.renewWithinMs));
    } catch (error) {
      if (this.ended !== null || !(error instanceof HeadgateError)) return;
      if (isFinal(error)) return this.#end(error);
      this.#failures += 1;
      this.#schedule(Math.max(backOff(this.#failures), error.retryAfterMs ?? 0));
    }
  }

  #expire(): void {
    // Whoever chose to work without Headgate works on without it.
    if (this.#gate.onUnavailable === 'pass' && this.#failures > 0) return this.#clear();
    this.#end(new HeadgateError('lease_lost', 'The lease could not be renewed in time.'));
  }

  #end(error: HeadgateError): void {
    this.#clear();
    if (this.#isStopped) return;
    this.ended = error;
    this.#onEnd(error);
  }

  #clear(): void {
    for (const callOff of this.#timers) callOff();
    this.#timers = [];
  }
}

/** Tells a word about the lease, or about who holds it, from a failure to hear one. */
function isFinal({ status }: HeadgateError): boolean {
  return status !== null && status >= 400 && status < 500 && status !== 429;
}
