import { existsSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

/** Path of a layer's file or folder under `test`, as a cell of the page gives it. */
type CoveragePosition = string;

const LAYERS = ['unit', 'model', 'workers', 'e2e', 'browser', 'long'];

const page = await readFile('docs/coverage.md', 'utf8');
const security = await readFile('SECURITY.md', 'utf8');

/** Puts a name of a cell into its layer: long tests stand among those of e2e. */
function placeOf(layer: string, name: string): CoveragePosition {
  if (name.endsWith('/')) return `test/${layer}/${name}`;
  return layer === 'long' ? `test/e2e/${name}.long.ts` : `test/${layer}/${name}.test.ts`;
}

/** Reads the places in a row of the matrix; a row of another table has none. */
function placesOf(row: string): CoveragePosition[] {
  const [, , ...cells] = row.split('|');
  if (cells.length !== LAYERS.length + 1) return [];
  return LAYERS.flatMap((layer, column) =>
    [...(cells[column] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => placeOf(layer, name)),
  );
}

const named = page.split('\n').flatMap(placesOf);

test('every file and folder that the matrix names is there', () => {
  expect(named.length).toBeGreaterThan(200);
  expect(named.filter((place) => !existsSync(place))).toEqual([]);
});

test('every file of tests stands in a row, or its folder does', async () => {
  const files = await Array.fromAsync(glob(`test/*/**/*.{test,long}.ts`));
  const isNamed = (file: string): boolean =>
    named.some((place) => (place.endsWith('/') ? file.startsWith(place) : file === place));
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => !file.startsWith('test/agents/') && !isNamed(file))).toEqual([]);
});

test('every attack that SECURITY.md names has tests that are there', () => {
  const table = security.slice(security.indexOf('\n## Threat model')).split('\n');
  const rows = table.filter((line) => line.startsWith('|')).slice(2);
  const reported = rows.map((row) => {
    const tests = row.split('|').at(-2) ?? '';
    return [...tests.matchAll(/`([^`]+)`/g)].map(([, name]) => `test/${name}`);
  });
  expect(rows.length).toBeGreaterThan(15);
  expect(rows.filter((_, at) => reported[at]?.length === 0)).toEqual([]);
  const isThere = (file: string): boolean =>
    existsSync(`${file}.test.ts`) || existsSync(`${file}.long.ts`);
  expect(reported.flat().filter((file) => !isThere(file))).toEqual([]);
});
