// Costs by key and model: what is counted adds up however it is looked at, over days, months and pools, and the table stays
// small whatever callers call.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addSums,
  COST_LINES_MAX,
  DAY_MS,
  dayOf,
  emptyCosts,
  joinCosts,
  NO_COSTS,
  noteCost,
  takeClosed,
  totalOf,
  type CalledFor,
  type Costs,
  type CostSums,
  type DayCosts,
} from '../../../src/core/parts/costs.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { dateOf, daysOf, periodsAt } from '../../../src/history/costs.ts';
import { costDays, costRows } from '../../../src/overview/pools.ts';

const NOON = Date.parse('2026-11-24T12:00:00Z');

/** Whole millionths, so that sums are exact. */
const aCall = fc.record({
  key: fc.constantFrom('ci', 'web', 'agents', 'fp_unknown', null),
  team: fc.constantFrom('apps', 'data', null),
  model: fc.constantFrom('gpt-4o', 'claude', 'llama', null),
  usd: fc.nat(1_000_000),
  inputTokens: fc.nat(100_000),
  cachedTokens: fc.nat(1_000),
  outputTokens: fc.nat(10_000),
  isUnpriced: fc.boolean(),
  hasWaited: fc.boolean(),
  pool: fc.constantFrom('openai', 'anthropic', 'auto:groq'),
  afterMs: fc.nat(2 * DAY_MS),
});

function sumOf(rows: readonly CostSums[]): CostSums {
  return rows.reduce<CostSums>(addSums, NO_COSTS);
}

function allDays(costs: Costs): DayCosts[] {
  return [...takeClosed(costs), ...(costs.today === null ? [] : [costs.today])];
}

function call(fields: Partial<CalledFor> = {}): CalledFor {
  const used = { usd: 1, inputTokens: 10, cachedTokens: 4, outputTokens: 5 };
  return {
    key: 'ci',
    team: null,
    model: 'm',
    isUnpriced: false,
    hasWaited: false,
    ...used,
    ...fields,
  };
}

describe('however it is looked at', () => {
  it('costs add up to what was called', () => {
    fc.assert(
      fc.property(fc.array(aCall, { maxLength: 200 }), (calls) => {
        const pools = new Map<string, Costs>();
        let now = NOON;
        for (const { pool, afterMs, ...each } of calls) {
          const costs = pools.get(pool) ?? emptyCosts();
          pools.set(pool, costs);
          now += afterMs;
          noteCost(costs, each, instant(now));
        }
        const reported = [...pools].map(([group, costs]) => {
          const days = allDays(costs);
          const sums = days.map((day) => ({ date: dateOf(day.day), ...totalOf(day) }));
          return { group, costs: { ...joinCosts(days), days: sums } };
        });
        const expected = sumOf(
          calls.map(({ isUnpriced, hasWaited, usd, inputTokens, cachedTokens, outputTokens }) => ({
            usd,
            inputTokens,
            cachedTokens,
            outputTokens,
            calls: 1,
            unpriced: Number(isUnpriced),
            waited: Number(hasWaited),
          })),
        );
        for (const by of ['key', 'team', 'model', 'group'] as const) {
          expect(sumOf(costRows(reported, by).map(sumsIn))).toEqual(expected);
        }
        expect(sumOf(costDays(reported).map(sumsIn))).toEqual(expected);
        const ofApps = calls.filter(({ team }) => team === 'apps');
        const apps = costRows(reported, 'team').find(({ name }) => name === 'apps');
        expect(apps?.calls ?? 0).toBe(ofApps.length);
      }),
    );
  });
});

function sumsIn({
  usd,
  inputTokens,
  cachedTokens,
  outputTokens,
  calls,
  unpriced,
  waited,
}: CostSums) {
  return { usd, inputTokens, cachedTokens, outputTokens, calls, unpriced, waited };
}

describe('the table', () => {
  it('has so many lines and no more, and what finds none still counts', () => {
    const costs = emptyCosts();
    for (let at = 0; at < 3 * COST_LINES_MAX; at += 1) {
      noteCost(costs, call({ model: `made-up-${at}` }), instant(NOON));
    }
    noteCost(costs, call({ model: 'made-up-0' }), instant(NOON));
    const [today] = allDays(costs);
    expect(today?.lines).toHaveLength(COST_LINES_MAX);
    expect(today?.lines[0]?.calls).toBe(2);
    expect(today?.rest?.calls).toBe(2 * COST_LINES_MAX);
    expect(today === undefined ? null : totalOf(today)).toMatchObject({
      calls: 3 * COST_LINES_MAX + 1,
      usd: 3 * COST_LINES_MAX + 1,
    });
  });

  it('of several days keeps the lines that cost most', () => {
    const day = (number: number): DayCosts => ({
      day: number,
      rest: null,
      lines: Array.from({ length: COST_LINES_MAX }, (_, at) => ({
        key: 'ci',
        team: null,
        model: `${number}-${at}`,
        usd: number,
        inputTokens: 1,
        cachedTokens: 0,
        outputTokens: 1,
        calls: 1,
        unpriced: 0,
        waited: 0,
      })),
    });
    const joined = joinCosts([day(1), day(2)]);
    expect(joined.lines).toHaveLength(COST_LINES_MAX);
    expect(joined.lines.every(({ usd }) => usd === 2)).toBe(true);
    expect(joined.rest).toMatchObject({ calls: COST_LINES_MAX, usd: COST_LINES_MAX });
  });

  it('begins anew with each day of UTC, and a clock that goes back stays in its day', () => {
    const costs = emptyCosts();
    const midnight = Date.parse('2026-12-01T00:00:00Z');
    noteCost(costs, call(), instant(midnight - 1));
    noteCost(costs, call(), instant(midnight));
    noteCost(costs, call(), instant(midnight - 1));
    expect(costs.closed.map(({ day }) => dateOf(day))).toEqual(['2026-11-30']);
    expect(allDays(costs).map((day) => totalOf(day).calls)).toEqual([1, 2]);
    expect(costs.closed).toEqual([]);
  });
});

describe('periods', () => {
  it('are those of the calendar', () => {
    expect(periodsAt(Date.parse('2026-03-01T00:00:00Z'))).toEqual({
      day: '2026-03-01',
      dayBefore: '2026-02-28',
      month: '2026-03',
      monthBefore: '2026-02',
    });
    expect(periodsAt(Date.parse('2027-01-01T10:00:00Z')).monthBefore).toBe('2026-12');
  });

  it('have all their days, and no others', () => {
    for (let month = 0; month < 1_200; month += 1) {
      const [first, next] = [Date.UTC(2000, month), Date.UTC(2000, month + 1)];
      const name = new Date(first).toISOString().slice(0, 7);
      expect(daysOf(name)).toEqual({ from: dayOf(first), to: dayOf(next) - 1 });
    }
    expect(daysOf('2026-11-24')).toEqual({ from: dayOf(NOON), to: dayOf(NOON) });
    for (const none of ['', '2026', '2026-13', 'x'.repeat(7), 'yesterday']) {
      expect(daysOf(none)).toBeNull();
    }
  });
});
