import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { costTheSame, pricesOf, type ModelPrice, type SourceModel } from './price-rows.ts';

/**
 * Writes the files of `src/providers/prices/lists` from a copy of https://models.dev/api.json, or of a file of
 * the same form: `{ "<provider>": { "models": { "<model>": { "cost": { "input": 1, "output": 2 } } } } }`.
 * Says on stderr which models of it get no price.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    source: { type: 'string', default: 'https://models.dev/api.json' },
    date: { type: 'string', default: new Date().toISOString().slice(0, 10) },
  },
});

const FOLDER = join(
  fileURLToPath(new URL('../../', import.meta.url)),
  'src/providers/prices/lists',
);

interface ListFile {
  readonly name: string;
  readonly constant: string;
  readonly about: string;
  /** Our upstreams, and the provider whose list holds for each. */
  readonly providers: Readonly<Record<string, string>>;
}

/**
 * NVIDIA's list has a price of 0 for nearly everything, and Perplexity is paid for requests besides
 * tokens: both are left out.
 */
const FILES: readonly ListFile[] = [
  {
    name: 'vendors',
    constant: 'VENDOR_PRICES',
    about: 'Prices of the vendors of models, most expensive first.',
    providers: {
      anthropic: 'anthropic',
      cohere: 'cohere',
      'dashscope-intl': 'alibaba',
      deepseek: 'deepseek',
      gemini: 'google',
      minimax: 'minimax',
      mistral: 'mistral',
      moonshot: 'moonshotai',
      openai: 'openai',
      xai: 'xai',
      zai: 'zai',
      zhipu: 'zhipuai',
    },
  },
  {
    name: 'clouds',
    constant: 'CLOUD_PRICES',
    about: 'Prices of clouds, most expensive first.',
    providers: {
      azure: 'azure',
      bedrock: 'amazon-bedrock',
      vertex: 'google-vertex',
      'workers-ai': 'cloudflare-workers-ai',
    },
  },
  {
    name: 'hosts',
    constant: 'HOST_PRICES',
    about: 'Prices of hosts of open weights, most expensive first.',
    providers: {
      cerebras: 'cerebras',
      deepinfra: 'deepinfra',
      fireworks: 'fireworks-ai',
      groq: 'groq',
      together: 'togetherai',
    },
  },
];

/** Maximum length of a line, as the formatter has it: a longer row would be broken into a line for each figure. */
const LINE_LENGTH_MAX = 100;

type Source = Readonly<Record<string, { readonly models: Readonly<Record<string, SourceModel>> }>>;

const [path] = positionals;
if (path === undefined) throw new Error('Usage: build-price-table.ts <api.json> [--date <day>]');
const source = JSON.parse(await readFile(path, 'utf8')) as Source;
for (const file of FILES) await writeFile(join(FOLDER, `${file.name}.ts`), textOf(file));

function textOf({ constant, about, providers }: ListFile): string {
  const lists = Object.entries(providers).map(([upstream, provider]) => listOf(upstream, provider));
  return `import type { PriceList } from '../price-list.ts';

// Written by scripts/prices/build-price-table.ts; docs/budgets.md says how.
const PUBLISHED = { source: '${values.source}', date: '${values.date}' };

/** ${about} */
export const ${constant} = {
${lists.join('')}} satisfies Readonly<Record<string, PriceList>>;
`;
}

function listOf(upstream: string, provider: string): string {
  const models = source[provider]?.models;
  if (models === undefined) throw new Error(`${path} has no provider ${provider}.`);
  const { prices, leftOut } = pricesOf(upstream, models);
  for (const { name, reason } of leftOut) console.error(`${upstream}: ${name}: ${reason}`);
  const rows = inRows(prices).map((row) => `${rowText(row)}\n`);
  const key = /^[a-z]+$/.test(upstream) ? upstream : `'${upstream}'`;
  return `  ${key}: {\n    ...PUBLISHED,\n    rows: [\n${rows.join('')}    ],\n  },\n`;
}

/** Puts neighbours that cost the same into one row. */
function inRows(prices: readonly ModelPrice[]): readonly (readonly ModelPrice[])[] {
  const rows: ModelPrice[][] = [];
  for (const price of prices) {
    const row = rows.at(-1) ?? [];
    const [first] = row;
    const isShared =
      first !== undefined &&
      costTheSame(first, price) &&
      rowText([...row, price]).length <= LINE_LENGTH_MAX;
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
  return `      ['${names}', ${figures.join(', ')}],`;
}
