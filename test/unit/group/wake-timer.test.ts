import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WakeTimer } from '../../../src/group/batch.ts';
import { Timers } from '../../../src/runtime/async.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('wakes at the earliest instant that was asked for', () => {
  const { timer, wake } = newTimer();
  const start = Date.now();
  timer.arm(start + 1_000);
  timer.arm(start + 200);
  timer.arm(start + 5_000);
  vi.advanceTimersByTime(199);
  expect(wake).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(wake).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

it('keeps no timer once nobody needs to be woken, and sets one again when somebody does', () => {
  const { timer, wake } = newTimer();
  timer.arm(Date.now() + 45_000);
  timer.arm(Infinity);
  expect(vi.getTimerCount()).toBe(0);
  timer.arm(Date.now() + 45_000);
  vi.advanceTimersByTime(45_000);
  expect(wake).toHaveBeenCalledTimes(1);
});

it('hands its work to whoever comes when it is due, and says how late that is', () => {
  const { timer } = newTimer();
  timer.arm(Date.now() + 200);
  expect(timer.takeOver()).toBeNull();
  vi.setSystemTime(Date.now() + 50_200);
  expect(timer.takeOver()).toBe(50_000);
  expect(vi.getTimerCount()).toBe(0);
  expect(timer.takeOver()).toBeNull();
});

it('what it was set for is due when it fires, whatever the clock on the wall shows by then', () => {
  const { timer, wake, clock } = newTimer();
  const dueAt = clock.now() + 10_000;
  wake.mockImplementation(() => expect(clock.now()).toBe(dueAt));
  timer.arm(dueAt);
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(10_000);
  expect(wake).toHaveReturnedTimes(1);
});

it('is set anew where the clock was set back: the runtime would keep it for as much longer', () => {
  const { timer, wake, clock } = newTimer();
  timer.arm(clock.now() + 10_000);
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  vi.setSystemTime(Date.now() - 3_600_000);
  timer.arm(clock.now() + 10_000);
  expect(setTimer).toHaveBeenCalledWith(expect.any(Function), 10_000);
  vi.advanceTimersByTime(10_000);
  expect(wake).toHaveBeenCalledTimes(1);
});

function newTimer() {
  const wake = vi.fn<() => void>(() => {
    timer.takeOver();
  });
  const timers = new Timers();
  const { clock } = timers;
  const timer = new WakeTimer(timers, wake);
  return { timer, wake, clock };
}
