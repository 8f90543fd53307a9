// Keys of callers, from the admin API to calls that use them: made, rotated, expired, taken back, and
// held to the groups that they may use.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure, env, open, until } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';
import { ask, CHAT, configureFor, makeKey, read } from './keys-scene.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('admin-keys', { chunks: 2, chunkDelayMs: 5 });
});

beforeEach(() => configureFor(strict));

describe('a key', () => {
  it('is shown once, opens, and is nowhere to be found afterwards', async () => {
    const { total } = await strict.stats();
    const secret = await makeKey({ note: 'search team' });
    expect(secret).toMatch(/^hg_[0-9a-f]{48}$/);
    expect((await ask(secret)).status).toBe(200);
    expect((await strict.stats()).total).toBe(total + 1);
    const shown = [
      await asAdmin('GET /keys'),
      await asAdmin('GET /keys/{id}', { params: { id: 'team' } }),
      await asAdmin('GET /config'),
      await asAdmin('GET /audit'),
      await directoryOf(env).snapshot(null),
    ];
    expect(JSON.stringify(shown)).not.toContain(secret.slice(3));
    const [list, one, , audit] = shown;
    expect(JSON.stringify([list, one, audit])).not.toMatch(/sha256:/);
    expect(bodyOf(await asAdmin('GET /keys/{id}', { params: { id: 'team' } }))).toMatchObject({
      id: 'team',
      note: 'search team',
      state: 'active',
      previous_expires_at: null,
      revoked_at: null,
    });
  });

  it('cannot be made twice, nor renamed', async () => {
    await makeKey();
    expect((await asAdmin('POST /keys', { body: { id: 'team' } })).status).toBe(409);
    const renamed = await asAdmin('PATCH /keys/{id}', {
      params: { id: 'team' },
      body: { id: 'new' },
    });
    expect(renamed).toMatchObject({ status: 422, problem: { errors: [{ path: 'id' }] } });
  });

  it.each<[string, object, string]>([
    ['a hash', { hash: `sha256:${'1'.repeat(64)}` }, 'hash'],
    ['a lane that is none', { lane_max: 'best' }, 'lane_max'],
    ['a date that is none', { expires_at: 'tomorrow' }, 'expires_at'],
    ['a limit that is none', { limits: { rpm: -1 } }, 'limits.rpm'],
    ['a limit of groups only', { limits: { burst: 0.5 } }, 'limits.burst'],
  ])('is not given %s', async (_what, fields, path) => {
    const made = await asAdmin('POST /keys', { body: { id: 'team', ...fields } });
    expect(made).toMatchObject({ status: 422, problem: { errors: [{ path }] } });
    await makeKey();
    const patched = await asAdmin('PATCH /keys/{id}', {
      params: { id: 'team' },
      body: { ...fields },
    });
    expect(patched).toMatchObject({ status: 422, problem: { errors: [{ path }] } });
  });

  it('stops everywhere soon after it is revoked, and leaves Headgate closed', async () => {
    const secret = await makeKey();
    expect((await ask(secret)).status).toBe(200);
    bodyOf(await asAdmin('POST /keys/{id}/revoke', { params: { id: 'team' } }));
    await until(async () => expect((await ask(secret)).status).not.toBe(200));
    const after = await ask(secret);
    expect(after).toMatchObject({ status: 401, reason: 'key_invalid' });
    expect(after.text).toContain('revoked');
    const again = bodyOf(await asAdmin('POST /keys/{id}/revoke', { params: { id: 'team' } }));
    expect(again.key.state).toBe('revoked');
    expect((await asAdmin('POST /keys/{id}/rotate', { params: { id: 'team' } })).status).toBe(409);
    const unkeyed = await call(CHAT, { json: {}, headers: { authorization: 'Bearer sk-mine' } });
    expect([unkeyed.status, unkeyed.headers.get('headgate-reason')]).toEqual([401, 'key_missing']);
  });

  it('that is revoked takes its waiting calls out of the queues, and no others', async () => {
    const mine = await makeKey();
    const yours = await makeKey({}, 'yours');
    const { version } = bodyOf(
      await asAdmin('PATCH /groups/{name}', {
        params: { name: 'everything' },
        body: { limits: { max_concurrency: 0 } },
      }),
    );
    await read(version);
    const waits = ask(mine);
    const stays = open(CHAT, 'stays', { headers: { 'headgate-key': yours } });
    const waiters = async () =>
      bodyOf(await asAdmin('GET /groups/{name}/waiters', { params: { name: 'everything' } }))
        .waiters;
    await until(async () => expect(await waiters()).toHaveLength(2));
    const revoked = bodyOf(await asAdmin('POST /keys/{id}/revoke', { params: { id: 'team' } }));
    expect(revoked.waiters_cancelled).toBe(1);
    expect(await waits).toMatchObject({ status: 409, reason: 'cancelled' });
    expect((await waiters()).map(({ tenant }) => tenant)).toEqual(['yours']);
    stays.leave();
    await until(async () => expect(await waiters()).toEqual([]));
    await stays.end;
  });

  it('opens on beside the new one for a while when it is rotated, and not beside the next', async () => {
    const first = await makeKey();
    const rotate = async (grace_ms: number) => {
      const body = bodyOf(
        await asAdmin('POST /keys/{id}/rotate', { params: { id: 'team' }, body: { grace_ms } }),
      );
      await read(body.version);
      return body;
    };
    const second = await rotate(60_000);
    expect(second.key.previous_expires_at).not.toBeNull();
    expect([(await ask(first)).status, (await ask(second.secret)).status]).toEqual([200, 200]);
    const third = await rotate(0);
    expect(third.key.previous_expires_at).toBeNull();
    for (const old of [first, second.secret]) {
      expect(await ask(old)).toMatchObject({ status: 401, reason: 'key_invalid' });
    }
    expect((await ask(third.secret)).status).toBe(200);
    const { entries } = bodyOf(await asAdmin('GET /audit', { query: { limit: 1 } }));
    expect(entries[0]?.action).toBe('key team: rotate');
    expect(JSON.stringify(entries)).toContain('(hidden)');
    expect(JSON.stringify(entries)).not.toContain('sha256');
  });

  it('expires', async () => {
    const soon = new Date(Date.now() + 700).toISOString();
    const secret = await makeKey({ expires_at: soon });
    expect((await ask(secret)).status).toBe(200);
    await until(async () => {
      expect(await ask(secret)).toMatchObject({ status: 401, reason: 'key_invalid' });
    });
    expect(bodyOf(await asAdmin('GET /keys/{id}', { params: { id: 'team' } })).state).toBe(
      'expired',
    );
  });

  it('that is the only one is revoked and not deleted, for without any Headgate is open', async () => {
    await configure({ keys: [{ id: 'only', hash: `sha256:${'1'.repeat(64)}` }] });
    const refused = await asAdmin('DELETE /keys/{id}', { params: { id: 'only' } });
    expect(refused).toMatchObject({ status: 409 });
    await makeKey();
    expect((await asAdmin('DELETE /keys/{id}', { params: { id: 'only' } })).status).toBe(200);
  });
});

describe('a key that lists groups', () => {
  it.each<[string, string[], string, number]>([
    ['its group', ['mini'], CHAT, 200],
    ['its group by a glob', ['mi*'], CHAT, 200],
    ['another group', ['large'], CHAT, 403],
    ['the automatic group of another upstream', ['mini'], '/other/v1/chat/completions', 403],
    ['automatic groups', ['auto:*'], '/other/v1/chat/completions', 200],
    ['the group by the unified route', ['mini'], '/v1/chat/completions', 200],
  ])('is let into %s, or refused: %j %s %i', async (_what, groups, path, status) => {
    const secret = await makeKey({ groups });
    const { total } = await strict.stats();
    const answer = await ask(secret, path);
    expect(answer).toMatchObject({ status });
    expect(answer.reason).toBe(status === 200 ? null : 'key_forbidden');
    expect((await strict.stats()).total - total).toBe(status === 200 ? 1 : 0);
  });

  it.each<[string, string, number]>([
    ['mini', '/wired/v1/files', 200],
    ['mini', '/other/v1/files', 403],
    ['auto:other', '/other/v1/files', 200],
  ])('%s takes calls without a slot to its upstreams only: %s %i', async (group, path, status) => {
    const secret = await makeKey({ groups: [group] });
    const response = await call(path, { headers: { 'headgate-key': secret } });
    await response.text();
    const reason = response.headers.get('headgate-reason');
    expect([response.status, reason]).toEqual([status, status === 403 ? 'key_forbidden' : null]);
  });
});

it('a key that lists groups does not spill to others', async () => {
  const [first, second] = [await strictScope('first'), await strictScope('second')];
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const limits = { max_concurrency: 1 };
  await configure({
    upstreams: [
      { id: 'first', base_url: first.url, auth },
      { id: 'second', base_url: second.url, auth },
    ],
    groups: [
      {
        name: 'first',
        match: { upstreams: ['first'] },
        limits,
        on_saturated: { spill_to: ['second'] },
      },
      { name: 'second', match: { upstreams: ['second'] }, limits },
    ],
  });
  const barred = await makeKey({ groups: ['first'] }, 'barred');
  const free = await makeKey({}, 'free');
  const path = '/first/v1/chat/completions';
  const headers = { 'headgate-key': free, 'x-strict-silent-after-chunks': '1' };
  const holder = open(path, 'holder', { headers });
  await until(async () => expect((await first.stats()).inFlight).toBe(1));
  expect((await ask(free, path)).groups).toBe('second');
  const waits = ask(barred, path);
  await until(async () => {
    const { waiters } = bodyOf(
      await asAdmin('GET /groups/{name}/waiters', { params: { name: 'first' } }),
    );
    expect(waiters.map(({ tenant }) => tenant)).toEqual(['barred']);
  });
  await first.resume();
  expect(await waits).toMatchObject({ status: 200, groups: 'first' });
  await holder.end;
  expect((await second.stats()).total).toBe(1);
});
