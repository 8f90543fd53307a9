import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PROVIDERS } from '../../src/providers/catalog.ts';
import { costTheSame, pricesOf, type ModelPrice, type SourceModel } from './price-rows.ts';

/**
 * Generates `src/providers/prices/prices.json` from a copy of https://models.dev/api.json, or from a file of the same
 * shape: `{ "<provider>": { "models": { "<model>": { "cost": { "input": 1, "output": 2 } } } } }`. It prints the models
 * without a price on standard error.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    source: { type: 'string', default: 'https://models.dev/api.json' },
    date: { type: 'string', default: new Date().toISOString().slice(0, 10) },
  },
});

const FILE = join(
  fileURLToPath(new URL('../../', import.meta.url)),
  'src/providers/prices/prices.json',
);

/** Line width of the formatter, which would split a longer row into one line for each figure. */
const LINE_LENGTH_MAX = 100;

type Source = Readonly<Record<string, { readonly models: Readonly<Record<string, SourceModel>> }>>;

const [path] = positionals;
if (path === undefined) throw new Error('Usage: build-price-table.ts <api.json> [--date <day>]');
const source = JSON.parse(await readFile(path, 'utf8')) as Source;
const lists = PROVIDERS.flatMap(({ id, pricedAs }) =>
  pricedAs === undefined ? [] : [listOf(id, pricedAs)],
);
await writeFile(
  FILE,
  `{
  "source": "${values.source}",
  "date": "${values.date}",
  "rows": {
${lists.join(',\n')}
  }
}
`,
);

function listOf(upstream: string, provider: string): string {
  const models = source[provider]?.models;
  if (models === undefined) throw new Error(`${path} does not list the provider ${provider}.`);
  const { prices, leftOut } = pricesOf(upstream, models);
  for (const { name, reason } of leftOut) console.error(`${upstream}: ${name}: ${reason}`);
  return `    "${upstream}": [\n${inRows(prices).map(rowText).join(',\n')}\n    ]`;
}

/** Combines adjacent models with the same price into one row. */
function inRows(prices: readonly ModelPrice[]): readonly (readonly ModelPrice[])[] {
  const rows: ModelPrice[][] = [];
  for (const price of prices) {
    const row = rows.at(-1) ?? [];
    const [first] = row;
    const isShared =
      first !== undefined &&
      costTheSame(first, price) &&
      rowText([...row, price]).length < LINE_LENGTH_MAX;
    if (isShared) row.push(price);
    else rows.push([price]);
  }
  return rows;
}

function rowText(row: readonly ModelPrice[]): string {
  const names = row.map(({ name }) => name).join(' ');
  const [first] = row;
  const figures = [...(first?.rates ?? [])].map(String);
  if (first?.above) figures.push(`[${first.above.map(String).join(', ')}]`);
  return `      ["${names}", ${figures.join(', ')}]`;
}
