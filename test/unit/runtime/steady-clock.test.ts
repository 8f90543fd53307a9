import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SteadyClock } from '../../../src/runtime/async.ts';

const HOUR_MS = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setBack(ms: number): void {
  vi.setSystemTime(Date.now() - ms);
}

it('shows the wall clock, forward steps included', () => {
  const clock = new SteadyClock();
  expect(clock.now()).toBe(Date.now());
  vi.setSystemTime(Date.now() + HOUR_MS);
  expect(clock.now()).toBe(Date.now());
  expect(clock).toMatchObject({ aheadMs: 0, timesSetBack: 0 });
});

it('goes on from where it was when the wall clock is set back, each time', () => {
  const clock = new SteadyClock();
  const start = clock.now();
  setBack(HOUR_MS);
  expect(clock.now()).toBe(start);
  vi.setSystemTime(Date.now() + 300);
  expect(clock.now()).toBe(start + 300);
  setBack(HOUR_MS);
  vi.setSystemTime(Date.now() + 20);
  expect(clock.now()).toBe(start + 300);
  vi.setSystemTime(Date.now() + 5);
  expect(clock.now()).toBe(start + 305);
  expect(clock.timesSetBack).toBe(2);
});

it('waits a small step back out, and does not stay ahead for it', () => {
  const clock = new SteadyClock();
  const start = clock.now();
  setBack(500);
  expect(clock.now()).toBe(start);
  vi.setSystemTime(Date.now() + 600);
  expect(clock.now()).toBe(Date.now());
  expect(clock.aheadMs).toBe(0);
});

it('takes the word of a timer for the time that has passed', () => {
  const clock = new SteadyClock();
  const start = clock.now();
  setBack(HOUR_MS);
  clock.reach(start + 200);
  expect(clock.now()).toBe(start + 200);
  vi.setSystemTime(Date.now() + 10);
  expect(clock.now()).toBe(start + 210);
});
