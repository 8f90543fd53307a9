// What a Worker lets pass whose copy of the configuration is a minute old, when something has been forbidden meanwhile: nothing.
// And what it does while the directory hangs: it serves without a wait, and nothing that a pool has been told not to.
import { abortAllDurableObjects } from 'cloudflare:test';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { acquireRequest } from '../../support/requests.ts';
import { poolOf } from '../../../src/routing/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { env, until } from '../support/worker.ts';
import { startIsolate, writeElsewhere, type ProxyIsolate } from './isolate.ts';

const MINUTE_MS = 60_000;
const SECRET = `hg_${'stale0'.repeat(6)}`;
const KEY = { 'headgate-key': SECRET };
const CHAT = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'stale' }] };
const PATH = '/first/v1/chat/completions';

let strict: Strict;
let isolate: ProxyIsolate;
let hash = '';

beforeAll(async () => {
  strict = await strictScope('stale', { chunks: 1 });
  hash = await gatewayKeyHash(SECRET);
});

beforeEach(async () => {
  isolate = await startIsolate();
  await strict.configure({ chunks: 1 });
});

const upstream = (id: string, more: object = {}): object => ({ id, base_url: strict.url, ...more });
const key = (more: object = {}): object => ({ id: 'team', hash, ...more });

/**
 * A configuration with an upstream, a group of it and a key, and with what is changed of that. The group has more slots than
 * may count as held after the reset that each new isolate begins with.
 */
const config = (more: object = {}): object => ({
  upstreams: [upstream('first')],
  groups: [{ name: 'ours', match: { upstreams: ['first'] }, limits: { max_concurrency: 100 } }],
  keys: [key()],
  ...more,
});

/** Has the pools of a call prove themselves, so that the directory tells them of changes. */
async function warmUp(path = PATH, body: object = CHAT): Promise<void> {
  expect((await isolate.send(path, body, { headers: KEY })).status).toBe(200);
  await until(async () => expect(await directoryOf(env).pools()).not.toEqual([]));
}

async function totalOf(): Promise<number> {
  return (await strict.stats()).total;
}

/** The version that the pool of the group has heard of. */
async function untilReported(version: number): Promise<void> {
  await until(async () => {
    const ours = poolOf(env, 'ours', null, null);
    const ticketId = crypto.randomUUID();
    const asked = await ours.acquire(
      acquireRequest('ours', ticketId, { configVersion: version - 1, wait: false, sliceMs: 1_000 }),
    );
    // A slot of nobody would be missing for as long as its lease lasts.
    await ours.cancel(ticketId);
    expect(asked.kind).toBe('moved');
  });
}

describe('a copy of a minute ago lets nothing pass', () => {
  const REVOKED = { revoked_at: '2026-01-01T00:00:00Z' };
  const drained = (name: string): object => ({
    name,
    match: { upstreams: ['first'] },
    draining: true,
  });
  const ours = { name: 'ours', match: { upstreams: ['first'] }, limits: { max_concurrency: 100 } };
  const others = [{ id: 'other', hash: `sha256:${'0'.repeat(64)}` }];

  it.each<[string, () => object, number, string]>([
    ['a key that was revoked', () => ({ keys: [key(REVOKED)] }), 401, 'key_invalid'],
    ['a key that was deleted', () => ({ keys: others }), 401, 'key_invalid'],
    ['a key for other groups', () => ({ keys: [key({ groups: ['b'] })] }), 403, 'key_forbidden'],
    ['no upstream', () => ({ upstreams: [], groups: [] }), 404, 'upstream_unknown'],
    ['a group that is drained', () => ({ groups: [drained('ours')] }), 503, 'draining'],
    ['a group on top', () => ({ groups: [ours, drained('on-top')] }), 503, 'draining'],
    ['a deleted group', () => ({ groups: [drained('new')] }), 503, 'draining'],
  ])('%s', async (_, change, status, reason) => {
    await writeElsewhere(config());
    await warmUp();
    passTime(MINUTE_MS);
    const before = await totalOf();
    await untilReported(await writeElsewhere(config(change())));
    const answer = await isolate.send(PATH, CHAT, { headers: KEY });
    expect([answer.status, answer.headers.get('headgate-reason')]).toEqual([status, reason]);
    expect(await totalOf()).toBe(before);
  });

  it('and a pool that had no success yet, which the directory does not tell', async () => {
    const of = { upstreams: [upstream('unproved')], groups: [] };
    const path = '/unproved/v1/chat/completions';
    await writeElsewhere(config(of));
    await strict.failNext('quota');
    expect((await isolate.send(path, CHAT, { headers: KEY })).status).toBe(429);
    passTime(MINUTE_MS);
    const before = await totalOf();
    await writeElsewhere(config({ ...of, keys: [key(REVOKED)] }));
    // The first one has the directory read, and the others come while it is.
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => isolate.send(path, CHAT, { headers: KEY })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(401));
    expect(await totalOf()).toBe(before);
  });

  it('also after resets of everything', async () => {
    await writeElsewhere(config());
    await warmUp();
    passTime(MINUTE_MS);
    await untilReported(await writeElsewhere(config({ keys: [key({ groups: ['other'] })] })));
    await abortAllDurableObjects();
    expect((await isolate.send(PATH, CHAT, { headers: KEY })).status).toBe(403);
  });

  it('a model goes where it is served now', async () => {
    const two = (first: string[], second: string[]): object => ({
      ...config({ groups: [] }),
      upstreams: [upstream('first', { models: first }), upstream('second', { models: second })],
    });
    await writeElsewhere(two(['mine-*'], []));
    const body = { ...CHAT, model: 'mine-1' };
    await warmUp('/v1/chat/completions', body);
    passTime(MINUTE_MS);
    await writeElsewhere(two([], ['mine-*']));
    await until(async () => {
      const { headers } = await isolate.send('/v1/chat/completions', body, { headers: KEY });
      expect(headers.get('headgate-groups')).toBe('auto:second');
    });
  });

  it.each<[string, string, RequestInit]>([
    ['a list of models', '/v1/models', {}],
    ['an operation that takes no slot', '/first/v1/models', {}],
    ['one with a body', '/first/v1/moderations', { method: 'POST', body: '{}' }],
    ['a status', '/status', {}],
  ])('%s, of which no pool is asked', async (_, path, init) => {
    await writeElsewhere(config());
    await warmUp();
    passTime(MINUTE_MS);
    await writeElsewhere(config({ keys: [key(REVOKED)] }));
    expect((await isolate.send(path, undefined, { ...init, headers: KEY })).status).toBe(401);
  });

  it('a browser of an origin that was taken out', async () => {
    const origin = { origin: 'https://app.test', ...KEY };
    await writeElsewhere(config({ cors_origins: ['https://app.test'] }));
    await warmUp();
    const allowed = async (init: RequestInit, body?: object): Promise<string | null> =>
      (await isolate.send(PATH, body, init)).headers.get('access-control-allow-origin');
    expect(await allowed({ headers: origin }, CHAT)).toBe('https://app.test');
    passTime(MINUTE_MS);
    await untilReported(await writeElsewhere(config()));
    const preflight = { ...origin, 'access-control-request-method': 'POST' };
    expect(await allowed({ method: 'OPTIONS', headers: preflight })).toBeNull();
    passTime(MINUTE_MS);
    await untilReported(await writeElsewhere(config({ cors_origins: ['https://app.test'] })));
    expect(await allowed({ headers: origin }, CHAT)).toBe('https://app.test');
    passTime(MINUTE_MS);
    await untilReported(await writeElsewhere(config()));
    expect(await allowed({ headers: origin }, CHAT)).toBeNull();
  });

  it('a call that would bypass its group because that is out of reach', async () => {
    const groups = [
      {
        name: 'ours',
        match: { upstreams: ['first'] },
        on_unavailable: { pass_with_limit_each: 2 },
      },
    ];
    await writeElsewhere(config({ groups }));
    await warmUp();
    passTime(MINUTE_MS);
    isolate.losePools();
    const before = await totalOf();
    const passed = await isolate.send(PATH, CHAT, { headers: KEY });
    expect([passed.status, await totalOf()]).toEqual([200, before + 1]);
    passTime(MINUTE_MS);
    await writeElsewhere(config({ groups, keys: [key(REVOKED)] }));
    expect((await isolate.send(PATH, CHAT, { headers: KEY })).status).toBe(401);
    expect(await totalOf()).toBe(before + 1);
  });

  it('a stream whose answer has begun with comments', async () => {
    const groups = [
      { name: 'ours', match: { upstreams: ['first'] }, queue: { keepalive: { after_ms: 0 } } },
    ];
    await writeElsewhere(config({ groups }));
    await warmUp();
    passTime(MINUTE_MS);
    const before = await totalOf();
    const revoked = { keys: [key(REVOKED)] };
    await untilReported(await writeElsewhere(config({ groups, ...revoked })));
    const answer = await isolate.send(PATH, { ...CHAT, stream: true }, { headers: KEY });
    expect(answer.text).toContain('key_invalid');
    expect(await totalOf()).toBe(before);
  });

  it('and refuses nothing that is allowed by now', async () => {
    await writeElsewhere(config({ keys: [key({ groups: ['other'] })] }));
    expect((await isolate.send(PATH, CHAT, { headers: KEY })).status).toBe(403);
    passTime(MINUTE_MS);
    await writeElsewhere(config());
    const first = await isolate.send(PATH, CHAT, { headers: KEY });
    expect(first.status).toBe(200);
  });

  it('nor for a price that is told by now', async () => {
    const groups = [
      { name: 'ours', match: { upstreams: ['first'] }, limits: { budget_usd: { per_day: 100 } } },
    ];
    const body = { ...CHAT, model: 'unheard-of' };
    const priced = (prices: object) => [upstream('first', { prices })];
    await writeElsewhere(config({ groups, upstreams: priced({ other: { input: 1, output: 1 } }) }));
    const refused = await isolate.send(PATH, body, { headers: KEY });
    expect(refused.headers.get('headgate-reason')).toBe('price_unknown');
    passTime(MINUTE_MS);
    const known = { 'unheard-of': { input: 1, output: 1 } };
    await writeElsewhere(config({ groups, upstreams: priced(known) }));
    expect((await isolate.send(PATH, body, { headers: KEY })).status).toBe(200);
  });

  it('nor where its group is out of reach, and may be bypassed by now', async () => {
    const group = { name: 'ours', match: { upstreams: ['first'] } };
    await writeElsewhere(config({ groups: [group] }));
    await warmUp();
    passTime(MINUTE_MS);
    isolate.losePools();
    const passes = { ...group, on_unavailable: { pass_with_limit_each: 2 } };
    await writeElsewhere(config({ groups: [passes] }));
    expect((await isolate.send(PATH, CHAT, { headers: KEY })).status).toBe(200);
  });
});

describe('while the directory hangs', () => {
  it('calls are served by a copy of minutes, and none waits for it', async () => {
    await writeElsewhere(config());
    await warmUp();
    isolate.directory('hangs');
    const before = isolate.waited();
    for (let age = 0; age < 4; age += 1) {
      passTime(MINUTE_MS);
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => isolate.send(PATH, CHAT, { headers: KEY })),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200));
    }
    expect(isolate.waited()).toBe(before);
  });

  it('one question at a time is put to it behind them', async () => {
    await writeElsewhere(config({ groups: [] }));
    await warmUp();
    isolate.directory('hangs');
    passTime(MINUTE_MS);
    const before = isolate.asked();
    for (let call = 0; call < 4; call += 1) {
      expect((await isolate.send(PATH, CHAT, { headers: KEY })).status).toBe(200);
      passTime(1_100);
    }
    expect(isolate.asked() - before).toBe(1);
  });

  it('nothing goes by that copy once a pool was told of a newer one', async () => {
    await writeElsewhere(config());
    await warmUp();
    passTime(MINUTE_MS);
    isolate.directory('hangs');
    const before = await totalOf();
    await untilReported(await writeElsewhere(config({ cors_origins: ['https://changed.test'] })));
    const headers = { ...KEY, 'headgate-max-wait': '0' };
    const refused = await isolate.send(PATH, CHAT, { headers });
    expect([refused.status, refused.headers.get('headgate-reason')]).toEqual([
      503,
      'limiter_unavailable',
    ]);
    expect(await totalOf()).toBe(before);
    // One that may wait is served when the directory is back.
    const waiting = isolate.send(PATH, CHAT, { headers: KEY });
    await until(() => expect(isolate.waited()).toBeGreaterThan(0));
    isolate.directory('answers');
    expect((await waiting).status).toBe(200);
  });

  it('a call that waits for a newer copy has nobody else wait again and again', async () => {
    await writeElsewhere(config());
    await warmUp();
    passTime(MINUTE_MS);
    isolate.directory('hangs');
    await untilReported(await writeElsewhere(config({ cors_origins: ['https://changed.test'] })));
    const before = isolate.asked();
    const waiting = isolate.send(PATH, CHAT, { headers: KEY });
    // By the third question it has waited in vain, and waits once more.
    await until(() => expect(isolate.asked()).toBe(before + 3));
    // No other wait would end while the clock stands.
    vi.spyOn(Date, 'now').mockReturnValue(Date.now());
    expect((await isolate.send('/v1/models', undefined, { headers: KEY })).status).toBe(200);
    passTime(0);
    isolate.directory('answers');
    expect((await waiting).status).toBe(200);
  });
});

it('calls that come together ask the directory once', async () => {
  await writeElsewhere(config());
  await warmUp();
  const together = async (): Promise<number> => {
    const before = isolate.asked();
    const calls = Array.from({ length: 20 }, () => isolate.send(PATH, CHAT, { headers: KEY }));
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    return isolate.asked() - before;
  };
  passTime(MINUTE_MS);
  expect(await together()).toBe(1);
  passTime(10 * MINUTE_MS);
  expect(await together()).toBe(1);
  await untilReported(await writeElsewhere(config({ cors_origins: ['https://changed.test'] })));
  expect(await together()).toBe(1);
});
