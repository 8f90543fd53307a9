import { steadyClock } from '../../runtime/steady-clock.ts';
import type { Schedule } from '../../runtime/call-clock.ts';

/** How long something may take. `onOver` is called then, and must abort the pipe's signal. */
export interface TimeBound {
  readonly afterMs: number;
  readonly onOver: () => void;
  readonly after: Schedule;
}

/** Watches how long something takes. One timer for many times, because a timer for each costs more than they. */
export class BoundWatch {
  readonly #bound: TimeBound;
  /** Null: nothing is waited for. */
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
