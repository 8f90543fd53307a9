import { describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config.ts';
import { byObject, chosenOf, shortText, tally } from '../../../dashboard/src/model/change-list.ts';

describe('changes of a configuration', () => {
  const objects = byObject([
    { path: 'groups[a].limits.rpm', from: 1, to: 2 },
    { path: 'groups[a].paused', from: false, to: true },
    { path: 'groups[b]', to: { name: 'b' } },
    { path: 'keys[old.key]', from: { id: 'old.key' } },
    { path: 'default_upstream', from: null, to: 'openai' },
  ]);

  it('are told by the object that they are about', () => {
    expect(objects).toEqual([
      {
        list: 'groups',
        name: 'a',
        kind: 'changed',
        changes: [
          { path: 'limits.rpm', from: 1, to: 2 },
          { path: 'paused', from: false, to: true },
        ],
      },
      { list: 'groups', name: 'b', kind: 'added', changes: [{ path: '', to: { name: 'b' } }] },
      {
        list: 'keys',
        name: 'old.key',
        kind: 'removed',
        changes: [{ path: '', from: { id: 'old.key' } }],
      },
      {
        list: '',
        name: 'default_upstream',
        kind: 'changed',
        changes: [{ path: '', from: null, to: 'openai' }],
      },
    ]);
  });

  it('are counted', () => {
    expect(tally(objects)).toBe('1 added, 1 removed, 2 changed');
    expect(tally([])).toBe('nothing changes');
  });

  it('show of a whole object what somebody chose', () => {
    const group = groupSchema.parse({ name: 'b', limits: { rpm: 5 }, match: { models: ['x'] } });
    expect(chosenOf('groups', group)).toEqual({
      name: 'b',
      limits: { rpm: 5 },
      match: { models: ['x'] },
    });
    expect(chosenOf('webhook', { url: 'https://x' })).toEqual({ url: 'https://x' });
  });
});

describe('a value on one line', () => {
  it.each([
    [null, 'none'],
    [undefined, 'none'],
    ['', 'empty'],
    ['queue', 'queue'],
    [0, '0'],
    [false, 'false'],
    [[], 'none'],
    [['a', 'b'], 'a, b'],
    [{ a: 1, b: null }, 'a: 1, b: null'],
    [{ a: { b: 1 } }, null],
    [['x'.repeat(81)], null],
  ])('%j is %j', (value, text) => {
    expect(shortText(value)).toBe(text);
  });
});
