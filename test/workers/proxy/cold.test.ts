// An isolate that begins reads the configuration from the copy that the directory writes at each change, and asks the
// directory where there is none.
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { runInDurableObject } from 'cloudflare:test';
import { directoryOf, type Env, type KeyValueStore } from '../../../src/env.ts';
import { storeSnapshot, storedSnapshot } from '../../../src/config/stored-snapshot.ts';
import type { Snapshot } from '../../../src/contract/rpc/directory-rpc.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { env, until } from '../support/worker.ts';
import { startIsolate, writeElsewhere } from './isolate.ts';

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

const copy = (): Promise<Snapshot | null> => storedSnapshot({ ...env, SNAPSHOTS: store } as Env);

const untilCopied = (version: number): Promise<void> =>
  until(async () => expect((await copy())?.version).toBe(version));

/** Waits until every listed pool was told of a version. */
function untilAllTold(version: number): Promise<void> {
  return until(() =>
    runInDurableObject(directoryOf(env) as never, (_instance, { storage }: DurableObjectState) => {
      const { told } = storage.sql
        .exec<{ told: number }>('SELECT MIN(told) AS told FROM pools')
        .one();
      expect(told).toBe(version);
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
  await untilAllTold(newer);
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

it('a copy of an older release gets the defaults of fields that are newer', async () => {
  const snapshot = (await directoryOf(env).snapshot(null)) as Snapshot;
  const older = { ...snapshot, config: { groups: [{ name: 'old' }] } } as unknown as Snapshot;
  await storeSnapshot({ ...env, SNAPSHOTS: store } as Env, older);
  expect((await copy())?.config.groups[0]?.limits).toMatchObject({
    max_weight: expect.any(Number),
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
