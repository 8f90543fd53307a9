import { describe, expect, it } from 'vitest';
import { joinWaiting, waitingElsewhere } from '../../../src/overview/waiting.ts';
import type { PoolReply } from '../../../src/overview/pools.ts';
import { elsewhereWords, waitWords } from '../../../src/contract/wait-words.ts';

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

describe('what the waiters of several pools wait for', () => {
  it('is added up, and the longest time without an end counts', () => {
    expect(
      joinWaiting([
        { waiting_for: { slots: 2 }, stalled_ms: 3_000 },
        { waiting_for: { slots: 1, rates: 4 }, needed_elsewhere: { a: 1 }, stalled_ms: null },
      ]),
    ).toEqual({
      waiting_for: { slots: 3, rates: 4 },
      needed_elsewhere: { a: 1 },
      stalled_ms: 3_000,
    });
  });

  it('is not known without a pool', () => {
    expect(joinWaiting([])).toEqual({});
    expect(joinWaiting([{ stalled_ms: null }])).toEqual({ stalled_ms: null });
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
