// The documents stay short and keep their form: the words of both houses, the changelog, and an essay in each room.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';

const WORDS_MAX = 62_000;
const PAGE_WORDS = 400;

const wordsIn = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

test('docs and design have at most 62,000 words together, decisions included', () => {
  const pages = ['docs', 'design'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:md|txt)$/.test(name))
      .map((name) => readFileSync(join(folder, name), 'utf8')),
  );
  expect(pages.length).toBeGreaterThan(60);
  expect(pages.map(wordsIn).reduce((sum, words) => sum + words)).toBeLessThanOrEqual(WORDS_MAX);
});

test('each room of src has an essay of at most a page', () => {
  const rooms = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(rooms.length).toBeGreaterThan(10);
  for (const { name } of rooms) {
    const words = wordsIn(readFileSync(join('src', name, 'README.md'), 'utf8'));
    expect([name, words > 50 && words <= PAGE_WORDS]).toEqual([name, true]);
  }
});

describe('the changelog', () => {
  const lines = readFileSync('CHANGELOG.md', 'utf8').split('\n');

  it('has a heading per version, and the sections of Keep a Changelog', () => {
    const versions = lines.filter((line) => line.startsWith('## '));
    expect(versions[0]).toMatch(/^## \d+\.\d+\.\d+/);
    const sections = lines.filter((line) => line.startsWith('### '));
    expect(sections.length).toBeGreaterThan(0);
    for (const section of sections) {
      expect(section).toMatch(/^### (?:Added|Changed|Deprecated|Removed|Fixed|Security)$/);
    }
  });

  it('has one line for each change', () => {
    const changes = lines.flatMap((line, at) => (line.startsWith('- ') ? [at] : []));
    expect(changes.length).toBeGreaterThan(30);
    expect(changes.filter((at) => /^ +\S/.test(lines[at + 1] ?? ''))).toEqual([]);
  });
});
