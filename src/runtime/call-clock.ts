import { SteadyClock } from './steady-clock.ts';

/** Runs something after a time, unless it is called off by what this returns. */
export type Schedule = (ms: number, run: () => void) => () => void;

/** Schedules on a timer of its own. */
export const onTimer: Schedule = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};

/** How long until the first look: most calls are over by then, before anything of theirs is due. */
const FIRST_LOOK_MS = 1_000;

interface ClockEntry {
  readonly at: number;
  readonly run: () => void;
}

/**
 * Everything that one call schedules, on one timer of the runtime: a small call watches five times at
 * once, and as many timers would cost it more than its routing does.
 *
 * The timer is set no further ahead than it must be for what is due first, and looks at the rest when
 * it fires. Nothing ends it with the call: it ends with the call's context, or finds nothing to do.
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
    // The timer that is set already, which the runtime would keep for as much longer.
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
