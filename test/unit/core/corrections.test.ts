import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  correctionsOf,
  CORRECTIONS_MAX,
  correctSpend,
  undoCorrection,
  emptySpend,
  PERIODS,
  settle,
  spentIn,
  type NewCorrection,
  type SpendState,
} from '../../../src/core/parts/spend.ts';
import { instant, type InstantMs } from '../../../src/core/words/ids.ts';

/** A Thursday at noon, in UTC. */
const NOON = instant(Date.UTC(2026, 10, 26, 12));
const at = (hours: number): InstantMs => instant(NOON + hours * 3_600_000);

function spend(usd: number, now = NOON, of = emptySpend()): SpendState {
  settle(of, { reservedUsd: 0, actualUsd: usd, key: 'a', agent: null }, now);
  return of;
}

/** Spent in the hour, the day and the month. */
const spentAt = (of: SpendState, now = NOON): number[] =>
  PERIODS.map((period) => spentIn(of.total, period, now));

const by = (usd: number, more: Partial<NewCorrection> = {}): NewCorrection => ({
  id: 'one',
  member: null,
  period: 'month',
  usd,
  by: 'ada',
  note: '',
  ...more,
});

describe('a correction', () => {
  it.each([
    ['hour', [4, 4, 4]],
    ['day', [10, 4, 4]],
    ['month', [10, 10, 4]],
  ] as const)('of a charge in this %s counts there and in the longer periods', (period, after) => {
    const of = spend(10);
    correctSpend(of, by(-6, { period }), NOON);
    expect(spentAt(of)).toEqual(after);
    undoCorrection(of, 'one', NOON);
    expect(spentAt(of)).toEqual([10, 10, 10]);
  });

  it('never goes below 0, and an undo restores only what was subtracted', () => {
    const of = spend(10);
    correctSpend(of, by(-9_000_000_000, { period: 'day' }), NOON);
    expect(spentAt(of)).toEqual([10, 0, 0]);
    expect(correctionsOf(of)).toMatchObject([{ applied: { hour: 0, day: -10, month: -10 } }]);
    spend(3, NOON, of);
    undoCorrection(of, 'one', NOON);
    expect(spentAt(of)).toEqual([13, 13, 13]);
  });

  it('is undone once', () => {
    const of = spend(10);
    correctSpend(of, by(-1), NOON);
    expect(spentAt(of)).toEqual([10, 10, 9]);
    expect(undoCorrection(of, 'one', NOON)).toBe(true);
    expect(undoCorrection(of, 'one', at(0.1))).toBe(true);
    expect(undoCorrection(of, 'another', NOON)).toBe(false);
    expect(spentAt(of)).toEqual([10, 10, 10]);
    expect(correctionsOf(of)).toMatchObject([{ applied: { hour: 0, day: 0, month: 0 } }]);
  });

  it('leaves nothing behind when it is undone, also if a later one builds on it', () => {
    const of = emptySpend();
    correctSpend(of, by(10, { id: 'plus' }), NOON);
    correctSpend(of, by(-10, { id: 'minus' }), NOON);
    undoCorrection(of, 'plus', NOON);
    expect(spentAt(of)).toEqual([0, 0, 0]);
    expect(correctionsOf(of)[0]).toMatchObject({ id: 'minus', applied: { month: 0 } });
    undoCorrection(of, 'minus', NOON);
    expect(spentAt(of)).toEqual([0, 0, 0]);
  });

  it('leaves no trace once all are undone, in any order, beside calls', () => {
    const usd = fc.integer({ min: -20, max: 20 });
    const changes = fc.array(fc.tuple(usd, fc.constantFrom(...PERIODS), fc.nat(3)), {
      maxLength: 6,
    });
    fc.assert(
      fc.property(fc.nat(20), changes, fc.array(fc.nat(9)), (first, made, order) => {
        const of = spend(first);
        let charged = first;
        for (const [index, [amount, period, later]] of made.entries()) {
          correctSpend(of, by(amount, { id: `${index}`, period }), NOON);
          spend(later, NOON, of);
          charged += later;
        }
        const ids = made.map((_, index) => `${index}`);
        for (const pick of [...order, ...ids.map(() => 0)]) {
          const [id] = ids.splice(pick % Math.max(1, ids.length), 1);
          if (id !== undefined) undoCorrection(of, id, NOON);
          expect(Math.min(...spentAt(of))).toBeGreaterThanOrEqual(0);
        }
        for (const left of spentAt(of)) expect(left).toBeCloseTo(charged, 6);
      }),
    );
  });

  it('is undone in the periods that are still current', () => {
    const of = spend(10);
    correctSpend(of, by(5, { period: 'hour' }), NOON);
    undoCorrection(of, 'one', at(1));
    expect(spentAt(of, at(1))).toEqual([0, 10, 10]);
    correctSpend(of, by(5, { id: 'two', period: 'hour' }), at(1));
    undoCorrection(of, 'two', at(24 * 30));
    expect(spentAt(of, at(24 * 30))).toEqual([0, 0, 0]);
  });

  it('adds to a budget without spend', () => {
    const of = emptySpend();
    correctSpend(of, by(2, { period: 'day' }), NOON);
    expect(spentAt(of)).toEqual([0, 2, 2]);
  });

  it('is kept while it is among the newest 20', () => {
    const of = spend(10);
    for (let each = 0; each <= CORRECTIONS_MAX; each += 1) {
      correctSpend(of, by(1, { id: `c${each}` }), NOON);
    }
    expect(correctionsOf(of)).toHaveLength(CORRECTIONS_MAX);
    expect(correctionsOf(of)[0]?.id).toBe(`c${CORRECTIONS_MAX}`);
    undoCorrection(of, 'c0', NOON);
    expect(spentAt(of)[2]).toBe(10 + CORRECTIONS_MAX + 1);
  });
});
