/**
 * Work over time, which the platform lacks. A clock that never goes back when the wall clock does, one timer for all
 * that a call schedules, the timers of an object, and a limit per second. Work behind a response, time limits, limited
 * concurrency, and a light abort signal.
 *
 * Other code takes a `Schedule` and sets no timers itself.
 */

/** Maximum step back that the clock waits out: a correction, or a move to a machine whose clock is slightly behind. */
const WAITED_OUT_MS = 1_000;

/**
 * Milliseconds since the epoch that never go back. If the wall clock is set back, this clock continues from its last
 * value and stays ahead of the wall clock, so delays keep their length.
 *
 * It is derived from the wall clock, because the runtime has no other: `performance.now()` shows the same.
 */
export class SteadyClock {
  #now = 0;
  #aheadMs = 0;
  #timesSetBack = 0;

  now(): number {
    const wallMs = Date.now();
    if (wallMs + this.#aheadMs < this.#now - WAITED_OUT_MS) {
      this.#aheadMs = this.#now - wallMs;
      this.#timesSetBack += 1;
    }
    this.#now = Math.max(this.#now, wallMs + this.#aheadMs);
    return this.#now;
  }

  /** Advances to `at` when a timer fires that was due then, regardless of the wall clock. */
  reach(at: number): void {
    this.#now = Math.max(this.#now, at);
  }

  /** How far it is ahead of the wall clock, without the steps back that were waited out. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /**
   * How often `now` saw the wall clock set back. Timers from before should be set again, because the runtime measures
   * all but the next one by the wall clock.
   */
  get timesSetBack(): number {
    return this.#timesSetBack;
  }
}

/** The clock of this isolate, for all times that its calls exchange with each other and with pools. */
export const steadyClock = new SteadyClock();

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

/** Limits how often something may be done in a second. */
export class EachSecond {
  readonly #max: number;
  #beganAt = -Infinity;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether it may be done once more now. If so, it is counted. */
  mayOneMore(now: number): boolean {
    if (now - this.#beganAt >= 1_000) {
      this.#beganAt = now;
      this.#count = 0;
    }
    if (this.#count >= this.#max) return false;
    this.#count += 1;
    return true;
  }
}

/** Keeps work alive after the response, as `ctx.waitUntil` does. */
export interface Background {
  waitUntil(work: Promise<unknown>): void;
}

export function pause(ms: number, after: Schedule = onTimer): Promise<void> {
  return new Promise((resolve) => {
    after(ms, resolve);
  });
}

/** Rejects if `work` takes longer than `ms`. A call that is parked in a replaced instance may never return. */
export async function within<Value>(
  ms: number,
  work: Promise<Value>,
  after: Schedule = onTimer,
): Promise<Value> {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  const cancel = after(ms, () => reject(new Error(`no answer within ${ms} ms`)));
  try {
    return await Promise.race([work, lost]);
  } finally {
    cancel();
  }
}

/**
 * Resolves once all pending work is done: written streams are read, and aborted connections are closed. The runtime
 * runs a timer only then.
 */
export function whenQuiet(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}

/** Maps items with at most `atOnce` running at a time. Keeps their order and rejects with the first failure. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  map: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) results[index] = await map(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/** The part of `AbortSignal` that is needed to stop when it aborts. */
export interface AbortSource {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * An abort signal in plain JavaScript. It aborts when any of its sources does. A small call listens several times for
 * its caller to leave, and each listener of a native signal costs 2 to 4 µs of CPU (workerd, 2026-11-27).
 */
export class PlainAbort implements AbortSource {
  #aborted = false;
  #listeners: (() => void)[] = [];

  constructor(...sources: readonly AbortSource[]) {
    for (const source of sources) {
      if (source.aborted) this.#aborted = true;
      else source.addEventListener('abort', () => this.abort());
    }
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  abort(): void {
    this.#aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }
}
