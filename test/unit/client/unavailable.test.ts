import { expect, test, vi } from 'vitest';
import { createHeadgate } from '../../../packages/client/src/index.ts';
import { failureOf, hanging, pass, stage, stopTheClock } from './support.ts';
import { problem } from './scripted-headgate.ts';

stopTheClock();

const MANY = 200;
const lost = Array.from({ length: MANY }, () => 'lost' as const);
const refusals = (status: number, reason: string, retryAfterS?: number): Response[] =>
  Array.from({ length: MANY }, () => problem(status, reason, retryAfterS));

test('throw: it is asked for 10 s, then its absence is an error', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('POST', ...lost);
  let ran = false;
  const work = gate.withLease({ group: 'glm' }, () => (ran = true));
  const ended = failureOf(work);
  await pass(10_000);
  expect(await ended).toMatchObject({ reason: 'unreachable', status: null });
  expect(ran).toBe(false);
  expect(headgate.seen.length).toBeGreaterThan(3);
});

test('throw: for as long as the caller is willing to wait', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('POST', ...lost.slice(0, 12));
  const work = gate.withLease({ group: 'glm', maxWaitMs: 120_000 }, () => 'after all');
  await pass(60_000);
  expect(await work).toBe('after all');
});

test('pass: work runs without a lease, and the next one at once', async () => {
  const { headgate, gate } = stage(1, 'pass');
  headgate.fault('POST', ...lost);
  const first = gate.withLease({ group: 'glm' }, ({ isBypass, ids }) => [isBypass, ids]);
  await pass(2_000);
  expect(await first).toEqual([true, []]);
  const asked = headgate.seen.length;
  expect(await gate.withLease({ group: 'glm' }, ({ isBypass }) => isBypass)).toBe(true);
  expect(await gate.limit('glm')(() => 'runs')).toBe('runs');
  expect(headgate.seen.length).toBe(asked);
});

test('pass: after a while it is asked again', async () => {
  const { headgate, gate } = stage(1, 'pass');
  headgate.fault('POST', ...lost.slice(0, 1));
  expect((await gate.tryAcquire({ group: 'glm' }))?.isBypass).toBe(true);
  await pass(15_000);
  expect((await gate.tryAcquire({ group: 'glm' }))?.isBypass).toBe(false);
});

test('pass: an error of work without a lease is its own', async () => {
  const { headgate, gate } = stage(1, 'pass');
  headgate.fault('POST', 'lost');
  const error = Object.assign(new Error('429'), { status: 429 });
  const work = gate.withLease({ group: 'glm', maxWaitMs: 0 }, () => Promise.reject(error));
  await expect(work).rejects.toBe(error);
});

test('pass: work that began with a lease goes on where nothing can renew it', async () => {
  const { headgate, gate } = stage(1, 'pass');
  const { promise, resolve } = hanging();
  const work = gate.withLease({ group: 'glm' }, async ({ signal }) => {
    await promise;
    return signal.aborted;
  });
  await pass(1);
  headgate.fault('PUT', ...lost);
  await pass(100_000);
  resolve();
  expect(await work).toBe(false);
});

test('pass: something before Headgate that fails is no Headgate', async () => {
  const { headgate, gate } = stage(1, 'pass');
  headgate.fault('POST', new Response('<html>bad gateway', { status: 502 }));
  expect((await gate.tryAcquire({ group: 'glm' }))?.isBypass).toBe(true);
});

test.each([
  [429, 'queue_full'],
  [503, 'paused'],
  [403, 'key_forbidden'],
  [503, 'limiter_unavailable'],
])('pass: a refusal stays one: %i %s', async (status, reason) => {
  const { headgate, gate } = stage(1, 'pass');
  headgate.fault('POST', ...refusals(status, reason));
  const work = gate.withLease({ group: 'glm' }, () => 'never');
  const ended = failureOf(work);
  await pass(20_000);
  expect(await ended).toMatchObject({ reason });
});

test('a refusal that passes is waited out within the time that the caller has', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('POST', ...refusals(429, 'queue_full', 2).slice(0, 3));
  const work = gate.withLease({ group: 'glm', maxWaitMs: 30_000 }, () => 'after all');
  await pass(10_000);
  expect(await work).toBe('after all');
  const keys = headgate.seen.flatMap(({ headers }) => headers['idempotency-key'] ?? []);
  // A refusal is the end of a wait: the next one is another, which may last for the rest of the time.
  expect(new Set(keys).size).toBe(4);
  const waits = headgate.seen.flatMap(({ body }) => (body['max_wait_ms'] as number) ?? []);
  expect(waits[0]).toBe(30_000);
  expect(waits[3]).toBeLessThanOrEqual(24_000);
});

test('beyond it, and where it said none, a refusal is an error at once', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('POST', ...refusals(429, 'queue_full', 60));
  for (const wait of [{}, { maxWaitMs: 30_000 }]) {
    const work = gate.withLease({ group: 'glm', ...wait }, () => 'never');
    await expect(work).rejects.toMatchObject({ reason: 'queue_full', retryAfterMs: 60_000 });
  }
  expect(headgate.seen).toHaveLength(2);
});

test('a request that nobody answers is given up', async () => {
  const { headgate } = stage(1);
  let asked = 0;
  const silent = (_: string, { signal }: RequestInit): Promise<Response> => {
    asked += 1;
    return new Promise((_resolve, reject) =>
      signal?.addEventListener('abort', () => reject(new Error('aborted'))),
    );
  };
  const gate = createHeadgate({ url: 'http://gate.example', key: 'k', fetch: silent });
  const work = gate.acquire({ group: 'glm', maxWaitMs: 0 });
  const ended = failureOf(work);
  await pass(10_000);
  expect(await ended).toMatchObject({ reason: 'unreachable' });
  expect([asked, headgate.seen.length]).toEqual([1, 0]);
});

test.each([
  [{ url: 'gate.example' }, /^url: expected an http or https URL/],
  [{ url: 'ftp://gate.example' }, /^url: /],
  [{ url: 'https://me:secret@gate.example' }, /^url: .*without a user/],
  [{ key: '' }, /^key: expected a key/],
  [{ key: 'a b' }, /^key: /],
  [{ onUnavailable: 'ignore' }, /^onUnavailable: expected "throw" or "pass"/],
])('%j is refused with the field and what was expected', (wrong, message) => {
  const options = { url: 'https://gate.example', key: 'k', ...wrong } as never;
  expect(() => createHeadgate(options)).toThrow(message);
});

test('what is no Headgate at all is an error at once', async () => {
  const { headgate, gate } = stage(1);
  const page = (): Response => new Response('<html>', { status: 200 });
  const others = [page(), new Response(null, { status: 204 }), Response.json({}, { status: 201 })];
  headgate.fault('POST', ...others);
  for (const { status } of others) {
    const ended = failureOf(gate.withLease({ group: 'glm', maxWaitMs: 60_000 }, () => 'ran'));
    await pass(1);
    expect(await ended).toMatchObject({ reason: 'not_understood', status });
  }
  headgate.fault('GET', page());
  await expect(gate.status()).rejects.toMatchObject({ reason: 'not_understood' });
  expect(headgate.seen).toHaveLength(4);
});

test('a page that answers a renewal or a release for Headgate is none', async () => {
  const { headgate, gate } = stage(1);
  const page = (): Response => new Response('<html>Log in to the network', { status: 200 });
  const lease = await gate.acquire({ group: 'glm' });
  headgate.fault('PUT', page(), page());
  await pass(20_000);
  expect(lease.signal.aborted).toBe(false);
  expect(headgate.asked.filter((one) => one.startsWith('PUT')).length).toBeLessThan(6);
  headgate.fault('DELETE', page());
  await lease.release();
  await pass(1_000);
  expect(headgate.held.size).toBe(0);
});

test.each([5, 60, 600])(
  'setting the system clock back by %i s does not affect waits, leases or passes',
  async (seconds) => {
    const { headgate, gate } = stage(1, 'pass');
    const setBack = (): void => void vi.setSystemTime(Date.now() - seconds * 1_000);
    headgate.fault('POST', 'lost');
    expect((await gate.tryAcquire({ group: 'glm' }))?.isBypass).toBe(true);
    setBack();
    await pass(15_000);
    const lease = await gate.tryAcquire({ group: 'glm' });
    expect(lease?.isBypass).toBe(false);
    headgate.fault('POST', ...refusals(429, 'queue_full', 1));
    const waiting = failureOf(gate.acquire({ group: 'glm', maxWaitMs: 5_000 }));
    setBack();
    await pass(5_000);
    expect(await waiting).toMatchObject({ reason: 'queue_full' });
    setBack();
    const renewals = headgate.asked.filter((one) => one.startsWith('PUT')).length;
    await pass(45_000);
    expect(headgate.asked.filter((one) => one.startsWith('PUT')).length).toBeGreaterThan(renewals);
    expect(lease?.signal.aborted).toBe(false);
  },
);
