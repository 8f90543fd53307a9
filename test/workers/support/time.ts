import { vi, type MockInstance } from 'vitest';

const realNow = Date.now.bind(Date);
let shiftMs = 0;
/** Null: the clock runs. */
let stoppedAt: number | null = null;

/**
 * Shifts the wall clock of everything in this isolate, objects included. Timers run on as they did, so
 * an object notices what became due at its next call.
 */
export function passTime(ms: number): void {
  shiftMs += ms;
  vi.spyOn(Date, 'now').mockImplementation(() => (stoppedAt ?? realNow()) + shiftMs);
}

/** Stops that clock: from now on only `passTime` moves it, however busy the machine is. */
export function stopTime(): void {
  stoppedAt ??= realNow();
  passTime(0);
}

/** Lets that clock run again. */
export function resumeTime(): void {
  stoppedAt = null;
}

/** Has no timer fire that is set from now on for longer than `ms`, until it is restored. */
export function withoutLongTimers(longerThanMs: number): MockInstance {
  const real = globalThis.setTimeout;
  return vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(((work: () => void, ms = 0) =>
      ms > longerThanMs ? 0 : real(work, ms)) as typeof setTimeout);
}
