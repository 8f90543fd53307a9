import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openCall, openChat } from '../support/lifecycle-call.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';

/**
 * Streams of 5 minutes, all at the same time, each in a group of its own with one slot. They live, they
 * come out byte for byte, their leases are renewed all the time, and the next in line waits to the end.
 */
interface LongStream {
  readonly group: string;
  /** How the upstream behaves; without its pauses the same headers give the same bytes. */
  readonly content: Readonly<Record<string, string>>;
  readonly pauses: Readonly<Record<string, string>>;
}

const STREAMS: readonly LongStream[] = [
  {
    group: 'gaps-of-62-s',
    content: { 'x-strict-chunks': '5' },
    pauses: { 'x-strict-chunk-delay-ms': '62000' },
  },
  {
    group: 'one-gap-of-290-s',
    content: { 'x-strict-chunks': '40' },
    pauses: {
      'x-strict-chunk-delay-ms': '300',
      'x-strict-silent-after-chunks': '20',
      'x-strict-silent-ms': '290000',
    },
  },
  {
    group: 'gzip-every-second',
    content: { 'x-strict-chunks': '300', 'x-strict-gzip': '1', 'accept-encoding': 'gzip' },
    pauses: { 'x-strict-chunk-delay-ms': '1000' },
  },
];

const LONG_MS = 295_000;

/** A lease lasts 45 s and is renewed every 15 s, so this much is left of one that a holder keeps. */
const LEFT_MS_MIN = 25_000;

const LOOK_EVERY_MS = 5_000;

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({
    config: (upstream) => ({
      upstreams: STREAMS.map(({ group }) => ({ id: group, base_url: upstream.scopeUrl(group) })),
      groups: STREAMS.map(({ group }) => ({
        name: group,
        match: { upstreams: [group] },
        limits: { max_concurrency: 1 },
        queue: { timeout_ms: 900_000 },
        holds: NO_HOLDS,
      })),
    }),
    upstream: { limit: 1 },
  });
});

afterAll(() => stage.close());

/** The bytes that the upstream sends when nothing is between, and nothing slows it down. */
async function bytesWithoutUs(stream: LongStream): Promise<Buffer> {
  const url = stage.upstream.scopeUrl(`${stream.group}-straight`);
  const call = openChat(url, {
    path: '/v1/chat/completions',
    label: 'long',
    headers: stream.content,
  });
  expect(await call.ended).toBe('complete');
  return call.bytes();
}

/** Looks at the lease until the call has ended; its id, which must stay the same. */
async function watchLease(group: string, call: LifecycleOpenCall): Promise<string> {
  const ids = new Set<string>();
  let isOver = false;
  const over = call.ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    await Promise.race([over, delay(LOOK_EVERY_MS)]);
    const [leases, status] = [await stage.admin.leases(group), await stage.admin.group(group)];
    // Between the two looks the call may have ended, and the next one begun.
    if (isOver) break;
    expect(leases).toHaveLength(1);
    expect(status).toMatchObject({ in_use: 1, queued: 1, expired_total: 0 });
    for (const { id, expires_at, state } of leases) {
      ids.add(id);
      expect(state).toBe('held');
      expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(LEFT_MS_MIN);
    }
  }
  expect(ids.size).toBe(1);
  return [...ids].join('');
}

it.concurrent.each(STREAMS)('a stream with $group survives 5 minutes', async (stream) => {
  const { group, content, pauses } = stream;
  const path = `/${group}/v1/chat/completions`;
  const expected = await bytesWithoutUs(stream);
  const startedAt = Date.now();
  const headers = { ...content, ...pauses };
  const long = openChat(stage.url(), { path, label: 'long', headers });
  expect(await long.answered).toBe(200);
  // Not a stream: one that waits for so long would be answered early, with comments.
  const next = openChat(stage.url(), { path, label: 'next', stream: false });
  await stage.admin.untilGroup(group, { in_use: 1, queued: 1 });

  const leaseId = await watchLease(group, long);
  expect(await long.ended).toBe('complete');
  expect(Date.now() - startedAt).toBeGreaterThan(LONG_MS);
  expect(long.bytes().equals(expected)).toBe(true);
  expect(long.headers()['headgate-lease']).toBe(leaseId);

  expect(await next.answered).toBe(200);
  expect(await next.ended).toBe('complete');
  expect(Number(next.headers()['headgate-wait-ms'])).toBeGreaterThan(LONG_MS);
  expect(stage.upstream.stats(group)).toMatchObject({ peak: 1, completed: 2, rejected429: 0 });
  await stage.admin.untilGroup(group, { in_use: 0, queued: 0 });
  const { expired_total, resurrected_total } = await stage.admin.group(group);
  expect({ expired_total, resurrected_total }).toEqual({ expired_total: 0, resurrected_total: 0 });
});

it('a client of a silent stream still frees its slot after half a minute', async () => {
  const [stream] = STREAMS;
  const group = stream?.group ?? '';
  const path = `/${group}/v1/chat/completions`;
  const headers = { 'x-strict-silent-after-chunks': '1' };
  const call = openChat(stage.url(), { path, label: 'leaver', headers });
  expect(await call.answered).toBe(200);
  await delay(35_000);
  const health = openCall(stage.url(), { method: 'GET', path: '/healthz' });
  expect(await health.answered).toBe(200);
  call.leave('FIN');
  await stage.admin.untilGroup(group, { in_use: 0 });
});
