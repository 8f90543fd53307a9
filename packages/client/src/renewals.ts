import { renewed, type GrantedLease } from './granted.ts';
import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { backOff, later, steadyNow } from './waits.ts';

/** Minimum time between two renewals. */
const PACE_MS = 200;

/** Returns a random time at 60 % to 85 % of the renewal period, so that renewals of many leases are spread out. */
const soon = (withinMs: number): number => Math.max(PACE_MS, withinMs * (0.6 + Math.random() / 4));

/** Renews one lease while it is held, and reports its loss. */
export class LeaseRenewals {
  /** Current token of the lease. Each renewal replaces it. */
  lease: string;
  /** When the lease expires unless it is renewed, on the monotonic clock. */
  endsAt: number;
  /** Why the lease was lost. null while it is held. */
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

  /** Stops after the renewal in progress, because the release needs the token that it returns. */
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
    // With `pass`, the work continues without a lease.
    if (this.#gate.onUnavailable === 'pass' && this.#failures > 0) return this.#clear();
    this.#end(
      new HeadgateError('lease_lost', 'The lease expired because it could not be renewed in time.'),
    );
  }

  #end(error: HeadgateError): void {
    this.#clear();
    if (this.#isStopped) return;
    this.ended = error;
    this.#onEnd(error);
  }

  #clear(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers = [];
  }
}

/** Whether an error is a decision about the lease or its key, not a temporary failure. */
function isFinal({ status }: HeadgateError): boolean {
  return status !== null && status >= 400 && status < 500 && status !== 429;
}
