import type { LeaseRequest } from './request.ts';
import { Seats, seatsHere } from './seats.ts';
import type { Server } from './server.ts';
import { steadyNow } from './waits.ts';

/** What happens to work while Headgate is unreachable: `throw` an error, or `pass` to run it without a lease. */
export type OnUnavailable = 'throw' | 'pass';

/** How long work runs without a lease, without another attempt, after Headgate was unreachable. */
const PASS_MS = 15_000;

/** The connection to one deployment, with the state that its leases share. */
export class Gate {
  readonly server: Server;
  readonly onUnavailable: OnUnavailable;
  readonly #seats = new Map<string, Seats>();
  #passesUntil = 0;

  constructor(server: Server, onUnavailable: OnUnavailable) {
    this.server = server;
    this.onUnavailable = onUnavailable;
  }

  /** Returns the seats of a lease target. Each target has its own, so that a full queue does not block another one. */
  seatsFor(request: LeaseRequest): Seats {
    const target = 'group' in request ? [request.group] : [request.upstream, request.model ?? null];
    const key = JSON.stringify(target);
    const seats = this.#seats.get(key) ?? new Seats(seatsHere());
    this.#seats.set(key, seats);
    return seats;
  }

  /** Whether work currently runs without a lease. */
  passes(): boolean {
    return steadyNow() < this.#passesUntil;
  }

  /** Records that Headgate is unreachable, so that other work does not run into the same timeout. */
  passFromNow(): void {
    this.#passesUntil = steadyNow() + PASS_MS;
  }

  /** Records that Headgate responded. */
  answered(): void {
    this.#passesUntil = 0;
  }
}
