import { describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { byObject, fieldChanges, tally } from '../../../dashboard/src/model/change-list.ts';
import { shortText } from '../../../dashboard/src/model/short-text.ts';

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
    expect(tally([])).toBe('no changes');
  });

  it('show of a whole object what somebody chose, and never a hash', () => {
    const group = groupSchema.parse({ name: 'b', limits: { rpm: 5 }, match: { models: ['x'] } });
    const chosen = [
      { path: 'match.models', to: ['x'] },
      { path: 'limits.rpm', to: 5 },
    ];
    const [added] = byObject([{ path: 'groups[b]', to: group }]);
    expect(added && fieldChanges(added)).toEqual(chosen);
    const [removed] = byObject([
      { path: 'admin_keys[alice]', from: { id: 'alice', hash: '(hidden)', role: 'viewer' } },
    ]);
    expect(removed && fieldChanges(removed)).toEqual([{ path: 'role', from: 'viewer' }]);
  });

  it('show of a changed object what changed', () => {
    expect(objects[0] && fieldChanges(objects[0])).toEqual(objects[0]?.changes);
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
    [{ a: { b: 1 } }, '{"a":{"b":1}}'],
    [['x'.repeat(81)], null],
  ])('%j is %j', (value, text) => {
    expect(shortText(value)).toBe(text);
  });
});
