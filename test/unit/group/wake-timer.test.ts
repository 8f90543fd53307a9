import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WakeTimer } from '../../../src/group/wake-timer.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('wakes at the earliest instant that was asked for', () => {
  const wake = vi.fn<() => void>();
  const timer = new WakeTimer(wake);
  timer.arm(1_000, 0);
  timer.arm(200, 0);
  timer.arm(5_000, 0);
  vi.advanceTimersByTime(199);
  expect(wake).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(wake).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

it('keeps no timer once nobody needs to be woken, and sets one again when somebody does', () => {
  const wake = vi.fn<() => void>();
  const timer = new WakeTimer(wake);
  timer.arm(45_000, 0);
  timer.arm(Infinity, 10);
  expect(vi.getTimerCount()).toBe(0);
  timer.arm(45_000, 20);
  vi.advanceTimersByTime(45_000);
  expect(wake).toHaveBeenCalledTimes(1);
});
