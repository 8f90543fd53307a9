import type { BudgetSettings } from '../../../src/core/words/settings.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import {
  budgetBlock,
  type CallCost,
  emptySpend,
  refund,
  type Period,
  reserve,
  settle,
  type SpendState,
  SPENDERS_MAX,
  spentIn,
} from '../../../src/core/parts/spend.ts';

const utc = (text: string) => instant(Date.parse(`${text}Z`));
const NOW = utc('2026-02-10T14:20:00');

const NONE: BudgetSettings = { perHourUsd: null, perDayUsd: null, perMonthUsd: null };

let spend: SpendState;

beforeEach(() => {
  spend = emptySpend();
});

function pay(actualUsd: number, at = NOW, call: Partial<CallCost> = {}): void {
  settle(spend, { reservedUsd: 0, actualUsd, key: null, agent: null, ...call }, at);
}

/** Which budget a call of a dollar does not fit into, and until when. */
function blocked(settings: Partial<BudgetSettings>, at = NOW, usd = 1): string | null {
  const block = budgetBlock(spend, { ...NONE, ...settings }, usd, at);
  return block === null ? null : `${block.period} ${new Date(block.endsAt).toISOString()}`;
}

test('without a budget anything may be spent', () => {
  pay(1e6);
  expect(blocked({})).toBeNull();
});

test('a budget is spent to its last cent and not beyond', () => {
  // In floating point these are 0.30000000000000004.
  for (let index = 0; index < 2; index += 1) pay(0.1);
  expect(blocked({ perHourUsd: 0.3 }, NOW, 0.1)).toBeNull();
  expect(blocked({ perHourUsd: 0.3 }, NOW, 0.11)).not.toBeNull();
});

test('a call that costs nothing passes whatever was spent', () => {
  pay(50);
  expect(blocked({ perDayUsd: 10 }, NOW, 0)).toBeNull();
});

test.each<[Partial<BudgetSettings>, string]>([
  [{ perHourUsd: 5 }, 'hour 2026-02-10T15:00:00.000Z'],
  [{ perDayUsd: 5 }, 'day 2026-02-11T00:00:00.000Z'],
  [{ perMonthUsd: 5 }, 'month 2026-03-01T00:00:00.000Z'],
  [{ perHourUsd: 5, perDayUsd: 5, perMonthUsd: 50 }, 'day 2026-02-11T00:00:00.000Z'],
])('with %j it is told when there is a new one: %s', (settings, expected) => {
  pay(4.5);
  expect(blocked(settings)).toBe(expected);
});

test.each<[Period, string, string]>([
  ['hour', '2026-02-10T14:59:59.999', '2026-02-10T15:00:00'],
  ['day', '2026-02-10T23:59:59.999', '2026-02-11T00:00:00'],
  ['month', '2026-02-28T23:59:59.999', '2026-03-01T00:00:00'],
])('what was spent counts until the end of the %s', (period, last, next) => {
  pay(3);
  expect(spentIn(spend.total, period, utc(last))).toBe(3);
  expect(spentIn(spend.total, period, utc(next))).toBe(0);
  pay(2, utc(next));
  expect(spentIn(spend.total, period, utc(next))).toBe(2);
});

test('months are those of the calendar, for two centuries', () => {
  for (let month = 0; month < 2_400; month += 1) {
    const [beganAt, endsAt] = [Date.UTC(1970, month), Date.UTC(1970, month + 1)];
    for (const ms of [beganAt, beganAt + 43_200_000, endsAt - 1]) {
      spend = emptySpend();
      pay(1, instant(ms));
      expect(spend.total.beganAt.month).toBe(beganAt);
      expect(blocked({ perMonthUsd: 1 }, instant(ms))).toBe(
        `month ${new Date(endsAt).toISOString()}`,
      );
    }
  }
});

describe('calls in flight', () => {
  test('count with their estimates, and then with what they cost', () => {
    reserve(spend, 3);
    reserve(spend, 1.5);
    expect(blocked({ perDayUsd: 5 })).not.toBeNull();
    pay(0.25, NOW, { reservedUsd: 3 });
    expect(blocked({ perDayUsd: 5 })).toBeNull();
    expect(spend.reservedUsd).toBe(1.5);
    expect(spentIn(spend.total, 'day', NOW)).toBe(0.25);
  });

  test('that were never made cost nothing', () => {
    reserve(spend, 5);
    refund(spend, 5);
    expect(spend).toEqual(emptySpend());
  });

  test('leave no crumbs', () => {
    for (let index = 0; index < 10; index += 1) reserve(spend, 0.1);
    for (let index = 0; index < 10; index += 1) refund(spend, 0.1);
    expect(spend.reservedUsd).toBe(0);
  });

  test('count in the period that they end in', () => {
    reserve(spend, 2);
    const next = utc('2026-02-11T00:00:01');
    expect(blocked({ perDayUsd: 2 }, next)).not.toBeNull();
    pay(1.5, next, { reservedUsd: 2 });
    expect(spentIn(spend.total, 'day', next)).toBe(1.5);
  });
});

test('a clock that goes back gives no second budget', () => {
  pay(5, utc('2026-02-10T15:00:00'));
  expect(blocked({ perHourUsd: 5 })).not.toBeNull();
  pay(1);
  expect(spentIn(spend.total, 'hour', utc('2026-02-10T15:30:00'))).toBe(6);
});

describe('keys and agents', () => {
  test('have sums of their own', () => {
    pay(1, NOW, { key: 'ann', agent: 'run-1' });
    pay(2, NOW, { key: 'ann', agent: 'run-2' });
    pay(4, NOW, { key: 'bob' });
    const sums = (all: SpendState['keys']) => all.map(({ id, usd }) => [id, usd.day]);
    expect(sums(spend.keys)).toEqual([
      ['ann', 3],
      ['bob', 4],
    ]);
    expect(sums(spend.agents)).toEqual([
      ['run-1', 1],
      ['run-2', 2],
    ]);
    expect(spentIn(spend.total, 'day', NOW)).toBe(7);
  });

  test('are forgotten when there are too many, who has not spent for longest first', () => {
    for (let index = 0; index < SPENDERS_MAX; index += 1) pay(1, NOW, { key: `key-${index}` });
    pay(1, NOW, { key: 'key-0' });
    pay(1, NOW, { key: 'new' });
    const ids = spend.keys.map(({ id }) => id);
    expect(ids).toHaveLength(SPENDERS_MAX);
    expect(ids).toContain('key-0');
    expect(ids).not.toContain('key-1');
    expect(spentIn(spend.total, 'day', NOW)).toBe(SPENDERS_MAX + 2);
  });
});

test('it is the same after it was written and read', () => {
  reserve(spend, 1);
  pay(5, NOW, { key: 'ann' });
  const before = blocked({ perDayUsd: 6.5 });
  spend = JSON.parse(JSON.stringify(spend)) as SpendState;
  expect(blocked({ perDayUsd: 6.5 })).toBe(before);
  expect(before).not.toBeNull();
});
