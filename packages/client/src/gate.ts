import type { LeaseRequest } from './request.ts';
import { Seats, seatsHere } from './seats.ts';
import type { Server } from './server.ts';
import { steadyNow } from './waits.ts';

/** Choice for work while Headgate cannot be reached. */
export type OnUnavailable = 'throw' | 'pass';

/** How long work passes at once after Headgate was not reached, before somebody tries again. */
const PASS_MS = 15_000;

/** A Headgate and what this client remembers of it. */
export class Gate {
  readonly server: Server;
  readonly onUnavailable: OnUnavailable;
  readonly #seats = new Map<string, Seats>();
  #passesUntil = 0;

  constructor(server: Server, onUnavailable: OnUnavailable) {
    this.server = server;
    this.onUnavailable = onUnavailable;
  }

  /** Finds the seats of a place. Each has its own, so that none waits for the queue of another. */
  seatsFor(request: LeaseRequest): Seats {
    const place = 'group' in request ? [request.group] : [request.upstream, request.model ?? null];
    const key = JSON.stringify(place);
    const seats = this.#seats.get(key) ?? new Seats(seatsHere());
    this.#seats.set(key, seats);
    return seats;
  }

  /** Tells whether work passes at the moment. */
  passes(): boolean {
    return steadyNow() < this.#passesUntil;
  }

  /** Notes that it cannot be reached, so that others do not find it out one by one. */
  passFromNow(): void {
    this.#passesUntil = steadyNow() + PASS_MS;
  }

  /** Notes that it can. */
  answered(): void {
    this.#passesUntil = 0;
  }
}
