// The index of the documents for programs: it lists every page of `docs` and `design`, and every link has a target.
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const DOCS = new URL('../../../docs/', import.meta.url);
const DESIGN = new URL('../../../design/', import.meta.url);
const index = await readFile(new URL('llms.txt', DOCS), 'utf8');
const links = [...index.matchAll(/^- \[([^\]]+)\]\(([^)]+)\): (\S.*)$/gm)].map(
  ([, title = '', href = '', says = '']) => ({ title, href, says }),
);

test('it has the form of an llms.txt: a title, a summary, and lists of links with a line on each', () => {
  expect(index).toMatch(/^# Headgate\n\n> \S.*\n/);
  const sections = index.split(/^## /m).slice(1);
  for (const section of sections) {
    const [title = '', ...lines] = section.trimEnd().split('\n');
    expect(title).not.toBe('');
    for (const line of lines.filter((each) => each !== '')) {
      expect(line).toMatch(/^- \[[^\]]+\]\([^)]+\): \S/);
    }
  }
  expect(new Set(links.map(({ href }) => href)).size).toBe(links.length);
});

/** Lists pages of a folder as links. The records of decisions are one link, to their folder. */
async function pagesIn(folder: URL, prefix: string): Promise<string[]> {
  const names = await readdir(folder);
  return names.filter((name) => name.endsWith('.md')).map((name) => `${prefix}${name}`);
}

test('it lists every page of docs and design', async () => {
  const listed = links.map(({ href }) => href);
  const pages = [...(await pagesIn(DOCS, '')), ...(await pagesIn(DESIGN, '../design/'))];
  expect(pages.length).toBeGreaterThan(30);
  expect(listed).toEqual(expect.arrayContaining([...pages, '../design/decisions']));
});

test('every link leads to a file', () => {
  expect(links.filter(({ href }) => !existsSync(new URL(href, DOCS)))).toEqual([]);
});
