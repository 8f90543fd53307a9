// An isolate that begins reads the configuration from the copy that the directory writes at each change, and asks the
// directory where there is none, or where the store takes long. By a copy that the directory has never confirmed go only calls
// that ask a pool.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runInDurableObject } from 'cloudflare:test';
import { directoryOf, type Env, type KeyValueStore } from '../../../src/env.ts';
import { storedSnapshot } from '../../../src/config/snapshots.ts';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import type { ConfigSnapshot } from '../../../src/contract/rpc/directory-rpc.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime, withoutLongTimers } from '../support/time.ts';
import { env, until } from '../support/worker.ts';
import { startIsolate, writeElsewhere, type ProxyIsolate } from './isolate.ts';

const CHAT = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'cold' }] };
const PATH = '/first/v1/chat/completions';

/** A store in memory, which counts. */
class Store implements KeyValueStore {
  readonly entries = new Map<string, string>();
  writes = 0;
  fails = false;

  get(key: string): Promise<unknown> {
    if (this.fails) return Promise.reject(new Error('the store is out of reach'));
    return Promise.resolve(JSON.parse(this.entries.get(key) ?? 'null'));
  }

  put(key: string, value: string): Promise<void> {
    this.writes += 1;
    this.entries.set(key, value);
    return Promise.resolve();
  }
}

let strict: Strict;
let store: Store;

beforeAll(async () => {
  strict = await strictScope('cold', { chunks: 1 });
});

/** Gives the directory's object a store, or takes it away. */
async function give(more: Partial<Env>): Promise<void> {
  await runInDurableObject(directoryOf(env) as never, (instance: object) => {
    Object.assign((instance as { env: object }).env, more);
  });
}

beforeEach(async () => {
  store = new Store();
  await give({ SNAPSHOTS: store, JURISDICTION: '' });
});

const config = (more: object = {}): object => ({
  upstreams: [{ id: 'first', base_url: strict.url }],
  ...more,
});

const copy = (): Promise<ConfigSnapshot | null> =>
  storedSnapshot({ ...env, SNAPSHOTS: store } as Env);

const untilCopied = (version: number): Promise<void> =>
  until(async () => expect((await copy())?.version).toBe(version));

/** Waits until every listed pool was told of a version. */
function untilAllReported(version: number): Promise<void> {
  return until(() =>
    runInDurableObject(directoryOf(env) as never, (_instance, { storage }: DurableObjectState) => {
      const { told: reported } = storage.sql
        .exec<{ told: number }>('SELECT MIN(told) AS told FROM pools')
        .one();
      expect(reported).toBe(version);
    }),
  );
}

it('a change is written, without what no call goes by, and serves while the directory hangs', async () => {
  const webhook = { url: 'https://ops.example/hook', secret: 'WEBHOOK_TEST' };
  await untilCopied(await writeElsewhere(config({ webhook })));
  expect((await copy())?.config).toMatchObject({ webhook: null, admin_keys: [] });
  expect([...store.entries.values()].join()).not.toContain('ops.example');
  const isolate = await startIsolate(store);
  isolate.directory('hangs');
  expect((await isolate.send(PATH, CHAT)).status).toBe(200);
  // It is asked behind that, for a newer one.
  expect(isolate.asked()).toBe(1);
});

it('changes in quick succession are a write a second at the most, and the last one is in it', async () => {
  const startedAt = Date.now();
  let version = 0;
  for (let change = 0; change < 10; change += 1) {
    version = await writeElsewhere(config({ cors_origins: [`https://${change}.test`] }));
  }
  await untilCopied(version);
  const seconds = (Date.now() - startedAt) / 1_000;
  expect(store.writes).toBeLessThanOrEqual(2 + Math.ceil(seconds));
});

it('a copy that is older than what its pools were told of lets nothing pass', async () => {
  const version = await writeElsewhere(config());
  await untilCopied(version);
  const warm = await startIsolate(store);
  expect((await warm.send(PATH, CHAT)).status).toBe(200);
  await until(async () => expect(await directoryOf(env).pools()).not.toEqual([]));
  const old = new Map(store.entries);
  const keys = [{ id: 'team', hash: `sha256:${'0'.repeat(64)}` }];
  const newer = await writeElsewhere(config({ keys }));
  await untilCopied(newer);
  await untilAllReported(newer);
  passTime(60_000);
  for (const [key, value] of old) store.entries.set(key, value);
  const cold = await startIsolate(store);
  expect((await cold.send(PATH, CHAT)).status).toBe(401);
});

it.each<[string, (store: Store) => void]>([
  ['is missing', ({ entries }) => entries.clear()],
  ['cannot be read', (broken) => (broken.fails = true)],
])('a copy that %s: the directory is asked, and writes it anew', async (_, spoil) => {
  await untilCopied(await writeElsewhere(config({ cors_origins: [`https://${_.length}.test`] })));
  passTime(120_000);
  spoil(store);
  const { writes } = store;
  const isolate = await startIsolate(store);
  expect((await isolate.send(PATH, CHAT)).status).toBe(200);
  await until(() => expect(store.writes).toBe(writes + 1));
});

describe('a store that takes long', () => {
  const hanging: KeyValueStore = { get: () => new Promise(() => {}), put: () => Promise.resolve() };

  it('is not waited for: the directory is asked, once for all', async () => {
    await writeElsewhere(config());
    const isolate = await startIsolate(hanging);
    const calls = Array.from({ length: 5 }, () => isolate.send(PATH, CHAT));
    const answers = await Promise.all(calls);
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200));
    expect(isolate.asked()).toBe(1);
  });

  it('serves nevertheless where the directory takes longer', async () => {
    await untilCopied(await writeElsewhere(config()));
    const { promise: read, resolve } = Promise.withResolvers<unknown>();
    const isolate = await startIsolate({ ...hanging, get: () => read });
    isolate.directory('hangs');
    // Nobody who waits for it gives up.
    const timers = withoutLongTimers(500);
    const calls = Array.from({ length: 5 }, () => isolate.send(PATH, CHAT));
    await until(() => expect(isolate.asked()).toBe(1));
    resolve(await store.get('snapshot'));
    const answers = await Promise.all(calls);
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200));
    timers.mockRestore();
  });

  it('does not take back what the directory has said', async () => {
    const older = await writeElsewhere(config({ cors_origins: ['https://older.test'] }));
    await untilCopied(older);
    const snapshot = (await copy()) as ConfigSnapshot;
    const { promise: read, resolve } = Promise.withResolvers<unknown>();
    const isolate = await startIsolate({ ...hanging, get: () => read });
    expect((await isolate.send(PATH, CHAT)).status).toBe(200);
    isolate.directory('hangs');
    // Of a directory that is no more, say: its version is higher.
    const keys = [{ id: 'team', hash: `sha256:${'0'.repeat(64)}` }];
    const { config: of, version } = snapshot;
    resolve({ ...snapshot, version: version + 1, tag: 'other', config: { ...of, keys } });
    await read;
    expect((await isolate.send('/first/v1/models')).status).toBe(200);
    expect((await isolate.send(PATH, CHAT)).status).toBe(200);
  });
});

describe('while the directory hangs, with an old copy', () => {
  const SECRET = `hg_${'cold00'.repeat(6)}`;
  const KEY = { 'headgate-key': SECRET };
  const GROUPS = [
    { name: 'ours', match: { upstreams: ['first'] }, on_unavailable: { pass_with_limit_each: 2 } },
  ];

  /** Starts an isolate whose copy has a key that is revoked by now. */
  async function startWithOldCopy(): Promise<ProxyIsolate> {
    const key = { id: 'team', hash: await gatewayKeyHash(SECRET) };
    const old = await writeElsewhere(config({ groups: GROUPS, keys: [key] }));
    await untilCopied(old);
    const entries = new Map(store.entries);
    const revoked = { ...key, revoked_at: '2026-01-01T00:00:00Z' };
    await untilCopied(await writeElsewhere(config({ groups: GROUPS, keys: [revoked] })));
    passTime(60_000);
    for (const [name, value] of entries) store.entries.set(name, value);
    const isolate = await startIsolate(store);
    isolate.directory('hangs');
    return isolate;
  }

  const REASON = 'limiter_unavailable';
  const chat = { method: 'POST', body: JSON.stringify(CHAT) };
  const other = { 'headgate-key': `hg_${'other0'.repeat(6)}` };

  it.each<[string, string, RequestInit, string | null]>([
    ['an operation that takes no slot', '/first/v1/files', { method: 'POST', body: '{}' }, REASON],
    ['a list of models', '/v1/models', {}, REASON],
    ['a status', '/status', {}, null],
    ['a key that may be known by now', PATH, { ...chat, headers: other }, REASON],
  ])('%s is refused until it answers', async (_, path, init, reason) => {
    const isolate = await startWithOldCopy();
    const { total } = await strict.stats();
    const send = () => isolate.send(path, undefined, { headers: KEY, ...init });
    const refused = await send();
    expect([refused.status, refused.headers.get('headgate-reason')]).toEqual([503, reason]);
    isolate.directory('answers');
    // A question from before may hold it up for a second.
    await until(async () => expect((await send()).status).toBe(401));
    expect((await strict.stats()).total).toBe(total);
  });

  it('no call bypasses its group, which is out of reach', async () => {
    const isolate = await startWithOldCopy();
    isolate.losePools();
    const { total } = await strict.stats();
    const { status, headers } = await isolate.send(PATH, CHAT, { headers: KEY });
    expect([status, headers.get('headgate-reason')]).toEqual([503, REASON]);
    expect((await strict.stats()).total).toBe(total);
  });
});

it('with a jurisdiction nothing is written, nor read', async () => {
  await give({ JURISDICTION: 'eu' });
  const version = await writeElsewhere(config({ cors_origins: ['https://kept.test'] }));
  await directoryOf(env).snapshot(null, null);
  expect(store.writes).toBe(0);
  await give({ JURISDICTION: '' });
  await untilCopied(await writeElsewhere(config()));
  const of = { ...env, SNAPSHOTS: store, JURISDICTION: 'eu' } as Env;
  expect(await storedSnapshot(of)).toBeNull();
  expect(version).toBeGreaterThan(0);
});
