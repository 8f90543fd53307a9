// Keys of callers, from the admin API to calls that use them: made, limited, rotated, expired, taken back.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AdminRequest } from '../../../src/contract/admin/client.ts';
import { directoryOf } from '../../../src/contract/env.ts';
import { routingTable } from '../../../src/http/snapshots.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, chat, configure, env, open, until } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('admin-keys', { chunks: 2, chunkDelayMs: 5 });
});

beforeEach(async () => {
  await configure({
    upstreams: [
      {
        id: 'wired',
        base_url: strict.url,
        models: ['gpt-*'],
        prices: { 'gpt-4o-mini': { input: 1, output: 1 } },
      },
      { id: 'openai', enabled: false },
      { id: 'other', base_url: strict.url },
    ],
    groups: [
      { name: 'mini', match: { models: ['gpt-4o-mini'], upstreams: ['wired'] } },
      { name: 'everything', limits: { max_concurrency: 50 } },
    ],
    // Another one, so that Headgate stays closed whatever becomes of the one that is tested.
    keys: [{ id: 'other', hash: `sha256:${'0'.repeat(64)}` }],
  });
});

type NewKey = Omit<AdminRequest<'createKey'>['body'], 'id'>;

/** This isolate's Worker reads the directory at once, and not within seconds. */
async function read(version: number): Promise<void> {
  await routingTable(env, { waitUntil: () => {} }, version);
}

async function makeKey(fields: NewKey = {}, id = 'team'): Promise<string> {
  const { secret, version } = bodyOf(await asAdmin('createKey', { body: { id, ...fields } }));
  await read(version);
  return secret;
}

const CHAT = '/wired/v1/chat/completions';

async function ask(secret: string, path = CHAT, headers: Record<string, string> = {}) {
  const response = await chat(path, 'keys', { headers: { 'headgate-key': secret, ...headers } });
  const text = await response.text();
  const { status } = response;
  return {
    status,
    reason: response.headers.get('headgate-reason'),
    groups: response.headers.get('headgate-groups'),
    text,
  };
}

describe('a key', () => {
  it('is shown once, opens, and is nowhere to be found afterwards', async () => {
    const { total } = await strict.stats();
    const secret = await makeKey({ note: 'search team' });
    expect(secret).toMatch(/^hg_[0-9a-f]{48}$/);
    expect((await ask(secret)).status).toBe(200);
    expect((await strict.stats()).total).toBe(total + 1);
    const shown = [
      await asAdmin('listKeys'),
      await asAdmin('getKey', { params: { id: 'team' } }),
      await asAdmin('getConfig'),
      await asAdmin('listAudit'),
      await directoryOf(env).snapshot(null),
    ];
    expect(JSON.stringify(shown)).not.toContain(secret.slice(3));
    const [list, one, , audit] = shown;
    expect(JSON.stringify([list, one, audit])).not.toMatch(/sha256:/);
    expect(bodyOf(await asAdmin('getKey', { params: { id: 'team' } }))).toMatchObject({
      id: 'team',
      note: 'search team',
      state: 'active',
      previous_expires_at: null,
      revoked_at: null,
    });
  });

  it('cannot be made twice, nor renamed', async () => {
    await makeKey();
    expect((await asAdmin('createKey', { body: { id: 'team' } })).status).toBe(409);
    const renamed = await asAdmin('patchKey', { params: { id: 'team' }, body: { id: 'new' } });
    expect(renamed).toMatchObject({ status: 422, problem: { errors: [{ path: 'id' }] } });
  });

  it.each<[string, object, string]>([
    ['a hash', { hash: `sha256:${'1'.repeat(64)}` }, 'hash'],
    ['a lane that is none', { lane_max: 'best' }, 'lane_max'],
    ['a date that is none', { expires_at: 'tomorrow' }, 'expires_at'],
    ['a limit that is none', { limits: { rpm: -1 } }, 'limits.rpm'],
    ['a limit of groups only', { limits: { burst: 0.5 } }, 'limits.burst'],
  ])('is not given %s', async (_what, fields, path) => {
    const made = await asAdmin('createKey', { body: { id: 'team', ...fields } });
    expect(made).toMatchObject({ status: 422, problem: { errors: [{ path }] } });
    await makeKey();
    const patched = await asAdmin('patchKey', { params: { id: 'team' }, body: { ...fields } });
    expect(patched).toMatchObject({ status: 422, problem: { errors: [{ path }] } });
  });

  it('stops within seconds everywhere once it is revoked, and leaves Headgate closed', async () => {
    const secret = await makeKey();
    expect((await ask(secret)).status).toBe(200);
    bodyOf(await asAdmin('revokeKey', { params: { id: 'team' } }));
    const revokedAt = Date.now();
    while ((await ask(secret)).status === 200) {
      expect(Date.now() - revokedAt).toBeLessThan(5_000);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const after = await ask(secret);
    expect(after).toMatchObject({ status: 401, reason: 'key_invalid' });
    expect(after.text).toContain('revoked');
    const again = bodyOf(await asAdmin('revokeKey', { params: { id: 'team' } }));
    expect(again.key.state).toBe('revoked');
    expect((await asAdmin('rotateKey', { params: { id: 'team' } })).status).toBe(409);
    const unkeyed = await call(CHAT, { json: {}, headers: { authorization: 'Bearer sk-mine' } });
    expect([unkeyed.status, unkeyed.headers.get('headgate-reason')]).toEqual([401, 'key_missing']);
  });

  it('that is revoked takes its waiting calls out of the queues, and no others', async () => {
    const mine = await makeKey();
    const yours = await makeKey({}, 'yours');
    const { version } = bodyOf(
      await asAdmin('patchGroup', {
        params: { name: 'everything' },
        body: { limits: { max_concurrency: 0 } },
      }),
    );
    await read(version);
    const waits = ask(mine);
    const stays = open(CHAT, 'stays', { headers: { 'headgate-key': yours } });
    const waiters = async () =>
      bodyOf(await asAdmin('listWaiters', { params: { name: 'everything' } })).waiters;
    await until(async () => expect(await waiters()).toHaveLength(2));
    const revoked = bodyOf(await asAdmin('revokeKey', { params: { id: 'team' } }));
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
        await asAdmin('rotateKey', { params: { id: 'team' }, body: { grace_ms } }),
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
    const { entries } = bodyOf(await asAdmin('listAudit', { query: { limit: 1 } }));
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
    expect(bodyOf(await asAdmin('getKey', { params: { id: 'team' } })).state).toBe('expired');
  });

  it('that is the only one is revoked and not deleted, for without any Headgate is open', async () => {
    await configure({ keys: [{ id: 'only', hash: `sha256:${'1'.repeat(64)}` }] });
    const refused = await asAdmin('deleteKey', { params: { id: 'only' } });
    expect(refused).toMatchObject({ status: 409 });
    await makeKey();
    expect((await asAdmin('deleteKey', { params: { id: 'only' } })).status).toBe(200);
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
    const { waiters } = bodyOf(await asAdmin('listWaiters', { params: { name: 'first' } }));
    expect(waiters.map(({ tenant }) => tenant)).toEqual(['barred']);
  });
  await first.resume();
  expect(await waits).toMatchObject({ status: 200, groups: 'first' });
  await holder.end;
  expect((await second.stats()).total).toBe(1);
});

describe('the limits of a key', () => {
  it('make a group of its own, which is gone with them', async () => {
    const secret = await makeKey({ limits: { max_concurrency: 3 } });
    expect((await ask(secret)).groups).toContain('key:team');
    const status = bodyOf(await asAdmin('getGroupStatus', { params: { name: 'key:team' } }));
    expect(status).toMatchObject({ kind: 'key', limit: { configured: 3, effective: 3 } });
    expect((await asAdmin('patchGroup', { params: { name: 'key:team' }, body: {} })).status).toBe(
      404,
    );
    const { version } = bodyOf(
      await asAdmin('patchKey', { params: { id: 'team' }, body: { limits: null } }),
    );
    await read(version);
    expect((await ask(secret)).groups).not.toContain('key:team');
  });

  it('hold over all groups that it calls', async () => {
    const secret = await makeKey({ limits: { max_concurrency: 1 } });
    const scope = await strict.stats();
    const calls = Array.from({ length: 6 }, (_, at) =>
      ask(secret, at % 2 === 0 ? CHAT : '/other/v1/chat/completions'),
    );
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(6).fill(200));
    const { total, peak } = await strict.stats();
    expect(total - scope.total).toBe(6);
    expect(peak).toBe(1);
  });

  it('refuse what is over its rate and its budget', async () => {
    const slow = await makeKey({ limits: { rpm: 1 } });
    expect((await ask(slow)).status).toBe(200);
    expect((await ask(slow, CHAT, { 'headgate-max-wait': '0' })).status).toBe(429);
    const poor = await makeKey({ limits: { budget_usd: { per_day: 0 } } }, 'poor');
    expect(await ask(poor)).toMatchObject({ status: 402, reason: 'budget_exhausted' });
  });

  it('change at once, and nobody else waits for them', async () => {
    const secret = await makeKey({ limits: { max_concurrency: 0 } });
    const free = await makeKey({}, 'free');
    const waits = ask(secret);
    await until(async () => {
      const { waiters } = bodyOf(await asAdmin('listWaiters', { params: { name: 'key:team' } }));
      expect(waiters).toHaveLength(1);
    });
    expect((await ask(free)).status).toBe(200);
    bodyOf(
      await asAdmin('patchKey', {
        params: { id: 'team' },
        body: { limits: { max_concurrency: 1 } },
      }),
    );
    expect((await waits).status).toBe(200);
  });
});

it('the weight of a key holds in every configured group that names none for it', async () => {
  await makeKey({ weight: 3 });
  bodyOf(
    await asAdmin('patchGroup', {
      params: { name: 'mini' },
      body: { fairness: { weights: { team: 5 } } },
    }),
  );
  const weights = async (name: string) => {
    const { config } = await directoryOf(env).definition(name);
    return JSON.parse(config ?? '{}').fairness.weights;
  };
  expect(await weights('everything')).toEqual({ team: 3 });
  expect(await weights('mini')).toEqual({ team: 5 });
  expect(
    bodyOf(await asAdmin('getGroup', { params: { name: 'everything' } })).fairness.weights,
  ).toEqual({});
});
