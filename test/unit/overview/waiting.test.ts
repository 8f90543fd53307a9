import { describe, expect, it } from 'vitest';
import { waitingElsewhere } from '../../../src/overview/all-groups.ts';
import type { PoolReply } from '../../../src/overview/pools.ts';
import { elsewhereWords, waitWords } from '../../../src/contract/status-words.ts';

function reply(
  group: string,
  needed: Record<string, number>,
  partition: string | null = null,
): PoolReply<{ readonly needed_elsewhere: Record<string, number> }> {
  return { pool: { group, partition }, answer: { needed_elsewhere: needed } };
}

describe('where calls of a group wait', () => {
  it('is what the pools say that hold their places', () => {
    const found = waitingElsewhere([
      reply('openai', { 'key:ci': 2, 'team:ml': 1 }),
      reply('batch', { 'key:ci': 5 }),
      { pool: { group: 'gone', partition: null }, error: 'out of reach' },
    ]);
    expect(found.get('key:ci')).toEqual([
      { group: 'batch', calls: 5 },
      { group: 'openai', calls: 2 },
    ]);
    expect(found.get('team:ml')).toEqual([{ group: 'openai', calls: 1 }]);
    expect(found.get('openai')).toBeUndefined();
  });

  it('is added up over partitions, of both sides', () => {
    const found = waitingElsewhere([
      reply('openai', { 'own#a': 1, 'own#b': 2 }, 'x'),
      reply('openai', { 'own#a': 3 }, 'y'),
    ]);
    expect(found.get('own')).toEqual([{ group: 'openai', calls: 6 }]);
  });

  it.each([
    [[], ''],
    [[{ group: 'a', calls: 1 }], '1 call of this group waits elsewhere: 1 in a'],
    [
      [
        { group: 'a', calls: 2 },
        { group: 'b', calls: 1 },
      ],
      '3 calls of this group wait elsewhere: 2 in a, 1 in b',
    ],
  ])('is said in words', (elsewhere, words) => {
    expect(elsewhereWords(elsewhere)).toBe(words);
  });
});

it.each([
  [{ waits_for: 'slots' }, undefined, 'a slot'],
  [{ waits_for: 'slots' }, 'model gpt-5', 'a slot (model gpt-5)'],
  [{ waits_for: 'cap', cap: 'agent' }, undefined, 'the limit of its agent'],
  [
    { waits_for: 'slots', needs: ['key:ci', 'team:ml#x'] },
    undefined,
    'a slot, and key:ci, team:ml',
  ],
  [{ waits_for: 'elsewhere', needs: ['key:ci'] }, undefined, 'a slot in key:ci'],
] as const)('a waiter says in words what it waits for', (waiter, about, words) => {
  expect(waitWords(waiter, about)).toBe(words);
});
