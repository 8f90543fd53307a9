import { Seats, seatsHere } from './seats.ts';
import type { Server } from './server.ts';

/** Choice for work while Headgate cannot be reached. */
export type OnUnavailable = 'throw' | 'pass';

/** How long work passes at once after Headgate was not reached, before somebody tries again. */
const PASS_MS = 15_000;

/** A Headgate and what this client remembers of it. */
export class Gate {
  readonly server: Server;
  readonly onUnavailable: OnUnavailable;
  readonly seats = new Seats(seatsHere());
  #passesUntil = 0;

  constructor(server: Server, onUnavailable: OnUnavailable) {
    this.server = server;
    this.onUnavailable = onUnavailable;
  }

  /** Tells whether work passes at the moment. */
  passes(): boolean {
    return Date.now() < this.#passesUntil;
  }

  /** Notes that it cannot be reached, so that others do not find it out one by one. */
  passFromNow(): void {
    this.#passesUntil = Date.now() + PASS_MS;
  }

  /** Notes that it can. */
  answered(): void {
    this.#passesUntil = 0;
  }
}
