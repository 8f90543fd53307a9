// What one call schedules, on one timer and a virtual clock.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CallClock } from '../../../src/runtime/async.ts';

const LOOK_MS = 1_000;

let clock: CallClock;
let ran: string[];

beforeEach(() => {
  vi.useFakeTimers();
  clock = new CallClock();
  ran = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function schedule(name: string, ms: number): () => void {
  return clock.after(ms, () => ran.push(name));
}

it.each([0, 1, 999, 1_000, 1_001, 600_000])('runs once, after %i ms and not before', (ms) => {
  schedule('it', ms);
  if (ms > 0) vi.advanceTimersByTime(ms - 1);
  expect(ran).toEqual([]);
  vi.advanceTimersByTime(ms === 0 ? 0 : 1);
  expect(ran).toEqual(['it']);
  vi.advanceTimersByTime(600_000);
  expect(ran).toEqual(['it']);
});

it('keeps one timer for all that is scheduled, and runs each at its time', () => {
  for (const ms of [600_000, 5_000, 40, 2_000, 1_500]) schedule(String(ms), ms);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(40);
  expect(ran).toEqual(['40']);
  vi.advanceTimersByTime(5_000 - 41);
  expect(ran).toEqual(['40', '1500', '2000']);
  vi.advanceTimersByTime(1);
  expect(ran).toEqual(['40', '1500', '2000', '5000']);
  expect(vi.getTimerCount()).toBe(1);
});

it('does not run what was called off', () => {
  const callOff = schedule('off', 500);
  schedule('on', 500);
  callOff();
  callOff();
  vi.advanceTimersByTime(LOOK_MS);
  expect(ran).toEqual(['on']);
});

it('does not run what the one before it called off at the same instant', () => {
  const later: (() => void)[] = [];
  clock.after(500, () => later[0]?.());
  later.push(schedule('off', 500));
  vi.advanceTimersByTime(LOOK_MS);
  expect(ran).toEqual([]);
});

it('leaves no timer a second after everything was called off', () => {
  const all = [500, 15_000, 3_600_000].map((ms) => schedule(String(ms), ms));
  for (const callOff of all) callOff();
  vi.advanceTimersByTime(LOOK_MS);
  expect(vi.getTimerCount()).toBe(0);
  expect(ran).toEqual([]);
});

it('runs what is scheduled while it runs something, at its own time', () => {
  clock.after(100, () => {
    schedule('at once', 0);
    schedule('later', 100);
  });
  vi.advanceTimersByTime(100);
  expect(ran).toEqual(['at once']);
  vi.advanceTimersByTime(100);
  expect(ran).toEqual(['at once', 'later']);
});

it('is not held up by a wall clock that steps back', () => {
  schedule('it', 5_000);
  vi.advanceTimersByTime(2_000);
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(2_999);
  expect(ran).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(ran).toEqual(['it']);
});

it('runs everything that fell due while the process was held up', () => {
  for (const ms of [2_000, 10_000]) schedule(String(ms), ms);
  vi.setSystemTime(Date.now() + 60_000);
  vi.advanceTimersByTime(LOOK_MS);
  expect(ran).toEqual(['2000', '10000']);
});

it('sets its timer anew where the wall clock was set back: the runtime would keep the old one for as much longer', () => {
  schedule('it', 20_000);
  vi.advanceTimersByTime(LOOK_MS);
  vi.setSystemTime(Date.now() - 3_600_000);
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  schedule('other', 30_000);
  expect(setTimer).toHaveBeenCalledWith(expect.any(Function), LOOK_MS);
  vi.advanceTimersByTime(19_000);
  expect(ran).toEqual(['it']);
  vi.advanceTimersByTime(11_000);
  expect(ran).toEqual(['it', 'other']);
});
