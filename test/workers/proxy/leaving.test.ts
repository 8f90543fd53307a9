// Callers that leave at every point of a call, and Workers that die: the slot is back at once, and the
// upstream learns of it before the next call arrives there.
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Strict } from '../support/strict.ts';
import { strictScope } from '../support/strict.ts';
import {
  NO_COOLDOWN,
  nothingLeaks,
  pool,
  untilWrittenEmpty,
  untilStatus,
} from '../support/pool.ts';
import { call, chat, configure, open, until, type WorkerOpenCall } from '../support/worker.ts';

const CHAT = '/up/v1/chat/completions';

let strict: Strict;
let group = 'one';
let groups = 0;
const calls: WorkerOpenCall[] = [];

beforeEach(async () => {
  strict = await strictScope('leaving', { limit: 1, silentAfterChunks: 1 });
  groups += 1;
  group = `leaving-${groups}`;
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [
      {
        name: group,
        match: { upstreams: ['up'] },
        limits: { max_concurrency: 1 },
        holds: NO_COOLDOWN,
      },
    ],
  });
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  for (const one of calls.splice(0)) one.leave();
  await untilStatus(group, { in_use: 0, queued: 0 });
  await untilWrittenEmpty(group);
});

afterAll(nothingLeaks);

function start(label: string): WorkerOpenCall {
  const one = open(CHAT, label);
  calls.push(one);
  return one;
}

/** Starts a call and waits until it is where it belongs: at the upstream, or in the queue. */
async function arrived(label: string, expected: { in_use: number; queued: number }) {
  const one = start(label);
  await untilStatus(group, expected);
  await until(async () => expect((await strict.stats()).inFlight).toBe(expected.in_use));
  return one;
}

it('a caller that leaves a silent stream frees its slot at once, and the upstream sees it first', async () => {
  const first = await arrived('first', { in_use: 1, queued: 0 });
  await first.response;
  await arrived('second', { in_use: 1, queued: 1 });
  first.leave();
  await until(async () => expect((await strict.stats()).total).toBe(2));
  const { arrivals, peak, rejected429 } = await strict.stats();
  expect(arrivals).toMatchObject([
    { label: 'first', state: 'aborted' },
    { label: 'second', state: 'open' },
  ]);
  expect(arrivals[0]?.endedAt).toBeLessThanOrEqual(arrivals[1]?.at ?? 0);
  expect({ peak, rejected429 }).toEqual({ peak: 1, rejected429: 0 });
});

it('a caller that cancels the body it reads frees its slot at once', async () => {
  const response = await chat(CHAT, 'reader');
  const reader = response.body?.getReader();
  await reader?.read();
  await untilStatus(group, { in_use: 1 });
  await reader?.cancel();
  await untilStatus(group, { in_use: 0 });
  await until(async () => expect(await strict.stats()).toMatchObject({ inFlight: 0, aborted: 1 }));
});

it('a caller that leaves before the headers frees its slot at once', async () => {
  await strict.configure({ firstByteDelayMs: 60_000 });
  const first = await arrived('first', { in_use: 1, queued: 0 });
  first.leave();
  expect(await first.end).toBe('cut');
  await until(async () => expect(await strict.stats()).toMatchObject({ inFlight: 0, aborted: 1 }));
  await untilStatus(group, { in_use: 0 });
});

it('a caller that leaves the queue is never sent to the upstream', async () => {
  const first = await arrived('first', { in_use: 1, queued: 0 });
  const second = await arrived('second', { in_use: 1, queued: 1 });
  await arrived('third', { in_use: 1, queued: 2 });
  second.leave();
  await untilStatus(group, { in_use: 1, queued: 1 });
  await strict.resume();
  expect(await first.end).toBe('done');
  await until(async () => expect((await strict.stats()).total).toBe(2));
  expect((await strict.stats()).arrivals.map(({ label }) => label)).toEqual(['first', 'third']);
});

it('a caller that leaves while its request body is still on the way frees its slot', async () => {
  const { readable, writable } = new IdentityTransformStream();
  const client = new AbortController();
  const response = call(CHAT, { method: 'POST', body: readable, signal: client.signal });
  const end = response.catch(() => 'aborted');
  const writer = writable.getWriter();
  writer.write(new TextEncoder().encode('{"model":"gpt-4o-mini",')).catch(() => {});
  await untilStatus(group, { in_use: 1 });
  await until(async () => expect((await strict.stats()).inFlight).toBe(1));
  client.abort();
  expect(await end).toBe('aborted');
  await untilStatus(group, { in_use: 0 });
  await until(async () => expect(await strict.stats()).toMatchObject({ inFlight: 0, aborted: 1 }));
});

it('a Worker that fails while it holds a slot frees it at once', async () => {
  vi.stubGlobal(
    'IdentityTransformStream',
    class {
      constructor() {
        throw new Error('a bug of ours');
      }
    },
  );
  const failed = await chat(CHAT, 'failed');
  expect(failed.status).toBe(500);
  expect(failed.headers.get('headgate-reason')).toBe('internal');
  expect(await failed.text()).not.toContain('a bug of ours');
  vi.unstubAllGlobals();
  await untilStatus(group, { in_use: 0 });
  await until(async () => expect(await strict.stats()).toMatchObject({ inFlight: 0, aborted: 1 }));
});

it('a stream that the upstream breaks off frees its slot, and the caller sees the break', async () => {
  await strict.configure({ silentAfterChunks: null, breakAfterChunks: 2 });
  expect(await start('broken').end).toBe('cut');
  await untilStatus(group, { in_use: 0 });
  expect(await pool(group).status()).toMatchObject({ expired_total: 0 });
});

it('a hundred callers that come and go at any time leave nothing behind', async () => {
  await strict.configure({ silentAfterChunks: null, chunks: 4, chunkDelayMs: 2, limit: 1 });
  const callersAtOnce = Array.from({ length: 100 }, (_, at) => start(`c${at}`));
  await until(async () => expect((await strict.stats()).total).toBeGreaterThan(10));
  for (const [at, one] of callersAtOnce.entries()) if (at % 3 === 0) one.leave();
  for (let at = 0; at < 20; at += 1) start(`gone-${at}`).leave();
  const ends = await Promise.all(callersAtOnce.map(({ end }) => end));
  expect(ends.filter((end) => end === 'done').length).toBeGreaterThanOrEqual(66);
  await until(async () => expect((await strict.stats()).inFlight).toBe(0));
  expect(await strict.stats()).toMatchObject({ peak: 1, rejected429: 0 });
});
