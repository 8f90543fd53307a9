// The tables of operations name every operation, each in the table where it belongs, and alerts.md documents every attention rule.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ATTENTION_RULES } from '../../../src/contract/status-words.ts';
import { OPERATIONS } from '../../../src/upstream/operation/operations-table.ts';

const text = readFileSync('docs/http.md', 'utf8');
const [, section = ''] = text.split('\n## Operations\n');
const [limited = '', free = ''] = section.split('\n## ')[0]?.split('| takes none') ?? [];

test.each([
  ['that take a slot', limited, true],
  ['that take none', free, false],
])('operations %s are in their table', (_, table, isLimited) => {
  const names = new Set(
    OPERATIONS.flatMap(({ name, limited: is }) => (is === isLimited ? [name] : [])),
  );
  // What such an operation has left behind goes by its name.
  const both = new Set(OPERATIONS.flatMap(({ name, limited: is }) => (is ? [name] : [])));
  const missing = [...names].filter(
    (name) => !table.includes(`\`${name}\``) && (isLimited || !both.has(name)),
  );
  expect(missing).toEqual([]);
});

test('alerts.md documents every attention rule, the worst first, with a condition and a fix', () => {
  const page = readFileSync('docs/alerts.md', 'utf8');
  const [, attention = ''] = page.split('\n## Needs attention\n');
  const [table = ''] = attention.split('\n## ');
  const rows = [...table.matchAll(/^\| `(\w+)` \| (.+) \| (.+) \|$/gm)];
  expect(rows.map(([, rule]) => rule)).toEqual([...ATTENTION_RULES]);
});
