// What leaves a jurisdiction of a group that is split by what callers write: no value, in no place; and how an operator finds
// the pool of a value nevertheless.
import { beforeEach, expect, it, vi } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import { directoryOf, type Env } from '../../src/env.ts';
import { gatewayKeyHash } from '../../src/runtime/secrets.ts';
import { poolOf } from '../../src/routing/pool.ts';
import { openFeed, untilEvent, usesFeed } from './dashboard/feed-scene.ts';
import { NO_COOLDOWN } from './support/pool.ts';
import { strictScope, type Strict } from './support/strict.ts';
import { admin, call, chat, configure, env, until } from './support/worker.ts';

/** A value of a caller's: encoded it has a percent sign. */
const TENANT = 'Zoe Miller';
const WRITTEN = /zoe|miller/i;

const HASH = /^h:[0-9a-f]{24}$/;
const GATEWAY_KEY = 'hg_of-a-team';

let strict: Strict;
let names = 0;
let group = '';

/** Makes a group that is split by a header, in a jurisdiction or not. */
async function splitBy(partition_by: string[], jurisdiction: 'eu' | null): Promise<void> {
  names += 1;
  group = `kept-${names}`;
  const split = { name: group, partition_by, jurisdiction, limits: { max_concurrency: 2 } };
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [{ ...split, match: { upstreams: ['up'] }, holds: NO_COOLDOWN }] as never,
    keys: [{ id: 'a-team', hash: await gatewayKeyHash(GATEWAY_KEY) }],
  });
}

const HEADERS = { authorization: `Bearer ${GATEWAY_KEY}`, 'x-tenant': TENANT };

async function listed(): Promise<(string | null)[]> {
  const pools = await directoryOf(env).pools();
  return pools.flatMap((pool) => (pool.group === group ? [pool.partition] : []));
}

/** Lets a call be served, and waits until its pool is listed. */
async function served(): Promise<string> {
  const response = await chat('/up/v1/chat/completions', 'hello', { headers: HEADERS });
  expect(response.status).toBe(200);
  await response.text();
  await until(async () => expect(await listed()).toHaveLength(1));
  return (await listed())[0] ?? '';
}

usesFeed();

beforeEach(async () => {
  strict = await strictScope('kept');
});

it('no value leaves it: not to the directory, the feed, the log, the metrics or the status', async () => {
  await splitBy(['header:x-tenant', 'caller'], 'eu');
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  await strict.failNext('requests');
  const partition = await served();
  await until(() => expect(lines.join('\n')).toContain('upstream_refused'));
  spy.mockRestore();
  const values = partition.split(',');
  expect(values).toEqual([expect.stringMatching(HASH), expect.stringMatching(HASH)]);
  const reader = await openFeed(`?group=${group}`);
  await untilEvent(reader, 'snapshot', () => true);
  const read = async (path: string) =>
    (await call(path, { headers: { authorization: 'Bearer test-admin-token' } })).text();
  const asked = ['/metrics', '/admin/api/status', `/admin/api/groups/${group}/status`].map(read);
  const pages = [
    ...(await Promise.all(asked)),
    JSON.stringify(await directoryOf(env).pools()),
    JSON.stringify(reader.events),
    lines.join('\n'),
  ];
  for (const page of pages) {
    expect(page).not.toMatch(WRITTEN);
  }
  // The pool is the one that served the call.
  const pool = poolOf(env, group, partition, { location: null, jurisdiction: 'eu' });
  expect(await pool.status()).toMatchObject({ granted_total: expect.any(Number) as unknown });
  expect((await pool.status()).granted_total).toBeGreaterThan(0);
});

it('the tester names the pool of a value, under which the admin API finds it', async () => {
  await splitBy(['header:x-tenant', 'caller'], 'eu');
  const partition = await served();
  const headers = { 'x-tenant': HEADERS['x-tenant'] };
  const body = { upstream: 'up', model: 'gpt-4o-mini', key: 'a-team', headers };
  const { json } = await admin('POST', '/tester', body);
  expect(json.groups).toMatchObject([{ group, partition }]);
  const path = `/groups/${group}/history?partition=${encodeURIComponent(partition)}`;
  expect((await admin('GET', path)).status).toBe(200);
  const other = await admin('POST', '/tester', { ...body, headers: { 'x-tenant': 'b' } });
  expect(other.json.groups[0].partition).not.toBe(partition);
});

it('a caller finds its own pool', async () => {
  await splitBy(['caller'], 'eu');
  const partition = await served();
  expect(partition).toMatch(HASH);
  await until(async () => {
    const status = await call('/status', { headers: HEADERS });
    const { groups } = await status.json<{ groups: { name: string; partition: string }[] }>();
    const own = groups.filter(({ name }) => name === group);
    expect(own.map((one) => one.partition)).toEqual([partition]);
  });
});

it('two values have two pools, and one value has one', async () => {
  await splitBy(['header:x-tenant'], 'eu');
  for (const tenant of ['one', 'two', 'one']) {
    const headers = { ...HEADERS, 'x-tenant': tenant };
    const response = await chat('/up/v1/chat/completions', tenant, { headers });
    await response.text();
  }
  await until(async () => expect(await listed()).toHaveLength(2));
});

it('the jurisdiction of the deployment has the same effect, and without any the value is the name', async () => {
  await splitBy(['header:x-tenant'], null);
  const context = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} };
  const ask = async (variables: Partial<Env>) => {
    const init = { method: 'POST', body: '{"model":"gpt-4o-mini"}', headers: HEADERS };
    const response = await createApp().fetch?.(
      new Request('https://headgate.test/up/v1/chat/completions', init) as never,
      { ...env, ...variables },
      context as unknown as ExecutionContext,
    );
    expect(response?.status).toBe(200);
    await response?.text();
  };
  await ask({ JURISDICTION: 'eu' });
  await until(async () => expect(await listed()).toEqual([expect.stringMatching(HASH)]));
  await ask({});
  await until(async () => expect((await listed()).join()).toContain('Zoe%20Miller'));
});
