import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';

/** The arithmetic of `docs/cost.md`: quantities by its formulas, money by its prices, sums by its rows. */

const page = await readFile('docs/cost.md', 'utf8');

/** The rows of the table under a heading row that begins with `first`: a name, and what stands behind it. */
function table(first: string): Map<string, string[]> {
  const from = page.indexOf(`\n| ${first} |`);
  if (from === -1) throw new Error(`no table begins with ${first}`);
  const lines =
    page
      .slice(from + 1)
      .split('\n\n')[0]
      ?.split('\n') ?? [];
  const cells = lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.replaceAll('*', '').trim()),
  );
  return new Map(cells.map(([name = '', ...rest]) => [name, rest]));
}

function numbers(rows: Map<string, string[]>, name: string): number[] {
  const cells = rows.get(name);
  if (cells === undefined) throw new Error(`no row ${name}`);
  return cells.map((cell) => Number(cell.replaceAll(',', '').replace(/ .*/, '')));
}

function constant(rows: Map<string, string[]>, name: string): number {
  return numbers(rows, name)[0] ?? Number.NaN;
}

const DAYS = 30;
const DAY_S = 86_400;
const GB = 0.128;
const CALLS_A_DAY = [1_000, 10_000, 100_000, 10_000_000];

const prices = table('resource');
const perCall = table('what | how much');
const perPool = table('what | a day, at most');
const month = table('a month');
const usd = table('USD a month');
const free = table('a day');

const RESOURCES = [...prices.keys()];

/** What a resource is used for in a month, by the formulas that the page gives. */
function quantity(resource: string, column: number): number {
  const calls = CALLS_A_DAY[column] ?? Number.NaN;
  const pools = numbers(month, 'pools')[column] ?? Number.NaN;
  const isolates = numbers(month, 'busy isolates')[column] ?? Number.NaN;
  switch (resource) {
    case 'Worker requests':
      return DAYS * calls * constant(perCall, 'Worker requests');
    case 'Worker CPU, ms':
      return DAYS * calls * constant(perCall, 'Worker CPU');
    case 'object requests': {
      const asks = calls * constant(perCall, "requests to the group's object");
      return DAYS * (asks + Math.min(calls, (DAY_S / 2) * isolates));
    }
    case 'object duration, GB-s': {
      const awakeS = Math.min((constant(perCall, 'object awake') * calls) / pools, DAY_S);
      return DAYS * pools * awakeS * GB;
    }
    case 'rows written':
      return (
        DAYS *
        (constant(perCall, 'rows written') * calls + constant(perPool, 'rows written') * pools)
      );
    case 'rows read': {
      const loaded = pools * constant(perPool, 'rows read while it stays loaded');
      const starts = Math.min(calls, (DAY_S / 10) * pools);
      const anew = starts * constant(perPool, 'rows read where it is loaded anew');
      return DAYS * (constant(perCall, 'rows read') * calls + loaded + anew);
    }
    default:
      throw new Error(`no formula for ${resource}`);
  }
}

describe('what the platform costs', () => {
  it('has six resources with a price each, and a row for each of them', () => {
    expect(RESOURCES).toHaveLength(6);
    for (const rows of [month, usd]) {
      expect([...rows.keys()].filter((name) => RESOURCES.includes(name))).toEqual(RESOURCES);
    }
    expect(numbers(month, 'calls')).toEqual(CALLS_A_DAY.map((calls) => DAYS * calls));
  });

  it.each(RESOURCES)('has the quantities of %s that its formulas give', (resource) => {
    const told = numbers(month, resource);
    expect(told).toEqual(CALLS_A_DAY.map((_, column) => Math.round(quantity(resource, column))));
  });

  it.each(RESOURCES)('has the money for %s that its prices give', (resource) => {
    const [included = Number.NaN, perMillion = Number.NaN] = numbers(prices, resource);
    const paid = CALLS_A_DAY.map(
      (_, column) => (Math.max(0, quantity(resource, column) - included) * perMillion) / 1e6,
    );
    expect(usd.get(resource)).toEqual(paid.map((each) => each.toFixed(2)));
  });

  it('has totals that are the sums of their columns', () => {
    const parts = ['the plan', ...RESOURCES].map((name) => numbers(usd, name));
    const sums = CALLS_A_DAY.map((_, column) =>
      parts.reduce((sum, part) => sum + (part[column] ?? Number.NaN), 0).toFixed(2),
    );
    expect(usd.get('total')).toEqual(sums);
  });

  it.each([...free.keys()])(
    'says what of the free plan %s take, and marks what does not fit',
    (resource) => {
      const [limit = Number.NaN, ...told] = numbers(free, resource);
      expect(limit).toBe(numbers(prices, resource)[2]);
      expect(told).toEqual(told.map((_, column) => Math.round(quantity(resource, column) / DAYS)));
      const line = page.split('\n').findLast((each) => each.startsWith(`| ${resource} |`)) ?? '';
      const marked = line
        .split('|')
        .slice(3, -1)
        .map((cell) => cell.includes('**'));
      expect(marked).toEqual(told.map((each) => each > limit));
    },
  );

  it('has what each feature adds beyond what is included', () => {
    const features = table('feature');
    const month10M = DAYS * (CALLS_A_DAY.at(-1) ?? Number.NaN);
    const priceOf = (resource: string) => (numbers(prices, resource)[1] ?? Number.NaN) / 1e6;
    const row = priceOf('rows written');
    const chunks = (ms: number): number =>
      Math.round(month10M * 500 * ms * priceOf('Worker CPU, ms'));
    const told = [...features].map(([name, cells]) => [name, Number(cells.at(-1))]);
    expect(Object.fromEntries(told)).toMatchObject({
      'a group of at most 4 slots': Math.round(month10M * row),
      'watching both sides of a stream, the default': chunks(0.055),
      'counting tokens or cost': chunks(0.003),
      'one more group for the same call': Math.round(
        month10M * (priceOf('object requests') + 2 * row),
      ),
    });
    const poolUsd = DAYS * DAY_S * GB * priceOf('object duration, GB-s');
    expect(features.get('a partition, an automatic group')?.[0]).toContain(
      `${poolUsd.toFixed(2)} USD`,
    );
  });
});
