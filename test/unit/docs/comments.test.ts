import { glob, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

/** Beginnings that make a reader look for the subject: a verb or a noun phrase says at once what is meant. */
const RIDDLE = /^(?:So|Who|Whoever|What|Whatever|Whether it|How it)\b/;

/** Finds the doc comments of a source that begin with a riddle, as `line: first words`. */
function riddlesIn(source: string): string[] {
  const comments = source.matchAll(/^[ \t]*\/\*\*\s*(?:\*\s)?\s*(?<text>[^\n]*)/gm);
  return [...comments]
    .filter(({ groups }) => RIDDLE.test(groups?.['text'] ?? ''))
    .map(
      ({ index, groups }) => `${source.slice(0, index).split('\n').length}: ${groups?.['text']}`,
    );
}

test('doc comments begin with a verb or a noun phrase', async () => {
  const files = await Array.fromAsync(
    glob('{src,packages,dashboard,test,scripts,bench}/**/*.{ts,tsx}', {
      exclude: (path) => /(?:^|\/)(?:node_modules|dist)$/.test(path),
    }),
  );
  expect(files.length).toBeGreaterThan(500);
  const found = await Promise.all(
    files.map(async (file) => {
      const riddles = riddlesIn(await readFile(file, 'utf8'));
      return riddles.map((riddle) => `${file}:${riddle}`);
    }),
  );
  expect(found.flat()).toEqual([]);
});

test.each([
  ['/** What a call is. */', ['1: What a call is. */']],
  ['const a = 1;\n\n/**\n * So that it fits.\n */', ['3: So that it fits.']],
  ['  /** Who waits. */', ['1: Who waits. */']],
  ['/** Whether a call waits. */', []],
  ['/** How long a call waits. What is more. */', []],
  ['// What a line says.', []],
])('in %j the riddles are %j', (source, riddles) => {
  expect(riddlesIn(source)).toEqual(riddles);
});
