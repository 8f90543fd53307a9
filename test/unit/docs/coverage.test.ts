import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

/** A row of a table of promises: its promise, and what is said of its tests. */
interface Row {
  readonly promise: string;
  readonly tests: string;
}

/** A test as the page names it: a file under `test`, without its ending, and a title in it. */
interface Named {
  readonly file: string;
  readonly title: string;
}

const coverage = await readFile('docs/coverage.md', 'utf8');
const security = await readFile('SECURITY.md', 'utf8');

/** The promises, and the attacks with what stops them: both name tests in their last column. */
const rows: readonly Row[] = [
  coverage.slice(coverage.indexOf('\n## 1. '), coverage.indexOf('\n## Skipped')),
  security.slice(security.indexOf('\n## Who tries what')),
]
  .flatMap((page) => page.split('\n'))
  .map((line) => /^\| (?<promise>.*) \| (?<tests>.*) \|$/.exec(line)?.groups)
  .filter((row) => row !== undefined)
  .filter((row) => row['tests'] !== 'test')
  .map((row) => ({ promise: row['promise'] ?? '', tests: row['tests'] ?? '' }));

/** Every file that a row names, each with the titles behind it. */
function filesOf({ tests }: Row): { readonly file: string; readonly titles: readonly string[] }[] {
  const pieces = tests.split(/`((?:unit|model|workers|e2e|browser|agents)\/[^`]*)`/).slice(1);
  return pieces.flatMap((file, at) => {
    if (at % 2 === 1) return [];
    const behind = pieces[at + 1] ?? '';
    const titles = [...behind.matchAll(/\*([^*]+)\*/g)].map((found) => found[1] ?? '');
    return [{ file, titles: titles.filter((title) => title !== 'long') }];
  });
}

async function sourceOf(file: string): Promise<string> {
  for (const ending of ['.test.ts', '.long.ts']) {
    const source = await readFile(`test/${file}${ending}`, 'utf8').catch(() => null);
    if (source !== null) return source;
  }
  return '';
}

/** Whether a source has the title, as the first argument of something or as a row's `name`. */
function hasTitle(source: string, title: string): boolean {
  const isWhole = !title.endsWith('…');
  const start = RegExp.escape(isWhole ? title : title.slice(0, -1));
  return new RegExp(`(?:\\(\\s*|\\bname: )(['"\`])${start}${isWhole ? '\\1' : ''}`).test(source);
}

const named: readonly Named[] = rows
  .flatMap(filesOf)
  .flatMap(({ file, titles }) => titles.map((title) => ({ file, title })));

test('every promise names its tests, by file and title, or the command that shows it', () => {
  expect(rows.length).toBeGreaterThan(80);
  const bare = rows.filter((row) => {
    const files = filesOf(row);
    if (files.length === 0) return !row.tests.includes('`npm run ');
    return files.some(({ titles }) => titles.length === 0);
  });
  expect(bare.map(({ promise }) => promise)).toEqual([]);
});

test('every test that the page names is there', async () => {
  expect(named.length).toBeGreaterThan(150);
  const missing: Named[] = [];
  for (const each of named) {
    if (!hasTitle(await sourceOf(each.file), each.title)) missing.push(each);
  }
  expect(missing).toEqual([]);
});

test.each([
  ["it('a call waits', async () => {", 'a call waits', true],
  ["it.each(ROWS)(\n  'a call waits no longer than %s',", 'a call waits no …', true],
  ["{ name: 'a flood of 200', calls: 1 }", 'a flood of 200', true],
  ["it('a call waits for long', async () => {", 'a call waits', false],
  ["const text = 'a call waits';", 'a call waits', false],
])('in %j the title %j is found: %s', (source, title, isFound) => {
  expect(hasTitle(source, title)).toBe(isFound);
});
