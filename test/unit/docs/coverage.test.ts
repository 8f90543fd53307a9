import { existsSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const page = await readFile('design/coverage.md', 'utf8');
const security = await readFile('SECURITY.md', 'utf8');

/** Lists the names that a name with braces stands for: `a/{b,c}` is `a/b` and `a/c`. */
function expand(name: string): string[] {
  const [, folder = '', files] = /^([^{]*)\{([^}]+)\}$/.exec(name) ?? [];
  return files === undefined ? [name] : files.split(',').map((file) => `${folder}${file}`);
}

/** Returns the path of a named file or folder. Only slow and long tests carry a part of their ending. */
function pathOf(name: string): string {
  if (name.endsWith('/')) return `test/${name}`;
  return /\.(?:slow|long)$/.test(name) ? `test/${name}.ts` : `test/${name}.test.ts`;
}

/** Reads the paths in a row of a feature table, which has two cells. Rows of other tables have none. */
function pathsOf(row: string): string[] {
  const [start, , tests = '', ...rest] = row.split('|');
  if (start !== '' || rest.length !== 1) return [];
  return [...tests.matchAll(/`([^`]+)`/g)].flatMap(([, name = '']) => expand(name).map(pathOf));
}

const named = page.split('\n').flatMap(pathsOf);

test('every named file and folder exists', () => {
  expect(named.length).toBeGreaterThan(200);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});

test('every test file has a row, or its folder has', async () => {
  const files = await Array.fromAsync(glob(`test/*/**/*.{test,slow,long}.ts`));
  const isNamed = (file: string): boolean =>
    named.some((path) => (path.endsWith('/') ? file.startsWith(path) : file === path));
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => !file.startsWith('test/agents/') && !isNamed(file))).toEqual([]);
});

test('every attack in SECURITY.md has tests that exist', () => {
  const lines = security.slice(security.indexOf('\n## Threat model')).split('\n');
  const isRule = (line: string | undefined): boolean => line?.startsWith('|---') ?? false;
  const rows = lines.filter(
    (line, at) => line.startsWith('|') && !isRule(line) && !isRule(lines[at + 1]),
  );
  const told = rows.map((row) => {
    const tests = row.split('|').at(-2) ?? '';
    return [...tests.matchAll(/`([^`]+)`/g)].map(([, name]) => `test/${name}`);
  });
  expect(rows.length).toBeGreaterThan(30);
  expect(rows.filter((_, at) => told[at]?.length === 0)).toEqual([]);
  const isThere = (file: string): boolean =>
    ['test', 'slow', 'long'].some((kind) => existsSync(`${file}.${kind}.ts`));
  expect(told.flat().filter((file) => !isThere(file))).toEqual([]);
});

test('names with braces and slashes are read', () => {
  expect(pathsOf('| a | `unit/cli/{one,two}` `e2e/{x,y.long,z.slow}` `unit/docs/` |')).toEqual([
    'test/unit/cli/one.test.ts',
    'test/unit/cli/two.test.ts',
    'test/e2e/x.test.ts',
    'test/e2e/y.long.ts',
    'test/e2e/z.slow.ts',
    'test/unit/docs/',
  ]);
  expect(pathsOf('| `unit` | Node | the core | `npm test` |')).toEqual([]);
});
