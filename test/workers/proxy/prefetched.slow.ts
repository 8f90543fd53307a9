// Calls on slots that their isolate was lent, through Workers of their own. The upstream counts.
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Env } from '../../../src/env.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import {
  NO_COOLDOWN,
  nothingLeaks,
  passAwake,
  pool,
  resetPool,
  untilStatus,
} from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { configure, env, until } from '../support/worker.ts';

const LIMIT = 12;

let strict: Strict;
let first: Worker;
let second: Worker;
let group = '';
let groups = 0;

// Loading modules anew resets the objects: all of them begin before the first call.
beforeAll(async () => {
  [first, second] = [await startWorker(), await startWorker()];
});

beforeEach(async () => {
  group = `lent-${(groups += 1)}`;
  strict = await strictScope('lent', { limit: LIMIT, chunks: 2, chunkDelayMs: 5 });
  const limits = { max_concurrency: LIMIT };
  const match = { upstreams: ['up'] };
  await until(() =>
    configure({
      upstreams: [{ id: 'up', base_url: strict.url }],
      groups: [{ name: group, match, limits, holds: NO_COOLDOWN }],
    }),
  );
  // Both have heard of it.
  for (const worker of [first, second]) {
    await until(async () => {
      const { status } = await worker.send('hears');
      if (status !== 200) throw new Error(`answered ${status}`);
    });
    await worker.rest();
  }
});

afterAll(nothingLeaks);

interface LentAnswer {
  readonly status: number;
  readonly lease: string;
}

interface Worker {
  send(label: string): Promise<LentAnswer>;
  /** Resolves once nothing of it goes on behind its answers. */
  rest(): Promise<void>;
}

/** Starts a Worker: a fresh instance of all modules, as an isolate of its own would have. */
async function startWorker(): Promise<Worker> {
  vi.resetModules();
  const { createApp } = await import('../../../src/http/app.ts');
  const app = createApp() as Required<ExportedHandler<Env>>;
  const contexts: ExecutionContext[] = [];
  return {
    async send(label) {
      const messages = [{ role: 'user', content: label }];
      const request = new Request<unknown, IncomingRequestCfProperties>(
        'https://headgate.test/up/v1/chat/completions',
        {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'm', stream: true, messages }),
        },
      );
      const ctx = createExecutionContext();
      contexts.push(ctx);
      const response = await app.fetch(request, env, ctx);
      await response.arrayBuffer();
      return { status: response.status, lease: response.headers.get('headgate-lease') ?? '' };
    },
    async rest() {
      await Promise.all(contexts.map((ctx) => waitOnExecutionContext(ctx)));
    },
  };
}

/** Has so many callers of a Worker call one after the other. */
async function callAll(worker: Worker, callers: number, calls: number): Promise<LentAnswer[]> {
  const each = Array.from({ length: callers }, async (_, caller) => {
    const answers: LentAnswer[] = [];
    for (let at = 0; at < calls; at += 1) answers.push(await worker.send(`${caller}-${at}`));
    return answers;
  });
  return (await Promise.all(each)).flat();
}

function statusesOf(answers: readonly LentAnswer[]): Set<number> {
  return new Set(answers.map(({ status }) => status));
}

it('calls that follow one another quickly hardly ask, and are told of one by one', async () => {
  const asks = vi.spyOn(GroupObject.prototype, 'acquire');
  const answers = await callAll(first, 2, 60);
  expect(statusesOf(answers)).toEqual(new Set([200]));
  expect(asks.mock.calls.length).toBeLessThan(60);
  asks.mockRestore();
  await first.rest();
  await untilStatus(group, { in_use: 0, lent: 0, granted_total: 122 });
  expect(await strict.stats()).toMatchObject({ total: 122, completed: 122, rejected429: 0 });
  // Each has an id of its own, by which an operator finds it.
  expect(new Set(answers.map(({ lease }) => lease)).size).toBe(120);
  const reported = await pool(group).decisions({ ids: [answers.at(-1)?.lease ?? ''] });
  expect(reported).toMatchObject([{ outcome: 'granted', upstream_status: 200, ended: 'success' }]);
});

it('two Workers that are lent slots never send more than the limit, whatever resets come', async () => {
  const workers = [first, second];
  const work = Promise.all(workers.map((worker) => callAll(worker, 9, 40)));
  for (let resets = 0; resets < 3; resets += 1) {
    const { total } = await strict.stats();
    await until(async () => expect((await strict.stats()).total).toBeGreaterThan(total + 60));
    await resetPool(group);
  }
  const answers = (await work).flat();
  expect(statusesOf(answers)).toEqual(new Set([200]));
  const { total, peak, rejected429 } = await strict.stats();
  expect({ total, rejected429 }).toEqual({ total: 722, rejected429: 0 });
  expect(peak).toBeLessThanOrEqual(LIMIT);
  await Promise.all(workers.map((worker) => worker.rest()));
  await untilStatus(group, { in_use: 0, lent: 0, queued: 0, resurrected_total: 0 });
  // What was held up as margin is free one TTL after the last reset.
  await passAwake(group, 46_000);
  await untilStatus(group, { unclaimed: 0 });
});

it('a call that is refused on a lent slot goes on as any other, and the rest asks', async () => {
  await callAll(first, 2, 30);
  await strict.failNext('error');
  const answers = await callAll(first, 2, 5);
  const failed = answers.filter(({ status }) => status !== 200);
  expect(failed).toHaveLength(1);
  expect((await pool(group).status()).refusals_total).toEqual({ error: 1 });
  await first.rest();
  await untilStatus(group, { in_use: 0, lent: 0, granted_total: 72 });
});

/** Starts a call that goes on until it is taken away, without asking: soon after quick ones, or it is tried again. */
async function startOnPrefetched(): Promise<{ readonly long: Promise<LentAnswer> }> {
  const asks = vi.spyOn(GroupObject.prototype, 'acquire');
  for (let attempts = 0; attempts < 50; attempts += 1) {
    await strict.configure({ silentAfterChunks: null });
    await callAll(first, 2, 20);
    await strict.configure({ silentAfterChunks: 1 });
    asks.mockClear();
    const long = first.send('long');
    await until(async () => {
      if ((await strict.stats()).inFlight !== 1) throw new Error('not there yet');
    });
    if (asks.mock.calls.length === 0) {
      asks.mockRestore();
      return { long };
    }
    await strict.resume();
    await long;
  }
  throw new Error('no call starts on a lent slot');
}

it('one that runs for longer than a second has a lease of its own, which can be taken away', async () => {
  const { long } = await startOnPrefetched();
  await until(async () => expect(await pool(group).leases()).toHaveLength(1));
  const [lease] = await pool(group).leases();
  await untilStatus(group, { in_use: 1 });
  expect(await pool(group).revoke(lease?.id ?? '')).toBe(true);
  await long.catch(() => {});
  await until(async () => expect((await strict.stats()).inFlight).toBe(0));
  await first.rest();
  await untilStatus(group, { in_use: 0, lent: 0 });
});
