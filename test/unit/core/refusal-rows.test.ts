import { expect, it } from 'vitest';
import {
  addRefusals,
  RefusalRows,
  type RefusalFacts,
} from '../../../src/core/parts/refusal-rows.ts';

const MAX = 40;

function facts(changes: Partial<RefusalFacts> = {}): RefusalFacts {
  const none = { key: null, key_kind: null, team: null, group: null, upstream: null, model: null };
  return { reason: 'key_missing', ...none, ...changes };
}

it('a call counts under its own facts while there is room', () => {
  const rows = new RefusalRows(MAX);
  const one = facts({ key: 'alice', key_kind: 'gateway', model: 'gpt-4o', upstream: 'openai' });
  expect(rows.place(one)).toEqual(one);
});

it('made-up provider keys and models take a quarter of the rows, and lose their names beyond', () => {
  const rows = new RefusalRows(MAX);
  const placed = Array.from({ length: 1_000 }, (_, n) =>
    rows.place(facts({ key: `fp_${n}`, key_kind: 'provider', model: `m${n}`, upstream: 'openai' })),
  );
  expect(placed.filter(({ key }) => key !== null)).toHaveLength(MAX / 4);
  expect(placed.at(-1)).toEqual(facts({ upstream: 'openai' }));
});

it('a flood of made-up names pushes out no row of a gateway key', () => {
  const rows = new RefusalRows(MAX);
  for (let n = 0; n < 1_000; n += 1) {
    rows.place(facts({ key: `fp_${n}`, key_kind: 'provider', model: `m${n}` }));
  }
  const one = facts({ key: 'alice', key_kind: 'gateway', team: 'red', group: 'openai' });
  expect(rows.place(one)).toEqual(one);
  const named = { ...one, model: 'gpt-4o' };
  expect(rows.place(named)).toEqual(named);
});

it('a key that makes up models leaves room for the rows of others', () => {
  const rows = new RefusalRows(MAX);
  for (let n = 0; n < 1_000; n += 1) {
    rows.place(facts({ key: 'mallory', key_kind: 'gateway', model: `m${n}` }));
  }
  const one = facts({ key: 'alice', key_kind: 'gateway' });
  expect(rows.place(one)).toEqual(one);
});

it('beyond all rows a call counts by its reason and upstream', () => {
  const rows = new RefusalRows(2);
  for (const key of ['a', 'b', 'c']) rows.place(facts({ key, key_kind: 'gateway' }));
  expect(rows.place(facts({ key: 'd', key_kind: 'gateway', upstream: 'openai' }))).toEqual(
    facts({ upstream: 'openai' }),
  );
});

it('sums add up, with the latest message and the latest request ids first', () => {
  const [early, late] = ['2026-11-28T10:00:00.000Z', '2026-11-28T10:00:09.000Z'];
  const sum = (at: string, id: string) => ({
    count: 2,
    first_at: at,
    last_at: at,
    message: `at ${at}`,
    request_ids: [id],
  });
  expect(addRefusals(sum(early, 'one'), sum(late, 'two'))).toEqual({
    count: 4,
    first_at: early,
    last_at: late,
    message: `at ${late}`,
    request_ids: ['two', 'one'],
  });
});

it('made-up provider keys without a model take no more rows', () => {
  const rows = new RefusalRows(MAX);
  const placed = Array.from({ length: 1_000 }, (_, n) =>
    rows.place(facts({ key: `fp_${n}`, key_kind: 'provider' })),
  );
  expect(placed.filter(({ key }) => key !== null)).toHaveLength(MAX / 4);
});

it('a sum keeps the latest ten request ids', () => {
  const at = '2026-11-28T10:00:00.000Z';
  const sum = (ids: string[]) => ({
    count: ids.length,
    first_at: at,
    last_at: at,
    message: '',
    request_ids: ids,
  });
  const before = sum(Array.from({ length: 9 }, (_, n) => `old-${n}`));
  const { request_ids: ids } = addRefusals(before, sum(['new-1', 'new-2']));
  expect([ids.length, ids[0], ids.at(-1)]).toEqual([10, 'new-1', 'old-7']);
});
