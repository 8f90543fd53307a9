import { afterEach, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import {
  NO_HOLDS,
  practiceConfig,
  startStage,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { footprint, openFiles } from '../support/made-up-keys.ts';

/**
 * Values that callers make up for a group that is split by a header. On plain workerd each pool in its own object is a
 * file.
 */
const LIMIT = 2;
const CALLS = 6;
const MADE_UP = 2_000;
const AFTER_RESTART = 200;
const AT_ONCE = 20;

/** Enough that pools in objects of their own would be seen. */
const FILES_MORE_MAX = 20;
const MEGABYTES_MORE_MAX = 400;

const REFUSALS = ['400', '401', '403', '404', '500', '503'];

let stage: LifecycleStage;

afterEach(() => stage.close());

async function begin(limits: object = {}, more: object = {}): Promise<void> {
  const split = {
    partition_by: ['header:x-team'],
    limits: { max_concurrency: LIMIT, ...limits },
    holds: NO_HOLDS,
    retries: { max: 0 },
  };
  stage = await startStage({
    config: (upstream) => ({ ...(practiceConfig(LIMIT, split)(upstream) as object), ...more }),
    upstream: { chunks: 3, chunkDelayMs: 5 },
  });
}

/** Calls of one team at once, of which its limit lets so many through at a time. */
async function burst(team: string): Promise<number[]> {
  const calls = Array.from({ length: CALLS }, (_, at) =>
    openChat(stage.url(), { label: `${team}-${at}`, headers: { 'x-team': team } }),
  );
  return Promise.all(
    calls.map(async (call) => {
      const status = await call.answered;
      await call.ended;
      return status;
    }),
  );
}

async function chat(team: string, headers = {}): Promise<number> {
  const call = openChat(stage.url(), { label: team, headers: { 'x-team': team, ...headers } });
  const status = await call.answered;
  await call.ended;
  return status;
}

/** Counts the partitions that are listed. */
async function partitions(): Promise<number> {
  const answer = await stage.admin.request('GET', '/groups/practice/status');
  return ((await answer.json()) as { partitions: unknown[] }).partitions.length;
}

/** Waits until the runtime has unloaded every object in which nothing was under way since. */
async function untilUnloaded(): Promise<void> {
  const openNow = () => openFiles(stage.workerdPid(), 'DirectoryObject');
  // Reads the directory, whose object is unloaded after those that were used before.
  await stage.admin.groups();
  const before = await openNow();
  await until('the directory is unloaded', async () => (await openNow()) < before, {
    everyMs: 100,
  });
}

/** Sends one call with each of so many made-up teams, a few at once. All of them are refused. */
async function makeUp(teams: number, of: string): Promise<void> {
  for (let made = 0; made < teams; made += AT_ONCE) {
    const statuses = Array.from({ length: AT_ONCE }, (_, at) => REFUSALS[at % REFUSALS.length]);
    const calls = statuses.map((status = '400', at) =>
      chat(`${of}-${made + at}`, { 'x-strict-status': status }),
    );
    expect(await Promise.all(calls)).toEqual(statuses.map(Number));
  }
}

const ALL_SERVED = Array.from({ length: CALLS }, () => 200);

it('made-up values leave no file, while right ones, known and new, have their limit', async () => {
  await begin();
  const { upstream, dataDir } = stage;
  expect(await burst('known')).toEqual(ALL_SERVED);
  const before = await footprint(stage.workerdPid(), dataDir);
  const made = makeUp(MADE_UP, 'first');
  await until('the storm is on', () => upstream.stats().total > 100);
  expect(await burst('known')).toEqual(ALL_SERVED);
  expect(await burst('new')).toEqual(ALL_SERVED);
  await made;
  const after = await footprint(stage.workerdPid(), dataDir);
  expect(after.files - before.files).toBeLessThan(FILES_MORE_MAX);
  expect(after.megabytes - before.megabytes).toBeLessThan(MEGABYTES_MORE_MAX);
  await until('unused connections and objects are gone', async () => {
    const { open } = await footprint(stage.workerdPid(), dataDir);
    return open < before.open + FILES_MORE_MAX;
  });
  await stage.kill9();
  await stage.start();
  await makeUp(AFTER_RESTART, 'second');
  expect(await burst('known')).toEqual(ALL_SERVED);
  const again = await footprint(stage.workerdPid(), dataDir);
  expect(again.files - before.files).toBeLessThan(FILES_MORE_MAX);
});

it('no partition has more calls at once than its limit, though it is handed over at its first success', async () => {
  await begin();
  const { upstream } = stage;
  for (const team of ['a', 'b', 'c']) {
    upstream.reset();
    expect(await burst(team)).toEqual(ALL_SERVED);
    expect(upstream.stats()).toMatchObject({ peak: LIMIT, total: CALLS });
  }
  await until('all of them are listed', async () => (await partitions()) === 3);
});

it('calls before the first success count against the rate, while the partition is idle and after its success', async () => {
  await begin({ rpd: 3 });
  const refused = { 'x-strict-status': '400', 'headgate-max-wait': '0' };
  for (const team of ['a', 'b']) {
    expect(await chat(team, refused)).toBe(400);
    expect(await chat(team, refused)).toBe(400);
  }
  expect(await chat('a')).toBe(200);
  await until('one has its own object', async () => (await partitions()) === 1);
  expect(await chat('a', refused)).toBe(429);
  await untilUnloaded();
  expect(await chat('b', refused)).toBe(400);
  expect(await chat('b', refused)).toBe(429);
});

it('a lease that is held by its id counts before the first success, unrenewed for a while and after a restart', async () => {
  await begin({ max_concurrency: 1 }, { leases: 'open' });
  const ask = async (method: string, path: string, body?: object, prefer = 'wait=0') => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { prefer, 'content-type': 'application/json', 'x-team': 'leased' };
    const answer = await fetch(stage.url() + path, { method, headers, ...init });
    const text = await answer.text();
    const { lease = '' } = text === '' ? {} : (JSON.parse(text) as { readonly lease?: string });
    return { status: answer.status, lease };
  };
  const wanted = { upstream: 'practice', model: 'practice' };
  const first = await ask('POST', '/leases', wanted);
  expect(first.status).toBe(201);
  await untilUnloaded();
  expect(await ask('POST', '/leases', wanted)).toMatchObject({ status: 202 });
  await stage.kill9();
  await stage.start();
  expect(await ask('POST', '/leases', wanted)).toMatchObject({ status: 202 });
  expect(await ask('PUT', `/leases/${first.lease}`)).toMatchObject({ status: 200 });
  expect(await ask('POST', '/leases', wanted)).toMatchObject({ status: 202 });
  expect(await ask('DELETE', `/leases/${first.lease}`, { outcome: 'failed' })).toMatchObject({
    status: 204,
  });
  const next = await ask('POST', '/leases', wanted, 'wait=20');
  expect(next.status).toBe(201);
  await ask('DELETE', `/leases/${next.lease}`);
});
