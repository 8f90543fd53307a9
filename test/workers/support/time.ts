import { vi } from 'vitest';

const realNow = Date.now.bind(Date);
let shiftMs = 0;

/**
 * Shifts the wall clock of everything in this isolate, objects included. Timers run on as they did, so
 * an object notices what became due at its next call.
 */
export function passTime(ms: number): void {
  shiftMs += ms;
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + shiftMs);
}
