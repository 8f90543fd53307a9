// The index of the documents for readers that are programs: every page stands in it, and every link leads somewhere.
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const DOCS = new URL('../../../docs/', import.meta.url);
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

test('every page of docs stands in it', async () => {
  const pages = (await readdir(DOCS)).filter((name) => name.endsWith('.md'));
  expect(links.map(({ href }) => href)).toEqual(expect.arrayContaining(pages));
});

test('every link leads to a file', () => {
  expect(links.filter(({ href }) => !existsSync(new URL(href, DOCS)))).toEqual([]);
});
