// docs/migrate.md: each import of the page is run, and its result and its notes are those that the page shows.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { importFile } from '../../../scripts/cli/commands/import.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';
import { checkConfig } from '../../../src/config/check-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

const PAGE = readFileSync('docs/migrate.md', 'utf8');

const FENCE = '```';
const STEP = new RegExp(
  [
    String.raw`${FENCE}\w+\n(?<given>[^${'`'}]*)${FENCE}`,
    String.raw`${FENCE}sh\nheadgate import (?<system>\w+) (?<file>\S+) -o headgate.yaml\n${FENCE}`,
    String.raw`The result:`,
    String.raw`${FENCE}yaml\n(?<result>[^${'`'}]*)${FENCE}`,
    String.raw`Standard error, with exit code (?<code>\d):`,
    String.raw`${FENCE}\n(?<notes>[\s\S]*?)${FENCE}`,
  ].join('\n\n'),
  'g',
);

const STEPS = [...PAGE.matchAll(STEP)].map(({ groups = {} }) => groups);

const folder = mkdtempSync(join(tmpdir(), 'migrate-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('has an import of each system', () => {
  expect(new Set(STEPS.map(({ system }) => system))).toEqual(new Set(SYSTEMS));
});

const SYSTEMS = ['hermes', 'litellm', 'picoclaw', 'portkey', 'shaper'];

test.each(SYSTEMS)('%s becomes what the page shows', async (name) => {
  const step = STEPS.find(({ system }) => system === name);
  const { given = '', file = '', result = '', notes = '', code = '' } = step ?? {};
  const [from, to] = [join(folder, file), join(folder, `${name}.out.yaml`)];
  writeFileSync(from, given);
  let noted = '';
  const output = {
    isJson: false,
    out: () => {},
    note: (text: string) => {
      noted += `${text}\n`;
    },
  };
  expect(String(await importFile(output, name, from, to))).toBe(code);
  expect(readFileSync(to, 'utf8')).toBe(result);
  expect(noted.trim()).toBe(notes.trim());
  const imported = importConfig(parseConfigText(result, 'application/yaml'));
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: false, jurisdiction: null };
  expect(checkConfig(imported.config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
});

/** Functions that Node 20 does not have, under which the command line runs too. */
const NEWER: readonly (readonly [object, string])[] = [
  [URL, 'parse'],
  [Map, 'groupBy'],
  [Object, 'groupBy'],
  [Array, 'fromAsync'],
];

test.each(SYSTEMS)('%s is imported without what Node 20 lacks', async (name) => {
  const { given = '', file = '' } = STEPS.find(({ system }) => system === name) ?? {};
  const from = join(folder, `old-${file}`);
  writeFileSync(from, given);
  const output = { isJson: false, out: () => {}, note: () => {} };
  const kept = NEWER.map(([of, each]) => [of, each, Reflect.get(of, each) as unknown] as const);
  for (const [of, each] of NEWER) Reflect.deleteProperty(of, each);
  try {
    expect('parse' in URL).toBe(false);
    expect(await importFile(output, name, from, join(folder, 'old.yaml'))).toBe(8);
  } finally {
    for (const [of, each, value] of kept) {
      Reflect.defineProperty(of, each, { value, writable: true, configurable: true });
    }
  }
});

test('the configuration that takes the place of a semaphore is right where Headgate is self-hosted', () => {
  const [, yaml = ''] = /## A semaphore of your own[\s\S]*?```yaml\n([^`]*)```/.exec(PAGE) ?? [];
  const imported = importConfig(parseConfigText(yaml, 'application/yaml'));
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: true, jurisdiction: null };
  expect(checkConfig(imported.config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  expect(imported.config.groups[0]?.limits.max_concurrency).toBe(4);
});
