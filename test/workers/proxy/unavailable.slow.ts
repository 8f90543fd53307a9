// What callers meet while the directory or a group's object cannot be reached.
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { NO_COOLDOWN, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { admin, chat, configure, open, until } from '../support/worker.ts';

/** Older than this a Worker's copy of the configuration is not used unseen. */
const STALE_MS = 10_000;

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('unavailable', { limit: 4 });
  const group = { limits: { max_concurrency: 2 }, holds: NO_COOLDOWN };
  await configure({
    upstreams: [
      { id: 'rejects', base_url: strict.url },
      { id: 'passes', base_url: strict.url },
    ],
    groups: [
      { ...group, name: 'rejects', match: { upstreams: ['rejects'] } },
      {
        ...group,
        name: 'passes',
        match: { upstreams: ['passes'] },
        on_unavailable: { pass_with_limit_each: 2 },
      },
    ],
  });
});

let mocks: { mockRestore(): void }[] = [];

afterEach(() => {
  for (const mock of mocks) mock.mockRestore();
  mocks = [];
});

afterAll(nothingLeaks);

/** Puts the groups' objects out of reach. */
function breakGroups() {
  const mock = vi
    .spyOn(GroupObject.prototype, 'acquire')
    .mockImplementation(() => Promise.reject(new Error('out of reach')));
  mocks.push(mock);
  return mock;
}

function mend(): void {
  for (const mock of mocks.splice(0)) mock.mockRestore();
}

it.each<[string, () => Promise<never>]>([
  ['fails', () => Promise.reject(new Error('the directory is out of reach'))],
  ['hangs', () => new Promise(() => {})],
])('calls go on by the last configuration while the directory %s', async (_, snapshot) => {
  const answers = vi.spyOn(DirectoryObject.prototype, 'snapshot').mockImplementation(snapshot);
  mocks.push(answers);
  passTime(STALE_MS);
  const answer = await chat('/rejects/v1/chat/completions', 'alone');
  expect(answer.status).toBe(200);
  expect(answer.headers.get('headgate-groups')).toBe('rejects');
  await answer.text();
  await until(() => expect(answers).toHaveBeenCalled());
});

it('a call is refused with 503 in its dialect after some tries, if the group says so', async () => {
  const asks = breakGroups();
  const { total } = await strict.stats();
  const refused = await chat('/rejects/v1/chat/completions', 'refused');
  expect(refused.status).toBe(503);
  expect(refused.headers.get('headgate-reason')).toBe('limiter_unavailable');
  expect(refused.headers.get('retry-after')).toBe('1');
  const again = await chat('/rejects/v1/chat/completions', 'comes back');
  expect(again.headers.get('retry-after')).toBe('2');
  await again.body?.cancel();
  expect(await refused.json()).toMatchObject({
    error: { type: 'server_error', code: 'limiter_unavailable' },
  });
  expect(asks.mock.calls.length).toBeGreaterThan(3);
  expect((await strict.stats()).total).toBe(total);
});

it('an object that is out of reach for a moment costs a moment', async () => {
  mocks.push(
    vi
      .spyOn(GroupObject.prototype, 'acquire')
      .mockRejectedValueOnce(new Error('Network connection lost.')),
  );
  const answer = await chat('/rejects/v1/chat/completions', 'a moment');
  expect(answer.status).toBe(200);
  await answer.text();
});

it('where a group allows it, so many calls at once pass without a slot, counted and shown', async () => {
  breakGroups();
  await strict.configure({ silentAfterChunks: 1 });
  const path = '/passes/v1/chat/completions';
  const passing = [open(path, 'one'), open(path, 'two')];
  await until(async () => expect((await strict.stats()).inFlight).toBe(2));
  const refused = await chat(path, 'three');
  expect(refused.status).toBe(503);
  await refused.body?.cancel();
  expect((await strict.stats()).inFlight).toBe(2);
  await strict.resume();
  for (const { response, end } of passing) {
    const { status, headers } = await response;
    expect(status).toBe(200);
    expect(headers.get('headgate-groups')).toBe('passes');
    expect(headers.has('headgate-lease')).toBe(false);
    expect(await end).toBe('done');
  }
  // Once these have ended, others may pass.
  await strict.configure({ silentAfterChunks: null });
  await until(async () => {
    const next = await chat(path, 'four');
    expect(next.status).toBe(200);
    await next.text();
  });
  mend();
  const limited = await chat(path, 'five');
  expect(limited.headers.get('headgate-lease')).toMatch(/\.1$/);
  await limited.text();
  await untilStatus('passes', { passed_unlimited_total: 3, in_use: 0 });
  await until(async () => {
    const { json } = await admin('GET', '/groups/passes/status');
    expect(json.passed_unlimited_total).toBe(3);
    expect(Date.parse(json.passed_unlimited_at)).toBeGreaterThan(Date.now() - 60_000);
  });
});

it('a caller that leaves while it passes without a slot makes room for another', async () => {
  breakGroups();
  await strict.configure({ silentAfterChunks: 1 });
  const path = '/passes/v1/chat/completions';
  const passing = [open(path, 'one'), open(path, 'two')];
  await until(async () => expect((await strict.stats()).inFlight).toBe(2));
  for (const one of passing) one.leave();
  await until(async () => expect((await strict.stats()).inFlight).toBe(0));
  await strict.configure({ silentAfterChunks: null });
  await until(async () => {
    const next = await chat(path, 'three');
    expect(next.status).toBe(200);
    await next.text();
  });
  mend();
  expect(await pool('passes').status()).toMatchObject({ in_use: 0, queued: 0 });
});
