// Calls while their group's object gets more messages than it takes: those that may wait go on waiting. The upstream
// counts.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { mend, overload, refuseAll } from '../support/overload.ts';
import { NO_COOLDOWN, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { chat, configure, open, until } from '../support/worker.ts';

const LIMIT = 4;

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('overload', { limit: LIMIT });
  const base_url = strict.url;
  const group = { limits: { max_concurrency: LIMIT }, holds: NO_COOLDOWN };
  const ids = ['waits', 'passes', 'rejects', 'both'];
  await configure({
    upstreams: ids.map((id) => ({ id, base_url })),
    groups: [
      { ...group, name: 'waits', match: { upstreams: ['waits'] } },
      {
        ...group,
        name: 'passes',
        match: { upstreams: ['passes'] },
        on_unavailable: { pass_with_limit_each: 2 },
      },
      {
        ...group,
        name: 'rejects',
        match: { upstreams: ['rejects'] },
        on_saturated: 'reject',
        on_unavailable: { pass_with_limit_each: 2 },
      },
      { ...group, name: 'narrow', match: { upstreams: ['both'], models: ['gpt-4o-mini'] } },
      { ...group, name: 'wide', match: { upstreams: ['both'] } },
    ],
  });
});

afterEach(() => mend());

afterAll(nothingLeaks);

it('three seconds of overload yield grants to everybody who waits, and no refusal', async () => {
  await strict.configure({ chunks: 4, chunkDelayMs: 30 });
  const before = (await strict.stats()).total;
  const endsAt = Date.now() + 3_000;
  const refused = overload('waits', () => Date.now() >= endsAt);
  const calls = Array.from({ length: 60 }, (_, at) => open('/waits/v1/chat/completions', `c${at}`));
  const ends = await Promise.all(calls.map(({ end }) => end));
  expect(ends).toEqual(ends.map(() => 'done'));
  const answers = await Promise.all(calls.map(({ response }) => response));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(answers.filter(({ headers }) => !headers.has('headgate-lease'))).toEqual([]);
  expect(new Set(refused.mock.calls.map(([id]) => id)).size).toBe(60);
  // It refuses whatever is above the limit.
  expect(await strict.stats()).toMatchObject({ total: before + 60, rejected429: 0 });
  await untilStatus('waits', { in_use: 0, queued: 0 });
});

it.each([
  ['does not want to wait', 'waits', { 'headgate-max-wait': '0' }],
  ['does not want to wait, where calls may pass,', 'passes', { 'headgate-max-wait': '0' }],
  ['is not to wait by its group', 'rejects', {}],
])('a call that %s is told at once', async (_, group, wish) => {
  const refused = overload(group);
  const { total } = await strict.stats();
  const headers = { 'content-type': 'application/json', ...wish };
  const answer = await chat(`/${group}/v1/chat/completions`, 'at once', { headers });
  expect(answer.status).toBe(503);
  expect(answer.headers.get('headgate-reason')).toBe('limiter_overloaded');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(5);
  expect(answer.headers.has('x-should-retry')).toBe(false);
  const { error } = await answer.json<{ error: object }>();
  expect(error).toMatchObject({ type: 'server_error', code: 'limiter_overloaded' });
  expect(refused).toHaveBeenCalledOnce();
  expect((await strict.stats()).total).toBe(total);
});

it('a call that may wait is told when its time is over, not before', async () => {
  const refused = overload('waits');
  const startedAt = Date.now();
  const headers = { 'content-type': 'application/json', 'headgate-max-wait': '700ms' };
  const answer = await chat('/waits/v1/chat/completions', 'in time', { headers });
  expect(answer.headers.get('headgate-reason')).toBe('limiter_overloaded');
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(700);
  expect(refused.mock.calls.length).toBeGreaterThan(1);
  await answer.body?.cancel();
});

it('where calls may pass they do after two seconds, and whoever finds no room waits on', async () => {
  await strict.configure({ silentAfterChunks: 1 });
  const refused = overload('passes');
  const startedAt = Date.now();
  const path = '/passes/v1/chat/completions';
  const calls = ['one', 'two', 'three'].map((label) => open(path, label));
  const [first] = await Promise.all([
    Promise.race(calls.map(({ response }) => response)),
    until(async () => expect((await strict.stats()).inFlight).toBe(2)),
  ]);
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(2_000);
  expect(first.headers.has('headgate-lease')).toBe(false);
  const before = refused.mock.calls.length;
  await until(() => expect(refused.mock.calls.length).toBeGreaterThan(before + 1));
  expect((await strict.stats()).inFlight).toBe(2);
  mend();
  const answers = await Promise.all(calls.map(({ response }) => response));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(answers.filter(({ headers }) => headers.has('headgate-lease'))).toHaveLength(1);
  await strict.resume();
  expect(await Promise.all(calls.map(({ end }) => end))).toEqual(['done', 'done', 'done']);
  await strict.configure({ silentAfterChunks: null });
});

it('a call of several groups holds none while the narrowest is overloaded', async () => {
  let isOver = false;
  const refused = overload('narrow', () => isOver);
  const waits = chat('/both/v1/chat/completions', 'both');
  // Once in a try for both at once, then again and again for the narrow one alone.
  await until(() => expect(refused.mock.calls.length).toBeGreaterThan(2));
  expect(await pool('wide').status()).toMatchObject({ in_use: 0, queued: 0 });
  isOver = true;
  const answer = await waits;
  expect(answer.headers.get('headgate-groups')).toBe('narrow, wide');
  await answer.text();
});

it.each([
  ['waits', {}],
  ['passes', {}],
  ['passes', { 'headgate-max-wait': '0' }],
  ['rejects', {}],
])('a spending cap is reported at once, and no call of %s passes', async (group, wish) => {
  const refused = refuseAll(group, new Error("Exceeded the account's spending cap."));
  const { total } = await strict.stats();
  const headers = { 'content-type': 'application/json', ...wish };
  const answer = await chat(`/${group}/v1/chat/completions`, 'capped', { headers });
  expect([answer.status, answer.headers.get('headgate-reason')]).toEqual([424, 'account_capped']);
  expect(answer.headers.has('retry-after')).toBe(false);
  const { error } = await answer.json<{ error: { message: string } }>();
  expect(error.message).toMatch(/spending cap.*Raise the cap/);
  expect(refused).toHaveBeenCalledOnce();
  expect((await strict.stats()).total).toBe(total);
});
