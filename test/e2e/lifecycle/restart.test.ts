import { afterEach, beforeEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import { slotsOnDisk } from '../support/lifecycle-rows.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { clock, FIGURE, until } from '../support/lifecycle-wait.ts';

/**
 * Traces of a power cut. The holders of the leases died with the process, so their slots are
 * free at once: nobody waits for a TTL of 45 s.
 */
const LIMIT = 3;
const FULL_SERVICE_MS = 2_000;

/** Or half as long again as the first start just took, on a machine that is busy with other things. */
const STARTS_MAX = 1.5;

let stage: LifecycleStage;
let startMs: number;

beforeEach(async () => {
  const startedAt = clock();
  stage = await startStage({
    config: (upstream) => ({ ...(practiceConfig(LIMIT)(upstream) as object), leases: 'open' }),
    upstream: { limit: LIMIT, silentAfterChunks: 1 },
  });
  startMs = clock() - startedAt;
});

afterEach(() => stage.close());

const send = (name: string, count: number): LifecycleOpenCall[] =>
  Array.from({ length: count }, (_, i) => openChat(stage.url(), { label: `${name}-${i}` }));

it(
  'kill -9 in mid-stream: full service within 2 s of the restart, and nothing leaks',
  FIGURE,
  async () => {
    const { upstream, admin } = stage;
    const before = send('before', LIMIT + 4);
    await until('all slots are held', () => upstream.stats().inFlight === LIMIT);
    await admin.untilGroup('practice', { in_use: LIMIT, queued: 4 });
    await stage.kill9();
    expect(new Set(await Promise.all(before.map((call) => call.ended)))).toEqual(new Set(['cut']));
    await until('the upstream sees the end', () => upstream.stats().inFlight === 0);
    expect(await slotsOnDisk(stage.dataDir)).toBe(LIMIT);
    upstream.reset();

    const restartedAt = clock();
    await stage.start();
    const after = send('after', LIMIT + 4);
    await until('all slots are held again', () => upstream.stats().inFlight === LIMIT);
    expect(clock() - restartedAt).toBeLessThan(Math.max(FULL_SERVICE_MS, STARTS_MAX * startMs));
    await admin.untilGroup('practice', { in_use: LIMIT, queued: 4 });

    upstream.configure({ silentAfterChunks: null });
    upstream.resume();
    const ends = await Promise.all(after.map((call) => call.ended));
    expect(new Set(ends)).toEqual(new Set(['complete']));
    expect(upstream.stats()).toMatchObject({ peak: LIMIT, completed: LIMIT + 4, rejected429: 0 });
    await admin.untilIdle();
    const isEmpty = async () => (await slotsOnDisk(stage.dataDir)) === 0;
    await until('it is written that nothing is held', isEmpty, { everyMs: 100 });
    await stage.stop();
    expect(await isEmpty()).toBe(true);
  },
);

it('kill -9 again and again keeps the limit and the configuration', async () => {
  const { upstream, admin } = stage;
  await admin.setLimit('practice', 2);
  for (let round = 0; round < 3; round += 1) {
    upstream.reset();
    const calls = send(`round-${round}`, 5);
    await until('all slots are held', () => upstream.stats().inFlight === 2);
    await admin.untilGroup('practice', { in_use: 2, queued: 3 });
    expect(upstream.stats().peak).toBe(2);
    await stage.kill9();
    await Promise.all(calls.map((call) => call.ended));
    await until('the upstream sees the end', () => upstream.stats().inFlight === 0);
    await stage.start();
    expect((await admin.group('practice')).in_use).toBe(0);
  }
});

it('kill -9: a lease that is held by its id goes on, and counts until its holder says otherwise', async () => {
  const ask = async (method: string, path: string, body?: object, prefer = 'wait=0') => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { prefer, 'content-type': 'application/json' };
    const answer = await fetch(stage.url() + path, { method, headers, ...init });
    const text = await answer.text();
    const said = text === '' ? {} : (JSON.parse(text) as { readonly lease?: string });
    return { status: answer.status, lease: said.lease ?? '' };
  };
  const held = await Promise.all(
    Array.from({ length: LIMIT }, () => ask('POST', '/leases', { group: 'practice' })),
  );
  expect(held.map(({ status }) => status)).toEqual(held.map(() => 201));
  await stage.kill9();
  await stage.start();
  expect(await ask('POST', '/leases', { group: 'practice' })).toMatchObject({ status: 202 });
  for (const { lease } of held) {
    expect(await ask('PUT', `/leases/${lease}`)).toMatchObject({ status: 200 });
  }
  await stage.admin.untilGroup('practice', { in_use: LIMIT });
  for (const { lease } of held) {
    expect(await ask('DELETE', `/leases/${lease}`)).toMatchObject({ status: 204 });
  }
  const next = await ask('POST', '/leases', { group: 'practice' }, 'wait=20');
  expect(next.status).toBe(201);
  await ask('DELETE', `/leases/${next.lease}`);
});
