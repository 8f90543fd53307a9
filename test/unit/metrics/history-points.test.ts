// Points of a history are added up over time, and over the pools of a group.
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { HistoryPoint } from '../../../src/contract/history.ts';
import { emptyCounts } from '../../../src/core/parts/totals.ts';
import { inSteps, joinPools, joinTenants, longest } from '../../../src/history/points.ts';

const EMPTY: HistoryPoint = {
  at: 0,
  inUseMax: 0,
  slotMs: 0,
  limit: 4,
  limitConfigured: 4,
  queuedMax: 0,
  waits: emptyCounts(),
  granted: 0,
  rejected: {},
  refusals: {},
  inputTokens: 0,
  outputTokens: 0,
  usd: 0,
  ended: {},
  waitedFor: {},
  waitedForMs: {},
  tenantsWaited: [],
  tenantsHeld: [],
};

const BUSY: HistoryPoint = {
  ...EMPTY,
  inUseMax: 3,
  granted: 5,
  grantedByMember: { a: 3, b: 2 },
  refusedByMember: {},
  inUseMaxByMember: { a: 2, b: 1 },
};
const LATER: HistoryPoint = {
  ...BUSY,
  at: 60_000,
  inUseMax: 2,
  inUseMaxByMember: { b: 2, c: 1 },
};

it('of several minutes the most in use is that of one of them, and grants add up', () => {
  expect(inSteps([BUSY, LATER], 120_000)).toMatchObject([
    {
      at: 0,
      inUseMax: 3,
      inUseMaxByMember: { a: 2, b: 2, c: 1 },
      granted: 10,
      grantedByMember: { a: 6, b: 4 },
    },
  ]);
});

it('of several pools the most in use adds up too, as a bound', () => {
  expect(joinPools(BUSY, LATER)).toMatchObject({
    inUseMax: 5,
    inUseMaxByMember: { a: 2, b: 3, c: 1 },
    grantedByMember: { a: 6, b: 4 },
  });
});

it('a group that names no members has nothing by member', () => {
  const [joined] = inSteps([EMPTY, { ...EMPTY, at: 60_000 }], 120_000);
  expect(Object.keys(joined ?? {}).filter((key) => key.endsWith('ByMember'))).toEqual([]);
});

it('a minute in which the group named no members has none in use by member', () => {
  expect(inSteps([EMPTY, LATER], 120_000)).toMatchObject([{ inUseMaxByMember: { b: 2, c: 1 } }]);
});

describe('why calls waited, and whose', () => {
  const WAITED: HistoryPoint = {
    ...EMPTY,
    waitedFor: { slots: 3 },
    waitedForMs: { slots: 9_000 },
    tenantsWaited: [
      ['alice', 6_000],
      ['bob', 3_000],
    ],
    tenantsHeld: [['alice', 60_000]],
  };
  const PAUSED: HistoryPoint = {
    ...EMPTY,
    at: 60_000,
    waitedFor: { slots: 1, operator_pause: 2 },
    waitedForMs: { slots: 500, operator_pause: 80_000 },
    tenantsWaited: [['bob', 80_500]],
    tenantsHeld: [['bob', 1]],
  };

  it.each([
    ['over time', inSteps([WAITED, PAUSED], 120_000)[0]],
    ['over pools', joinPools(WAITED, PAUSED)],
  ])('adds up %s, the longest first', (_how, joined) => {
    expect(joined).toMatchObject({
      waitedFor: { slots: 4, operator_pause: 2 },
      waitedForMs: { slots: 9_500, operator_pause: 80_000 },
      tenantsWaited: [
        ['bob', 83_500],
        ['alice', 6_000],
      ],
      tenantsHeld: [
        ['alice', 60_000],
        ['bob', 1],
      ],
    });
  });

  it('names of all kinds are names', () => {
    const odd = joinTenants([['__proto__', 1]], [['constructor', 2]]);
    expect(odd).toEqual([
      ['constructor', 2],
      ['__proto__', 1],
    ]);
  });

  it('is bounded however many tenants there are, and keeps whoever took most in each', () => {
    const times = fc.uniqueArray(fc.tuple(fc.string(), fc.integer({ min: 0, max: 1_000 })), {
      selector: ([tenant]) => tenant,
    });
    fc.assert(
      fc.property(fc.array(times, { minLength: 1, maxLength: 30 }), (minutes) => {
        const all = minutes.map((minute) => longest(minute, 5));
        const joined = all.reduce((sum, minute) => joinTenants(sum, minute), []);
        const exact = new Map<string, number>();
        for (const [tenant, ms] of minutes.flat()) {
          exact.set(tenant, (exact.get(tenant) ?? 0) + ms);
        }
        expect(joined.length).toBeLessThanOrEqual(10);
        expect(joined.map(([, ms]) => ms)).toEqual(
          joined.map(([, ms]) => ms).toSorted((a, b) => b - a),
        );
        for (const [tenant, ms] of joined) {
          expect(ms).toBeGreaterThan(0);
          expect(ms).toBeLessThanOrEqual(exact.get(tenant) ?? 0);
        }
        const most = Math.max(0, ...all.flat().map(([, ms]) => ms));
        expect(joined[0]?.[1] ?? 0).toBeGreaterThanOrEqual(most);
      }),
    );
  });
});
