import type { Schedule } from './call-clock.ts';
import { SteadyClock } from './steady-clock.ts';

interface PendingTimer {
  readonly at: number;
  readonly run: () => void;
  timer: ReturnType<typeof setTimeout> | null;
}

/**
 * The timers of one object, which keep their time when the wall clock is set back.
 *
 * The runtime measures only the next timer of an object by a steady clock. Whenever that one fires or is cleared, it
 * computes the delay of the one after it by the wall clock: set back by a minute, that timer comes a minute late. So every
 * timer that fires, is set or is cleared checks the clock here, and a step back sets all pending timers again. This
 * holds only if the object sets no timer elsewhere.
 */
export class Timers {
  readonly clock: SteadyClock;
  readonly #pending = new Set<PendingTimer>();
  #timesSetBack: number;

  constructor(clock = new SteadyClock()) {
    this.clock = clock;
    this.#timesSetBack = clock.timesSetBack;
  }

  readonly after: Schedule = (ms, run) => {
    this.check();
    const pending: PendingTimer = { at: this.clock.now() + ms, run, timer: null };
    this.#pending.add(pending);
    this.#start(pending);
    return () => {
      if (!this.#pending.delete(pending)) return;
      stop(pending);
      this.check();
    };
  };

  /** Sets all pending timers again if the wall clock was set back since the last check. */
  check(): void {
    this.clock.now();
    const { timesSetBack } = this.clock;
    if (timesSetBack === this.#timesSetBack) return;
    this.#timesSetBack = timesSetBack;
    for (const pending of this.#pending) {
      stop(pending);
      this.#start(pending);
    }
  }

  #start(pending: PendingTimer): void {
    const delayMs = Math.max(0, pending.at - this.clock.now());
    pending.timer = setTimeout(() => this.#fire(pending), delayMs);
  }

  #fire(pending: PendingTimer): void {
    this.#pending.delete(pending);
    this.clock.reach(pending.at);
    try {
      pending.run();
    } finally {
      this.check();
    }
  }
}

function stop({ timer }: PendingTimer): void {
  if (timer !== null) clearTimeout(timer);
}
