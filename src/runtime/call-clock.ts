import { SteadyClock } from './steady-clock.ts';

/** Runs a function after a delay. Returns a function that cancels it. */
export type Schedule = (ms: number, run: () => void) => () => void;

/** Uses one runtime timer per entry. */
export const onTimer: Schedule = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};

/**
 * Maximum delay until a new entry is first checked. Most calls end sooner, so their later entries never set a timer.
 */
const FIRST_LOOK_MS = 1_000;

interface ClockEntry {
  readonly at: number;
  readonly run: () => void;
}

/**
 * Runs everything that one call schedules on a single runtime timer. A small call schedules five entries at once, and
 * five timers would cost more than its routing.
 *
 * The timer is set for the earliest entry and checks the others when it fires. It is not cleared when the call ends: it
 * ends with the call's context, or fires and finds no entries.
 */
export class CallClock {
  readonly #entries = new Set<ClockEntry>();
  readonly #clock = new SteadyClock();
  #timesSetBack = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #firesAt = Infinity;

  readonly after: Schedule = (ms, run) => {
    const now = this.#clock.now();
    const entry = { at: now + ms, run };
    this.#entries.add(entry);
    const { timesSetBack } = this.#clock;
    // After a step back of the wall clock the runtime would delay the existing timer by the length of the step.
    if (timesSetBack !== this.#timesSetBack) this.#firesAt = Infinity;
    this.#timesSetBack = timesSetBack;
    this.#arm(Math.min(entry.at, now + FIRST_LOOK_MS));
    return () => this.#entries.delete(entry);
  };

  #arm(at: number): void {
    if (at >= this.#firesAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#firesAt = at;
    this.#timer = setTimeout(() => this.#fire(), at - this.#clock.now());
  }

  #fire(): void {
    this.#clock.reach(this.#firesAt);
    this.#timer = null;
    this.#firesAt = Infinity;
    const now = this.#clock.now();
    for (const entry of this.#entries) {
      if (entry.at > now) continue;
      this.#entries.delete(entry);
      entry.run();
    }
    for (const { at } of this.#entries) this.#arm(at);
  }
}
