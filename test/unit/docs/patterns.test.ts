// The figures of docs/patterns.md for a day without each pattern are those that its assumptions give.
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { CALL_S, DAY_S, loadOf, withQueue, withRetries } from './day-without.ts';

const page = await readFile('docs/patterns.md', 'utf8');

const LOADS = [1_000, 10_000, 100_000].map(loadOf);

/** The three cells behind the one that begins with these words. */
function cells(row: string): string[] {
  const line = page.split('\n').find((one) => one.startsWith(`| ${row}`));
  if (line === undefined) throw new Error(`no row ${row}`);
  return line
    .split('|')
    .slice(-4, -1)
    .map((cell) => cell.trim());
}

/** Rounded to two digits, as the page writes figures. */
function round(value: number): string {
  if (value < 1) return value.toPrecision(2);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  const digits = value < 10 ? 1 : 0;
  return (digits === 1 ? Number(value.toFixed(1)) : Math.round(value / unit) * unit).toLocaleString(
    'en-US',
  );
}

describe('docs/patterns.md, a day without', () => {
  it('says how many slots there are, and how full', () => {
    expect(cells('pattern')).toEqual(
      LOADS.map(({ callsPerDay, perSecond, slots }) => {
        const use = Math.round((100 * perSecond * CALL_S) / slots);
        return `${callsPerDay.toLocaleString('en-US')} a day: ${slots} slot${slots === 1 ? '' : 's'}, ${use} % in use`;
      }),
    );
  });

  it('says what a queue costs', () => {
    expect(cells('all of them')).toEqual(
      LOADS.map((load) => {
        const { meanWaitS, p99WaitS } = withQueue(load);
        return `none fails; wait ${round(meanWaitS)} s, p99 ${round(p99WaitS)} s`;
      }),
    );
  });

  it('says what three tries of each client cost', () => {
    expect(cells('a queue')).toEqual(
      LOADS.map((load) => {
        const { failed, repeated } = withRetries(load, 3);
        return `${round(failed)} fail, ${round(repeated)} tries more`;
      }),
    );
  });

  it('says what trying until it works costs', () => {
    expect(cells('an order')).toEqual(
      LOADS.map((load) => {
        const { repeated, meanWaitS, p99WaitS } = withRetries(load, Infinity);
        return `${round(repeated)} tries more; wait ${round(meanWaitS)} s, p99 ${round(p99WaitS)} s`;
      }),
    );
  });

  it('says what a slot costs that leaks for four hours', () => {
    const leakedS = 4 * 3_600;
    expect(cells('leases that end')).toEqual(
      LOADS.map((load) => {
        const offered = (load.callsPerDay * leakedS) / DAY_S;
        const served = ((load.slots - 1) * leakedS) / CALL_S;
        if (served < offered) return `${round(offered - served)} fail`;
        const less = withQueue({ ...load, slots: load.slots - 1 });
        return `none fails; wait ${round(less.meanWaitS)} s`;
      }),
    );
  });

  it('says what repeating costs while the upstream fails', () => {
    expect(cells('a breaker')).toEqual(
      LOADS.map(({ callsPerDay }) => {
        const met = (callsPerDay * 600) / DAY_S;
        return `${round(2 * met)} tries for nothing; ${round(8 * met)} behind a proxy that tries 3 times too`;
      }),
    );
  });
});
