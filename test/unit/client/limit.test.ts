import { expect, expectTypeOf, test } from 'vitest';
import { failureOf, hanging, pass, sdkError, stage, stopTheClock } from './support.ts';

stopTheClock();

test('functions run with their arguments, as many at once as the group lets', async () => {
  const { headgate, gate } = stage(2);
  const limit = gate.limit('glm');
  const sums = [1, 2, 3, 4, 5].map((n) => limit(async (a: number, b: number) => a + b, n, 10));
  expect(await Promise.all(sums)).toEqual([11, 12, 13, 14, 15]);
  expect([headgate.peak, headgate.held.size]).toEqual([2, 0]);
});

test('map runs for every item', async () => {
  const { headgate, gate } = stage(2);
  const limit = gate.limit({ group: 'glm', lane: 'low' });
  const got = await limit.map(new Set(['a', 'b', 'c']), (item, at) => `${item}${at}`);
  expectTypeOf(got).toEqualTypeOf<string[]>();
  expect(got).toEqual(['a0', 'b1', 'c2']);
  expect(headgate.seen[0]?.body).toMatchObject({ lane: 'low' });
});

test('it counts what runs and waits here, and lets the queue go', async () => {
  const { headgate, gate } = stage(1);
  const limit = gate.limit('glm');
  const { promise, resolve } = hanging();
  const first = limit(() => promise);
  const others = [1, 2].map(() => limit(() => 'never'));
  const ended = Promise.allSettled(others);
  await pass(1);
  expect([limit.activeCount, limit.pendingCount]).toEqual([1, 2]);
  limit.clearQueue();
  expect((await ended).map((one) => (one.status === 'rejected' ? one.reason.name : one))).toEqual([
    'AbortError',
    'AbortError',
  ]);
  expect([limit.activeCount, limit.pendingCount]).toEqual([1, 0]);
  resolve();
  await first;
  expect([limit.activeCount, limit.pendingCount]).toEqual([0, 0]);
  headgate.slice();
  await pass(1_000);
  expect([headgate.held.size, headgate.waiting]).toEqual([0, 0]);
  expect(await limit(() => 'the next one')).toBe('the next one');
});

test('one that a provider refused waits again, and counts as waiting', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push({ action: 'again', after_ms: 2_000, ticket: 'aged' });
  const limit = gate.limit('glm');
  let attempts = 0;
  const work = limit(() => {
    if ((attempts += 1) === 1) throw sdkError(429);
    return 'done';
  });
  await pass(1_000);
  expect([limit.activeCount, limit.pendingCount]).toEqual([0, 1]);
  await pass(1_000);
  expect(await work).toBe('done');
  expect([limit.activeCount, limit.pendingCount]).toEqual([0, 0]);
});

test('more than a hundred do not ask at once, and better lanes ask before', async () => {
  const { headgate, gate } = stage(0);
  const waits = (lane: 'high' | 'normal', count: number): Promise<unknown>[] =>
    Array.from({ length: count }, () => gate.limit({ group: 'glm', lane })(() => lane));
  const normal = waits('normal', 150);
  const high = waits('high', 2);
  await pass(1);
  expect(headgate.waiting).toBe(100);
  headgate.limit = 1_000;
  headgate.slice();
  await pass(1_000);
  expect((await Promise.all([...normal, ...high])).length).toBe(152);
  const lanes = headgate.seen.flatMap(({ method, body }) =>
    method === 'POST' && body['ticket'] === undefined ? [body['lane']] : [],
  );
  expect(lanes.slice(100, 103)).toEqual(['high', 'high', 'normal']);
});

test('one that has a ticket asks before all who have none', async () => {
  const { headgate, gate } = stage(0);
  const all = Array.from({ length: 101 }, () => gate.acquire({ group: 'glm', lane: 'high' }));
  const aged = gate.acquire({ group: 'glm', lane: 'low', ticket: 'aged' });
  await pass(1);
  headgate.limit = 1_000;
  headgate.slice();
  await pass(1_000);
  await Promise.all([...all, aged]);
  const fresh = headgate.seen.filter(
    ({ body }) => body['ticket'] === undefined || body['ticket'] === 'aged',
  );
  expect(fresh[100]?.body['ticket']).toBe('aged');
});

test('one that leaves while others wait before it takes no place', async () => {
  const { headgate, gate } = stage(0);
  const giveUp = new AbortController();
  const all = Array.from({ length: 101 }, () => gate.withLease({ group: 'glm' }, () => 1));
  const leaves = gate.withLease({ group: 'glm', signal: giveUp.signal }, () => 2);
  const ended = failureOf(leaves);
  await pass(1);
  giveUp.abort();
  expect(await ended).toHaveProperty('message', expect.stringContaining('aborted'));
  headgate.limit = 1_000;
  headgate.slice();
  await pass(1_000);
  expect((await Promise.all(all)).length).toBe(101);
  expect(headgate.seen.filter(({ method }) => method === 'DELETE')).toHaveLength(101);
  headgate.limit = 0;
  const next = Array.from({ length: 120 }, () => gate.withLease({ group: 'glm' }, () => 3));
  await pass(1);
  expect(headgate.waiting).toBe(100);
  headgate.limit = 1_000;
  headgate.slice();
  await pass(1_000);
  await Promise.all(next);
});

test('the time that one may wait holds here too', async () => {
  const { headgate, gate } = stage(0);
  const all = Promise.allSettled(
    Array.from({ length: 101 }, () => gate.withLease({ group: 'glm' }, () => 1)),
  );
  const late = gate.withLease({ group: 'glm', maxWaitMs: 3_000 }, () => 2);
  const failed = failureOf(late);
  // The queue of another group is none of its.
  const other = failureOf(gate.withLease({ group: 'other', maxWaitMs: 3_000 }, () => 3));
  await pass(3_000);
  expect(await failed).toMatchObject({ reason: 'queue_timeout', status: null });
  expect(headgate.seen.filter(({ body }) => body['group'] === 'other')).toHaveLength(1);
  headgate.limit = 1_000;
  headgate.slice();
  await pass(1_000);
  await all;
  expect(await other).toBe('it did not fail');
});

test('many Responses that are waited for together do not wait to be read', async () => {
  const { headgate, gate } = stage(2);
  const limit = gate.limit('glm');
  const pages = await limit.map([1, 2, 3, 4, 5], (n) => new Response(`page ${n}`, { status: 203 }));
  expect(headgate.held.size).toBe(0);
  expect(pages.map(({ status }) => status)).toEqual([203, 203, 203, 203, 203]);
  expect(await pages[4]?.text()).toBe('page 5');
  const empty = await limit(() => new Response(null, { status: 204 }));
  expect(empty.status).toBe(204);
});

test('a Response that breaks off is an error, and its slot is free', async () => {
  const { headgate, gate } = stage(1);
  const broken = new ReadableStream({ pull: (to) => to.error(new Error('broken off')) });
  const work = gate.limit('glm')(() => new Response(broken));
  await expect(work).rejects.toThrow('broken off');
  expect(headgate.held.size).toBe(0);
});
