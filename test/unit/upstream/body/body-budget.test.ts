import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  BODY_BUDGET_BYTES,
  createBodyBudget,
  SCAN_BYTES_MAX,
} from '../../../../src/upstream/body/body-budget.ts';
import type { BodyBudget, Reservation } from '../../../../src/upstream/body/body-budget.ts';

const never = new AbortController().signal;

/** The clock of the isolate never goes back, from one test to the next neither. */
let startsAt = Date.now();

describe('the body budget', () => {
  beforeEach(() => {
    startsAt += 60_000;
    vi.useFakeTimers({ now: startsAt });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('has room for the longest scan', () => {
    expect(SCAN_BYTES_MAX).toBeLessThanOrEqual(BODY_BUDGET_BYTES);
  });

  it('gives out exactly what it has', async () => {
    const budget = createBodyBudget(100);
    const first = await budget.take(60, never);
    expect(budget.tryTake(41)).toBeNull();
    const second = budget.tryTake(40);
    expect(budget.bytesFree).toBe(0);
    first?.keep(10);
    expect(budget.bytesFree).toBe(50);
    first?.keep(90);
    expect(budget.bytesFree).toBe(50);
    first?.release();
    first?.release();
    second?.release();
    expect(budget.bytesFree).toBe(100);
  });

  it('serves waiters in order of arrival, a small one never before a large one', async () => {
    const budget = createBodyBudget(100);
    const held = budget.tryTake(90);
    const { order, taken } = recorder(budget);
    taken('large', 80);
    taken('small', 5);
    expect(budget.tryTake(5)).toBeNull();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(order).toEqual([]);
    held?.release();
    await vi.advanceTimersByTimeAsync(50);
    expect(order).toEqual(['large', 'small']);
    expect(budget.bytesFree).toBe(15);
  });

  it('serves everybody of a long line', async () => {
    const budget = createBodyBudget(10);
    const held = budget.tryTake(10);
    const { order, taken, release } = recorder(budget);
    const names = Array.from({ length: 30 }, (_, index) => String(index));
    for (const name of names) taken(name, 10);
    held?.release();
    for (const name of names) {
      await vi.advanceTimersByTimeAsync(300);
      expect(order.at(-1)).toBe(name);
      release(name);
    }
    expect(order).toEqual(names);
    expect(budget.bytesFree).toBe(10);
  });

  it('lets a waiter leave at once, with nothing', async () => {
    const budget = createBodyBudget(10);
    const held = budget.tryTake(10);
    const leaving = new AbortController();
    const gone = budget.take(5, leaving.signal);
    const next = budget.take(10, never);
    leaving.abort();
    expect(await gone).toBeNull();
    held?.release();
    await vi.advanceTimersByTimeAsync(25);
    expect((await next)?.bytes).toBe(10);
    expect(await budget.take(1, leaving.signal)).toBeNull();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('passes over a waiter whose request died without a word', async () => {
    const budget = createBodyBudget(10);
    const held = budget.tryTake(10);
    // Its timer never fires again, as on Workers after the context has ended.
    vi.stubGlobal('setTimeout', () => 0);
    const dead = budget.take(10, never);
    vi.unstubAllGlobals();
    const next = budget.take(10, never);
    held?.release();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(budget.bytesFree).toBe(10);
    await vi.advanceTimersByTimeAsync(1_500);
    (await next)?.release();
    expect(budget.tryTake(10)?.bytes).toBe(10);
    const verdict = await Promise.race([dead, Promise.resolve('still waiting')]);
    expect(verdict).toBe('still waiting');
  });

  it('passes over it in the same time where the wall clock is set back', async () => {
    const budget = createBodyBudget(10);
    const held = budget.tryTake(10);
    vi.stubGlobal('setTimeout', () => 0);
    budget.take(10, never).catch(() => {});
    vi.unstubAllGlobals();
    const next = budget.take(10, never);
    vi.setSystemTime(Date.now() - 3_600_000);
    held?.release();
    await vi.advanceTimersByTimeAsync(2_500);
    expect((await next)?.bytes).toBe(10);
  });

  it('refuses what could never fit', async () => {
    await expect(createBodyBudget(10).take(11, never)).rejects.toThrow(RangeError);
  });

  it('takes back what was lost with a dead request', async () => {
    vi.useRealTimers();
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const budget = createBodyBudget(10);
    await lose(budget);
    await vi.waitFor(() => {
      collect();
      expect(budget.bytesFree).toBe(10);
    }, 20_000);
  });
});

async function lose(budget: BodyBudget): Promise<void> {
  await budget.take(10, never);
  expect(budget.bytesFree).toBe(0);
}

function recorder(budget: BodyBudget): {
  order: string[];
  taken: (name: string, bytes: number) => void;
  release: (name: string) => void;
} {
  const order: string[] = [];
  const held = new Map<string, Reservation | null>();
  return {
    order,
    taken(name, bytes) {
      budget.take(bytes, never).then(
        (reservation) => {
          order.push(name);
          held.set(name, reservation);
        },
        () => order.push(`${name} failed`),
      );
    },
    release: (name) => held.get(name)?.release(),
  };
}
