// The paths in ARCHITECTURE.md and CONTRIBUTING.md exist, and design/storage.md lists every table.
import { access, glob, readdir, readFile } from 'node:fs/promises';
import { describe, expect, it, test } from 'vitest';

const architecture = await readFile('ARCHITECTURE.md', 'utf8');

/** Finds files and folders of this repository in a text, except placeholders, which are in capitals. */
function pathsIn(text: string): string[] {
  const paths =
    text.match(/(?<![\w./])(?:src|test|dashboard|docs|design|ops|packages)\/[\w./-]*\w/g) ?? [];
  return [...new Set(paths)].filter((path) => !/\/[A-Z]+\b/.test(path));
}

async function missingOf(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    paths.map((path) =>
      access(path).then(
        () => [],
        () => [path],
      ),
    ),
  );
  return found.flat();
}

describe('ARCHITECTURE.md', () => {
  it('is one screen: 80 lines at most', () => {
    const lines = architecture.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(80);
    expect(lines.filter((line) => line.length > 120 && !line.startsWith('|'))).toEqual([]);
  });

  it('names every room of the Worker', async () => {
    const entries = await readdir('src', { withFileTypes: true });
    const rooms = entries.filter((entry) => entry.isDirectory()).map(({ name }) => `src/${name}`);
    expect(rooms.length).toBeGreaterThan(10);
    expect(rooms.filter((room) => !architecture.includes(room))).toEqual([]);
  });
});

test.each(['ARCHITECTURE.md', 'CONTRIBUTING.md'])(
  '%s names only paths that exist',
  async (page) => {
    const paths = pathsIn(await readFile(page, 'utf8'));
    expect(paths.length).toBeGreaterThan(20);
    expect(await missingOf(paths)).toEqual([]);
  },
);

test('a missing path is found', async () => {
  const paths = pathsIn(
    'in `src/nothing/here.ts` and src/index.ts, as `src/providers/NAME.ts` says',
  );
  expect(paths).toEqual(['src/nothing/here.ts', 'src/index.ts']);
  expect(await missingOf(paths)).toEqual(['src/nothing/here.ts']);
});

test('design/storage.md lists every table', async () => {
  const page = await readFile('design/storage.md', 'utf8');
  const sources = await Promise.all(
    (await Array.fromAsync(glob('src/**/*.ts'))).map((file) => readFile(file, 'utf8')),
  );
  const tables = sources.flatMap((source) => [
    ...source.matchAll(/CREATE TABLE IF NOT EXISTS (?<name>\w+) \(/g),
  ]);
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const missing = tables.filter(
    ({ groups }) => !rows.some((row) => row.startsWith(`| \`${groups?.['name']}\` | \``)),
  );
  expect(tables.length).toBeGreaterThan(25);
  expect(missing.map(({ groups }) => groups?.['name'])).toEqual([]);
});
