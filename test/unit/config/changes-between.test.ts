// What the audit log says of a change: every field by its path, nothing hidden, and never too much.
import { describe, expect, it } from 'vitest';
import { changesBetween } from '../../../src/config/document-changes.ts';

describe('changes between two documents', () => {
  it.each<[string, unknown, unknown, unknown[]]>([
    ['nothing', { a: [1], b: { c: 2 } }, { a: [1], b: { c: 2 } }, []],
    ['a field', { a: 1 }, { a: 2 }, [{ path: 'a', from: 1, to: 2 }]],
    ['a field within', { a: { b: 1 } }, { a: { b: 2 } }, [{ path: 'a.b', from: 1, to: 2 }]],
    ['to null', { a: 1 }, { a: null }, [{ path: 'a', from: 1, to: null }]],
    ['a new field', {}, { a: 1 }, [{ path: 'a', to: 1 }]],
    ['a field that is gone', { a: 1 }, {}, [{ path: 'a', from: 1 }]],
    ['a list of texts', { a: ['x'] }, { a: ['y'] }, [{ path: 'a', from: ['x'], to: ['y'] }]],
    [
      'one of a list, by its name',
      {
        groups: [
          { name: 'a', n: 1 },
          { name: 'b', n: 1 },
        ],
      },
      {
        groups: [
          { name: 'b', n: 2 },
          { name: 'a', n: 1 },
        ],
      },
      [{ path: 'groups[b].n', from: 1, to: 2 }],
    ],
    ['one more, by its id', { k: [] }, { k: [{ id: 'x' }] }, [{ path: 'k[x]', to: { id: 'x' } }]],
    ['one less', { k: [{ id: 'x' }] }, { k: [] }, [{ path: 'k[x]', from: { id: 'x' } }]],
    [
      'a member, by what tells it apart',
      {
        members: [
          { upstream: 'a', secret: 'UPSTREAM_T_1', tier: 1 },
          { upstream: 'b', tier: 1 },
        ],
      },
      {
        members: [
          { upstream: 'a', secret: 'UPSTREAM_T_1', tier: 2 },
          { name: 'n', upstream: 'b' },
        ],
      },
      [
        { path: 'members[a:t-1].tier', from: 1, to: 2 },
        { path: 'members[b]', from: { upstream: 'b', tier: 1 } },
        { path: 'members[n]', to: { name: 'n', upstream: 'b' } },
      ],
    ],
    [
      'members that cannot be told apart, as a whole',
      { members: [{ upstream: 'a' }] },
      { members: [{ upstream: 'a' }, { upstream: 'a' }] },
      [{ path: 'members', from: [{ upstream: 'a' }], to: [{ upstream: 'a' }, { upstream: 'a' }] }],
    ],
    ['a union', { a: 'queue' }, { a: { b: 1 } }, [{ path: 'a', from: 'queue', to: { b: 1 } }]],
  ])('%s', (_what, before, next, changes) => {
    expect(changesBetween(before, next)).toEqual({ changes, omitted: 0 });
  });

  it('hide hashes wherever they stand', () => {
    const key = (hash: string) => ({ id: 'k', hash, previous: { hash: `${hash}-old` } });
    const { changes } = changesBetween({ keys: [] }, { keys: [key('secret-1')] });
    expect(changes).toEqual([
      { path: 'keys[k]', to: { id: 'k', hash: '(hidden)', previous: { hash: '(hidden)' } } },
    ]);
    const changed = changesBetween({ keys: [key('secret-1')] }, { keys: [key('secret-2')] });
    expect(JSON.stringify(changed)).not.toContain('secret');
    expect(changed.changes.map(({ path }) => path)).toEqual([
      'keys[k].hash',
      'keys[k].previous.hash',
    ]);
  });

  it('tell where warnings go by the host alone', () => {
    const webhook = (path: string) => ({ webhook: { url: `https://u:p-1@hooks.example/${path}` } });
    const set = changesBetween({ webhook: null }, webhook('secret-1')).changes;
    expect(set).toEqual([
      { path: 'webhook', from: null, to: { url: 'https://hooks.example/(hidden)' } },
    ]);
    const moved = changesBetween(webhook('secret-1'), webhook('secret-2')).changes;
    expect(moved.map(({ path }) => path)).toEqual(['webhook.url']);
    expect(JSON.stringify([set, moved])).not.toMatch(/secret-|p-1/);
    const alias = changesBetween({ aliases: {} }, { aliases: { url: 'gpt-4o' } }).changes;
    expect(alias).toEqual([{ path: 'aliases.url', to: 'gpt-4o' }]);
  });

  it('are counted beyond the first hundred', () => {
    const fields = (value: number) =>
      Object.fromEntries(Array.from({ length: 130 }, (_, at) => [`f${at}`, value]));
    const { changes, omitted } = changesBetween(fields(1), fields(2));
    expect([changes.length, omitted]).toEqual([100, 30]);
  });

  it('say how long a value is that is too long, and end before the entry is too large', () => {
    const long = changesBetween({ a: 'x' }, { a: 'y'.repeat(5_000) });
    expect(long.changes).toEqual([{ path: 'a', from: 'x', to: '(5002 characters)' }]);
    const fields = (letter: string) =>
      Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`f${at}`, letter.repeat(3_000)]));
    const { changes, omitted } = changesBetween(fields('a'), fields('b'));
    expect(JSON.stringify(changes).length).toBeLessThan(65_000);
    expect(changes.length + omitted).toBe(50);
    expect(omitted).toBeGreaterThan(0);
  });
});
