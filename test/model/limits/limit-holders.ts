import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import type { InstantMs, LeaseId } from '../../../src/core/words/ids.ts';
import type { ActiveLease } from '../../../src/core/state.ts';
import type { Claim } from '../../../src/core/orphaned.ts';

interface LimitHoldersHeld {
  /** All that its holder was told with the last answer. */
  readonly told: Omit<Claim, 'hasLapsed' | 'heldMs'>;
  readonly grantedAt: InstantMs;
  /** When it was renewed last, or taken up. */
  readonly renewedAt: InstantMs;
}

/** Those who hold leases, or held them, with what each tells an instance that may not know it. */
export class LimitHolders {
  readonly #held = new Map<LeaseId, LimitHoldersHeld>();

  /** An answer with a lease has left. */
  hear(lease: ActiveLease, now: InstantMs): void {
    const {
      id: leaseId,
      ticketId,
      holder,
      lane,
      slots,
      nested,
      heirOf: nextHolderOf,
      reserved,
      attachment,
    } = lease;
    const told = {
      leaseId,
      ticketId,
      holder,
      lane,
      slots,
      nested,
      heirOf: nextHolderOf,
      reserved,
      attachment,
    };
    const grantedAt = this.#held.get(leaseId)?.grantedAt ?? now;
    this.#held.set(leaseId, { told, grantedAt, renewedAt: now });
  }

  renew(leaseId: LeaseId, now: InstantMs): void {
    const known = this.#held.get(leaseId);
    if (known !== undefined) this.#held.set(leaseId, { ...known, renewedAt: now });
  }

  /** Tells of a lease as its holder does; undefined: it was never granted. */
  claim(leaseId: LeaseId, now: InstantMs): Claim | undefined {
    const known = this.#held.get(leaseId);
    if (known === undefined) return undefined;
    const { told, grantedAt, renewedAt } = known;
    const hasLapsed = now >= renewedAt + LEASE_TTL_MS;
    return { ...told, hasLapsed, heldMs: now - grantedAt };
  }
}
