// The table of docs/faq.md on the costs of 429s has the figures that the script computes, and the factors of the estimate
// cover the days that were simulated.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { DAYS, play, tableRows } from '../../../scripts/without-queue.ts';
import { FAILED_CALLS, ATTEMPTS_MORE, withoutQueue } from '../../../src/history/costs.ts';

const faq = readFileSync('docs/faq.md', 'utf8');
const costs = readFileSync('docs/platform-cost.md', 'utf8');

it('the table has the rows that the script prints', () => {
  for (const row of tableRows()) expect(faq).toContain(row);
  expect(faq.match(/^\| [\d,]+ \|/gm)).toHaveLength(DAYS.length);
});

it('what Headgate costs there is what the platform costs', () => {
  const [, oneK, tenK, hundredK] =
    /\| \*\*total\*\* \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|/.exec(costs) ?? [];
  expect(DAYS.map(({ platformUsd }) => platformUsd)).toEqual([oneK, tenK, hundredK].map(Number));
});

it.each(DAYS)('the factors cover a day of $calls calls', (day) => {
  for (const seed of [1, 2, 3]) {
    const { waited, failed, triesMore } = play(day, 50_000, seed);
    for (const [part, { from, to }] of [
      [failed / waited, FAILED_CALLS],
      [triesMore / waited, ATTEMPTS_MORE],
    ] as const) {
      expect(part).toBeGreaterThan(from);
      expect(part).toBeLessThan(to);
    }
  }
});

it('nobody waited, so nothing would have been lost', () => {
  const nothing = { from: 0, to: 0 };
  expect(withoutQueue(0, 0.01)).toEqual({
    tries_more: nothing,
    failed_calls: nothing,
    usd_one_step: nothing,
    usd_whole_run: nothing,
  });
  expect(withoutQueue(100, 0.02).usd_one_step).toEqual({ from: 0.2, to: 1.5 });
});
