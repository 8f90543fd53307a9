// The directory's sums of refused calls: added up over isolates, bounded, and gone after an hour.
import { runInDurableObject } from 'cloudflare:test';
import { expect, it } from 'vitest';
import type { RefusalCount } from '../../../src/contract/reasons.ts';
import { RefusalList } from '../../../src/directory/reports.ts';
import { directoryOf } from '../../../src/env.ts';
import { env } from '../support/worker.ts';

const NOW = Date.parse('2026-11-28T10:00:30.000Z');
const HOUR_MS = 3_600_000;

function refused(changes: Partial<RefusalCount> = {}): RefusalCount {
  const at = new Date(NOW).toISOString();
  return {
    reason: 'key_missing',
    key: null,
    key_kind: null,
    team: null,
    group: null,
    upstream: 'openai',
    model: null,
    count: 1,
    first_at: at,
    last_at: at,
    message: 'This Headgate wants a gateway key.',
    request_ids: [],
    ...changes,
  };
}

function withList<T>(run: (list: RefusalList, storage: DurableObjectStorage) => T): Promise<T> {
  return runInDurableObject(directoryOf(env) as never, (_instance, { storage }) => {
    storage.sql.exec('DELETE FROM refusals');
    storage.sql.exec('DELETE FROM refusal_totals');
    return run(new RefusalList(storage.sql), storage);
  });
}

it('sums of several isolates are added up by minute and by their facts', async () => {
  const listed = await withList((list) => {
    list.note([refused({ count: 2 }), refused({ reason: 'key_invalid' })], NOW);
    list.note([refused({ count: 3 })], NOW);
    return list.since(NOW - HOUR_MS);
  });
  expect(Object.fromEntries(listed.map(({ reason, count }) => [reason, count]))).toEqual({
    key_invalid: 1,
    key_missing: 5,
  });
});

it('a new instance of the object goes on with what is stored', async () => {
  const counts = await withList((list, { sql }) => {
    list.note([refused({ count: 2 })], NOW);
    const next = new RefusalList(sql);
    next.note([refused({ count: 3 })], NOW);
    return [next.since(0).map(({ count }) => count), next.totals().map(({ count }) => count)];
  });
  expect(counts).toEqual([[5], [5]]);
});

it('sums go after an hour, and totals stay', async () => {
  const left = await withList((list) => {
    list.note([refused()], NOW);
    const later = NOW + HOUR_MS + 60_000;
    const at = new Date(later).toISOString();
    list.note([refused({ reason: 'key_invalid', first_at: at, last_at: at })], later);
    return { listed: list.since(0).map(({ reason }) => reason), totals: list.totals().length };
  });
  expect(left).toEqual({ listed: ['key_invalid'], totals: 2 });
});

it('a flood of made-up keys and models stays within the bounds, and keeps the rows of gateway keys', async () => {
  const kept = await withList((list) => {
    const flood = Array.from({ length: 3_000 }, (_, n) =>
      refused({ key: `fp_${n}`, key_kind: 'provider', model: `model ${n}` }),
    );
    for (let from = 0; from < flood.length; from += 250) {
      list.note(flood.slice(from, from + 250), NOW);
    }
    list.note([refused({ key: 'alice', key_kind: 'gateway', team: 'red' })], NOW);
    return { listed: list.since(0), totals: list.totals() };
  });
  expect(kept.listed.length).toBeLessThan(350);
  expect(kept.listed.reduce((sum, { count }) => sum + count, 0)).toBe(3_001);
  expect(kept.listed.find(({ key }) => key === 'alice')?.count).toBe(1);
  // A made-up key is no label.
  const totals = Object.fromEntries(kept.totals.map(({ key, count }) => [String(key), count]));
  expect(totals).toEqual({ null: 3_000, alice: 1 });
});
