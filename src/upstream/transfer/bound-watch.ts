import { steadyClock, type Schedule } from '../../runtime/clock.ts';

/** A time limit. `onOver` is called when it is reached, and must abort the pipe's signal. */
export interface TimeBound {
  readonly afterMs: number;
  readonly onOver: () => void;
  readonly after: Schedule;
}

/**
 * Watches how long repeated operations take. All of them share one timer, because a timer for each would cost more than
 * the operations.
 */
export class BoundWatch {
  readonly #bound: TimeBound;
  /** Start of the current operation. null if none is in progress. */
  #beganAt: number | null = null;
  #callOff: (() => void) | null = null;

  constructor(bound: TimeBound) {
    this.#bound = bound;
  }

  begin(): void {
    this.#beganAt = steadyClock.now();
    if (this.#callOff === null) this.#arm(this.#beganAt + this.#bound.afterMs);
  }

  end(): void {
    this.#beganAt = null;
  }

  stop(): void {
    this.#callOff?.();
  }

  #arm(at: number): void {
    this.#callOff = this.#bound.after(at - steadyClock.now(), () => this.#check(at));
  }

  #check(at: number): void {
    steadyClock.reach(at);
    this.#callOff = null;
    if (this.#beganAt === null) return;
    const endsAt = this.#beganAt + this.#bound.afterMs;
    if (endsAt <= steadyClock.now()) this.#bound.onOver();
    else this.#arm(endsAt);
  }
}
