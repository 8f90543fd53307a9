import type { LeaseKeeper } from './lease-handle.ts';

/** The place of a pool that has no object of its own: it is one of many in another one, and stores nothing. */
export interface Seat {
  /** The pool's name. */
  readonly name: string;
  /** Stands between the pool and who holds its leases. */
  keeperFor(own: LeaseKeeper): LeaseKeeper;
  /** Told at every 2xx. */
  onProved(): void;
  /** Told after every event. */
  onEvent(): void;
}
