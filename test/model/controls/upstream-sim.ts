import { instant, ticketId, type InstantMs, type TicketId } from '../../../src/core/words/ids.ts';
import { Clock } from '../simulator/clock.ts';
import { SimulatorRandom } from '../simulator/random.ts';

/** The controller of how many calls may be in flight. */
export interface Controller {
  slotsMax(): number;
  /** Whether a call may go that comes back after a refusal, beside so many others. */
  mayGo(ticket: TicketId, othersInUse: number, now: InstantMs): boolean;
  onRefused(
    call: { ticketId: TicketId; grantedAt: InstantMs; othersInUse: number },
    now: InstantMs,
  ): void;
  onServed(
    call: { grantedAt: InstantMs; slotsAtGrant: number; slotsInUse: number },
    now: InstantMs,
  ): void;
}

/** A stretch of time in which the upstream takes so many calls at once. */
export interface Segment {
  readonly capacity: number;
  readonly lengthMs: number;
}

/** Sights of one segment. */
export interface UpstreamSimSeen {
  readonly capacity: number;
  /** The part of the capacity that was in use, and of the attempts that was refused, once settled. */
  utilisation: number;
  refusedShare: number;
  /** When the limit first was the capacity, and within it for good; in ms from the segment's start. */
  reachedMs: number;
  withinMs: number;
  /** The most refusals of one call. */
  refusalsOfOne: number;
  /** When no more calls were at the upstream than it takes: those of before go on to their end. */
  drainedMs: number;
}

/** One way to the upstream: nobody knows of a refusal sooner than after two of them. */
const TRIP_MS = 40;
const FIRST_BYTE_MS = 600;
/** A slot stays down so long after a refused call, as it does by default. */
const FAILURE_HOLD_MS = 2_000;

/** One call, with all its tries. */
interface SimCall {
  readonly id: TicketId;
  refusals: number;
}

/** A full queue before an upstream that refuses at once what exceeds a capacity that nobody told. */
export class SaturatedUpstream {
  readonly #clock = new Clock();
  readonly #random: SimulatorRandom;
  readonly #serviceMs: number;
  readonly #controller: Controller;
  #capacity = 0;
  #atUpstream = 0;
  #inUse = 0;
  #cooling = 0;
  #attempts = 0;
  #refused = 0;
  #calls = 0;
  #refusalsOfOne = 0;
  /** Refused calls, which go before all others because they are older. */
  readonly #again: SimCall[] = [];
  #slotMs = 0;
  #countedAt = 0;
  #reachedAt = Infinity;
  #exceededAt = 0;
  #drainedAt = Infinity;

  constructor(controller: Controller, serviceMs: number, seed: number) {
    this.#controller = controller;
    this.#serviceMs = serviceMs;
    this.#random = new SimulatorRandom(seed);
  }

  /** Runs the segments one after the other, and measures each from `settleMs` after its begin. */
  run(segments: readonly Segment[], settleMs: number): UpstreamSimSeen[] {
    return segments.map(({ capacity, lengthMs }) => {
      const beganAt = this.#clock.now;
      this.#capacity = capacity;
      this.#reachedAt = Infinity;
      this.#exceededAt = beganAt;
      this.#drainedAt = Infinity;
      this.#refusalsOfOne = 0;
      this.#look();
      this.#grant();
      this.#clock.runTo(beganAt + settleMs);
      this.#restart();
      this.#clock.runTo(beganAt + lengthMs);
      this.#integrate();
      return {
        capacity,
        utilisation: this.#slotMs / (capacity * (lengthMs - settleMs)),
        refusedShare: this.#refused / this.#attempts,
        reachedMs: this.#reachedAt - beganAt,
        withinMs: this.#exceededAt - beganAt,
        refusalsOfOne: this.#refusalsOfOne,
        drainedMs: this.#drainedAt - beganAt,
      };
    });
  }

  #restart(): void {
    this.#integrate();
    this.#slotMs = 0;
    this.#attempts = 0;
    this.#refused = 0;
  }

  #grant(): void {
    while (this.#inUse + this.#cooling < this.#controller.slotsMax()) {
      const call = this.#next();
      this.#count(1);
      const grantedAt = this.#now();
      const slotsAtGrant = this.#inUse;
      this.#clock.after(TRIP_MS, () => this.#arrive(call, grantedAt, slotsAtGrant));
    }
  }

  /** The oldest that may go; the queue behind them never ends. */
  #next(): SimCall {
    const index = this.#again.findIndex(({ id }) => {
      return this.#controller.mayGo(id, this.#inUse, this.#now());
    });
    const [again] = index < 0 ? [] : this.#again.splice(index, 1);
    if (again !== undefined) return again;
    this.#calls += 1;
    return { id: ticketId(`call-${this.#calls}`), refusals: 0 };
  }

  #arrive(call: SimCall, grantedAt: InstantMs, slotsAtGrant: number): void {
    this.#attempts += 1;
    if (this.#atUpstream >= this.#capacity) {
      this.#refused += 1;
      this.#clock.after(TRIP_MS, () => this.#onRefused(call, grantedAt));
      return;
    }
    this.#atUpstream += 1;
    const serviceMs = this.#random.exponential(this.#serviceMs);
    this.#clock.after(Math.min(FIRST_BYTE_MS, serviceMs) + TRIP_MS, () => {
      const slotsInUse = this.#inUse + this.#cooling;
      this.#controller.onServed({ grantedAt, slotsAtGrant, slotsInUse }, this.#now());
      this.#look();
      this.#grant();
    });
    this.#clock.after(serviceMs, () => {
      this.#atUpstream -= 1;
      this.#look();
    });
    this.#clock.after(serviceMs + TRIP_MS, () => {
      this.#count(-1);
      this.#grant();
    });
  }

  #onRefused(call: SimCall, grantedAt: InstantMs): void {
    this.#count(-1);
    this.#cooling += 1;
    call.refusals += 1;
    this.#refusalsOfOne = Math.max(this.#refusalsOfOne, call.refusals);
    this.#again.push(call);
    const { id } = call;
    this.#controller.onRefused({ ticketId: id, grantedAt, othersInUse: this.#inUse }, this.#now());
    this.#look();
    this.#clock.after(FAILURE_HOLD_MS, () => {
      this.#cooling -= 1;
      this.#grant();
    });
    this.#grant();
  }

  #look(): void {
    if (this.#atUpstream <= this.#capacity) {
      this.#drainedAt = Math.min(this.#drainedAt, this.#clock.now);
    }
    const slotsMax = this.#controller.slotsMax();
    if (slotsMax >= this.#capacity) this.#reachedAt = Math.min(this.#reachedAt, this.#clock.now);
    // A probe is one more for a moment; what is more than that was not learned.
    if (slotsMax > this.#capacity + 1) this.#exceededAt = this.#clock.now;
  }

  #count(change: 1 | -1): void {
    this.#integrate();
    this.#inUse += change;
  }

  /** Adds up the slots that are in use, trips included: no controller can shorten those. */
  #integrate(): void {
    const used = Math.min(this.#inUse, this.#capacity);
    this.#slotMs += used * (this.#clock.now - this.#countedAt);
    this.#countedAt = this.#clock.now;
  }

  #now(): InstantMs {
    return instant(this.#clock.now);
  }
}
