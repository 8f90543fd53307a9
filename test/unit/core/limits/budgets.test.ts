import { describe, expect, test } from 'vitest';
import type { TestGroup } from '../../../support/core-builders.ts';
import { call, leftIn, metered, used } from './metered.ts';

/** Budgets reject at the grant, and count what is in flight. */

/** How much of the hour is left in which the clock of the tests starts. */
const HOUR_LEFT_MS = 800_000;

describe('a call that the budget does not cover', () => {
  test.each([
    ['hour', { perHourUsd: 10 }],
    ['day', { perDayUsd: 10 }],
    ['month', { perMonthUsd: 10 }],
  ] as const)('is refused for its %s', (window, limits) => {
    const group = metered(limits);
    expect(call(group, 'dear', { usd: 10.01 })).toEqual(['reject dear budget_exhausted']);
    expect(group.rejection('dear')).toEqual({
      reason: 'budget_exhausted',
      window,
      limitUsd: 10,
      leftUsd: 10,
      wantedUsd: 10.01,
      retryAfterMs: null,
    });
    expect(group.waiting()).toEqual([]);
    expect(call(group, 'exact', { usd: 10 })).toEqual(['grant exact.1']);
    call(group, 'late', { usd: 1 });
    expect(group.rejection('late')).toMatchObject({ leftUsd: 0, wantedUsd: 1 });
  });

  test('is rejected for the one that ends last', () => {
    const group = metered({ perHourUsd: 5, perMonthUsd: 8 });
    call(group, 'dear', { usd: 9 });
    expect(group.rejection('dear')).toMatchObject({ window: 'month', limitUsd: 8 });
  });

  test('takes nothing', () => {
    const group = metered({ perDayUsd: 10, rpm: 10, tpm: 1_000 });
    call(group, 'first');
    const before = leftIn(group);
    call(group, 'dear', { usd: 11, input: 100 });
    expect(leftIn(group)).toEqual(before);
  });

  test('is rejected as a try too', () => {
    const group = metered({ perDayUsd: 10 });
    const answer = call(group, 'dear', { usd: 11 }, { isTry: true });
    expect(answer).toEqual(['reject dear budget_exhausted']);
  });

  test('is rejected where it would pass on the slot of its parent', () => {
    const group = metered({ perDayUsd: 10 }, { slotsMax: 1, nested: 'pass' });
    call(group, 'parent', { usd: 6 });
    const parents = [group.lease('parent').id];
    const answer = call(group, 'child', { usd: 6 }, { parents });
    expect(answer).toEqual(['reject child budget_exhausted']);
    expect(call(group, 'cheap', { usd: 4 }, { parents })).toEqual(['grant cheap.1']);
  });

  test('passes in a dry run, and is counted', () => {
    const group = metered({ perDayUsd: 10 }, { isDryRun: true });
    expect(call(group, 'dear', { usd: 11 })).toEqual(['grant dear.1']);
    expect(group.state.totals).toMatchObject({ wouldWait: 1, rejected: {} });
  });

  test('does not stop those behind it', () => {
    const group = metered({ perDayUsd: 10 }, { slotsMax: 1 });
    call(group, 'holder', { usd: 1 });
    call(group, 'dear', { usd: 9 });
    call(group, 'cheap', { usd: 1 });
    // The holder turns out dearer than was thought.
    expect(group.release('holder', 'success', 1, used({ usd: 2 }))).toEqual([
      'ended holder.1',
      'reject dear budget_exhausted',
      'grant cheap.1',
    ]);
  });
});

describe('calls in flight', () => {
  test('count with their estimates', () => {
    const group = metered({ perDayUsd: 10 });
    call(group, 'a', { usd: 6 });
    expect(call(group, 'b', { usd: 5 })).toEqual(['reject b budget_exhausted']);
    expect(call(group, 'c', { usd: 4 })).toEqual(['grant c.1']);
  });

  test('count with what they really cost once they have ended', () => {
    const group = metered({ perDayUsd: 10 });
    call(group, 'a', { usd: 6 });
    group.release('a', 'success', 1, used({ usd: 1 }));
    expect(call(group, 'b', { usd: 9 })).toEqual(['grant b.1']);
    group.release('b', 'success', 1, used({ usd: 12 }));
    expect(leftIn(group)).toMatchObject({ reservedUsd: 0, spentUsd: 13 });
    expect(call(group, 'c', { usd: 0.01 })).toEqual(['reject c budget_exhausted']);
  });

  test('cost nothing where they were never sent', () => {
    const group = metered({ perDayUsd: 10 });
    call(group, 'a', { usd: 10 });
    group.release('a', 'unused');
    expect(call(group, 'b', { usd: 10 })).toEqual(['grant b.1']);
  });
});

test('a waiter is measured when it comes, and once more at its grant', () => {
  const group = metered({ perDayUsd: 10 }, { slotsMax: 1 });
  call(group, 'holder', { usd: 8 });
  expect(call(group, 'dear', { usd: 5 })).toEqual(['reject dear budget_exhausted']);
  expect(call(group, 'a', { usd: 2 })).toEqual([]);
  expect(group.release('holder', 'success', 1, used({ usd: 9 }))).toEqual([
    'ended holder.1',
    'reject a budget_exhausted',
  ]);
});

test('a new period brings a new budget, less what is in flight', () => {
  const group = metered({ perHourUsd: 10 });
  call(group, 'a', { usd: 8 });
  group.release('a', 'success', 1, used({ usd: 8 }));
  call(group, 'b', { usd: 2 });
  for (let ms = 0; ms < HOUR_LEFT_MS; ms += 20_000) renewOn(group, 'b');
  expect(call(group, 'c', { usd: 9 })).toEqual(['reject c budget_exhausted']);
  expect(call(group, 'd', { usd: 8 })).toEqual(['grant d.1']);
});

test('a call without a known price is for the caller of the core to reject', () => {
  const group = metered({ perDayUsd: 1 });
  call(group, 'a', { usd: 1 });
  expect(call(group, 'free')).toEqual(['grant free.1']);
});

function renewOn(group: TestGroup, name: string): void {
  group.advance(20_000);
  group.renew(name);
}
