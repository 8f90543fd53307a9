// What a call is asked, and what it holds, has one place in src/call: a second one would be forgotten by the first.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const ROOM = new URL('../../../src/call/', import.meta.url);

/** The files of src/call whose code has a match. */
function filesWith(pattern: RegExp): string[] {
  const files = readdirSync(ROOM, { recursive: true, encoding: 'utf8' });
  return files.filter(
    (file) => file.endsWith('.ts') && pattern.test(readFileSync(new URL(file, ROOM), 'utf8')),
  );
}

it.each([
  [
    'a call, or a lease, is placed',
    /\broutes\s*\.place\(/,
    ['leases/plan-lease.ts', 'plan/plan.ts'],
  ],
  [
    'the rules of its groups are asked for',
    /\bcallRules\(/,
    ['leases/plan-lease.ts', 'plan/call-rules.ts', 'plan/plan.ts'],
  ],
  ['its body is given up', /\.discard\(/, ['request/body.ts']],
  ['its body is kept', /\bkeepBody\(/, ['request/body.ts']],
  ['its body has its last end', /\bbody\.end\(/, ['handle.ts', 'socket/turns.ts']],
  [
    'what Headgate says is put on its answer',
    /\bputAnswerHeaders\(/,
    ['answer/respond.ts', 'results/wire-error.ts'],
  ],
] as const)('there is one place where %s', (_, pattern, files) => {
  expect(filesWith(pattern).toSorted()).toEqual(files);
});

it.each([
  ['the class of a response', /instanceof Response/],
  ['a field that only some have', /'(?:reason|kind)' in /],
  ['a word beside objects', /\| 'left'/],
])('no result of a step is told from others by %s', (_, pattern) => {
  expect(filesWith(pattern)).toEqual([]);
});
