import type { Timers } from '../runtime/timers.ts';
import type { LeaseKeeper } from './lease-handle.ts';

/** The object around a pool on trial, which has none of its own: it is one of many there, and stores nothing. */
export interface VerificationHost {
  /** The pool's name. */
  readonly name: string;
  /** Timers of the object, which all its pools share. */
  readonly timers: Timers;
  /** Slots of leases that an earlier process granted and that are held by their ids. */
  readonly held: number;
  /** Stands between the pool and the holders of its leases. */
  keeperFor(own: LeaseKeeper): LeaseKeeper;
  /** Told at every success. */
  onVerified(): void;
  /** Told after every event. */
  onEvent(): void;
}
