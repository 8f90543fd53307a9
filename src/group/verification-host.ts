import type { Timers } from '../runtime/clock.ts';
import type { LeaseKeeper } from './lease-handle.ts';

/** The object that contains an unverified pool, which has none of its own and stores nothing. */
export interface VerificationHost {
  readonly name: string;
  /** Timers of the object, which all its pools share. */
  readonly timers: Timers;
  /** Slots of leases that an earlier process granted and that are held by id. */
  readonly held: number;
  /** Wraps the interface between the pool and the holders of its leases. */
  keeperFor(own: LeaseKeeper): LeaseKeeper;
  onVerified(): void;
  onEvent(): void;
}
