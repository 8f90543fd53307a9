import type { Schedule } from './call-clock.ts';
import { SteadyClock } from './steady-clock.ts';

interface PendingTimer {
  readonly at: number;
  readonly run: () => void;
  timer: ReturnType<typeof setTimeout> | null;
}

/**
 * The timers of one object, which keep their delays when the wall clock is set back.
 *
 * The runtime measures only an object's next timer by a steady clock. When that timer fires or is cleared, the runtime
 * computes the delay of the following one by the wall clock. If the clock was set back by a minute, that timer fires a
 * minute late. So every timer that fires, is set or is cleared checks the clock here, and a step back sets all pending
 * timers again. This works only if the object sets no timers elsewhere.
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
