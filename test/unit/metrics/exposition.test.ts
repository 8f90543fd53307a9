import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { GAUGES } from '../../../src/contract/gauges.ts';
import { WARNING_KINDS } from '../../../src/contract/attention.ts';
import { emptyHistogram, observe } from '../../../src/core/parts/totals.ts';
import * as families from '../../../src/http/metrics.ts';
import { Exposition } from '../../../src/http/metrics.ts';
import { ALL_FAMILIES } from './all-families.ts';
import { parseExposition, type ParsedFamily } from './exposition-parser.ts';

async function read(exposition: Exposition): Promise<ParsedFamily[]> {
  return parseExposition(await exposition.toResponse().text());
}

/** The part of docs/metrics.md under a heading. */
function sectionOf(heading: string): string {
  const sections = readFileSync('docs/metrics.md', 'utf8').split(/^## /m);
  return sections.find((section) => section.startsWith(`${heading}\n`)) ?? '';
}

describe('the text format', () => {
  it.each([
    'quote " here',
    String.raw`back\slash`,
    'new\nline',
    'brace } and = and ,',
    'ünïcödé',
    '',
  ])('carries a label of %j', async (value) => {
    const exposition = new Exposition();
    exposition.add(GAUGES.in_use.metric, { group: value }, 3);
    const [family] = await read(exposition);
    expect(family?.samples).toEqual([
      { name: 'headgate_slots_in_use', labels: { group: value }, value: 3 },
    ]);
  });

  it.each([0, 0.1, 1e-9, 1e21, -1, Infinity, -Infinity])('carries the value %d', async (value) => {
    const exposition = new Exposition();
    exposition.add(families.RATE_LEFT, {}, value);
    const [family] = await read(exposition);
    expect(family?.samples[0]?.value).toBe(value);
  });

  it('names a counter and its samples alike, by _total', async () => {
    const exposition = new Exposition();
    exposition.addEach(GAUGES.rejected_total.metric, { group: 'g' }, 'reason', {
      busy: 2,
      paused: 1,
    });
    const [family] = await read(exposition);
    expect(family?.name).toBe('headgate_rejections_total');
    expect(family?.samples[0]).toEqual({
      name: 'headgate_rejections_total',
      labels: { group: 'g', reason: 'busy' },
      value: 2,
    });
  });

  it('writes durations in seconds, as cumulative buckets', async () => {
    const histogram = emptyHistogram();
    for (const durationMs of [3, 15, 15, 1_000_000]) observe(histogram, durationMs);
    const exposition = new Exposition();
    exposition.addHistogram(families.WAIT, {}, histogram);
    const [family] = await read(exposition);
    const at = (le: string) => family?.samples.find(({ labels }) => labels['le'] === le)?.value;
    expect([at('0.01'), at('0.02'), at('655.36'), at('+Inf')]).toEqual([1, 3, 3, 4]);
    expect(family?.samples.find(({ name }) => name.endsWith('_sum'))?.value).toBe(1_000.033);
  });

  it('joins what has the same labels, each metric in its way', async () => {
    const exposition = new Exposition();
    for (const [length, waitS, up] of [
      [3, 5, 1],
      [4, 2, 0],
    ] as const) {
      exposition.add(GAUGES.in_use.metric, { partition: 'OTHER' }, length);
      exposition.add(GAUGES.oldest_wait_ms.metric, { partition: 'OTHER' }, waitS);
      exposition.add(families.POOL_UP, { partition: 'OTHER' }, up);
    }
    const joined = await read(exposition);
    expect(joined.map(({ samples }) => samples.map(({ value }) => value))).toEqual([[7], [5], [0]]);
  });
});

describe('the names', () => {
  it.each(ALL_FAMILIES.map((family) => [family.name, family] as const))(
    '%s keeps to the conventions',
    (name, { type, help }) => {
      expect(name).toMatch(/^headgate_[a-z]+(_[a-z]+)*$/);
      expect(name).not.toMatch(/_(total|count|sum|bucket|info|ms)$/);
      expect(help).toMatch(/^[A-Z].*\.$/);
      expect(type !== 'histogram' || name.endsWith('_seconds')).toBe(true);
    },
  );

  it('are the rows of docs/metrics.md, as a scrape has them, each with its type', () => {
    const section = sectionOf('All metrics');
    const rows = [...section.matchAll(/^\| (`headgate_[^|]*) \| (\w+) \|/gm)];
    const documented = rows.flatMap(([, cell = '', type]) =>
      [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => `${name} ${type}`),
    );
    const names = ALL_FAMILIES.map(({ name, type }) =>
      type === 'counter' ? `${name}_total ${type}` : `${name} ${type}`,
    );
    expect(documented.toSorted()).toEqual(names.toSorted());
  });

  it('are all different', () => {
    const names = ALL_FAMILIES.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('docs/metrics.md', () => {
  const firstCells = (heading: string): string[] =>
    [...sectionOf(heading).matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
    );

  it('lists every kind of warning', () => {
    expect(firstCells('Warnings').toSorted()).toEqual(WARNING_KINDS.toSorted());
  });

  it('lists every event of the log', () => {
    const logged = globSync('src/**/*.ts').flatMap((path) => {
      const calls = readFileSync(path, 'utf8').matchAll(/logEvent\(\s*'(\w+)'/g);
      return [...calls].map(([, event = '']) => event);
    });
    expect(logged.length).toBeGreaterThan(25);
    const documented = new Set(firstCells('Logs'));
    expect(logged.filter((event) => !documented.has(event))).toEqual([]);
  });
});

describe('the reader of the tests', () => {
  const head = '# HELP a_total Help.\n# TYPE a_total counter\n';
  it.each([
    ['an unended line', `${head}a_total 1`],
    ['a series twice', `${head}a_total 1\na_total 2\n`],
    ['another family', `${head}b_total 1\n`],
    ['an unescaped quote', `${head}a_total{x="a"b"} 1\n`],
    ['no value', `${head}a_total\n`],
    ['a counter below 0', `${head}a_total -1\n`],
    ['no type', '# HELP a Help.\na 1\n'],
    ['a type after its samples', `${head}a_total 1\n# TYPE a_total gauge\n`],
    [
      'buckets that fall',
      '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n',
    ],
    ['no last bucket', '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_sum 1\nh_count 2\n'],
  ])('refuses %s', (_what, text) => {
    expect(() => parseExposition(text)).toThrow(/./);
  });
});
