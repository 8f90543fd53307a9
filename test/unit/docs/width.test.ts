// Prose of pages wraps at 120 columns. Tables, blocks of code, and single words such as links may be wider.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { PAGES } from './pages.ts';

const COLUMNS = 120;

/** Finds lines of prose that are too wide, as `line: text`. */
function wideLinesOf(text: string): string[] {
  // Blocks keep their line breaks, so that lines keep their numbers.
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```/gm, (block) => block.replaceAll(/.+/g, ''));
  return prose.split('\n').flatMap((line, at) => {
    const isExempt = /^\s*(?:\||<)|^(?: {4}|\t)/.test(line);
    const canWrap = /\S\s+\S/.test(
      line.replace(/^\s*(?:[-*]|\d+\.|#+|!)\s*/, '').slice(0, COLUMNS),
    );
    return line.length > COLUMNS && !isExempt && canWrap ? [`${at + 1}: ${line}`] : [];
  });
}

/** A guide for authors of tests, whose list of settings is reference. */
const OF_TESTS = 'test/strict-upstream/README.md';

it.each(PAGES.filter((page) => page !== OF_TESTS))(
  'no line of prose in %s is wider than 120 columns',
  (page) => {
    expect(wideLinesOf(readFileSync(page, 'utf8'))).toEqual([]);
  },
);

const LONG = 'word '.repeat(30).trim();

it.each([
  ['prose', LONG, 1],
  ['an item of a list', `- ${LONG}`, 1],
  ['a row of a table', `| ${LONG} |`, 0],
  ['a block of code', `\`\`\`\n${LONG}\n\`\`\``, 0],
  ['an indented block', `    ${LONG}`, 0],
  ['one long link', `- [link](${'x'.repeat(140)})`, 0],
])('finds lines in %s that are too wide: %#', (_, text, count) => {
  expect(wideLinesOf(text)).toHaveLength(count);
});
