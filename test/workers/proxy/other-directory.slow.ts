// A directory that does not know what pools, isolates and the copy for new isolates remember: it was restored, or is a new
// one. Its versions are lower than theirs, and it is right.
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { storedSnapshot } from '../../../src/config/snapshots.ts';
import { directoryOf, type Env, type KeyValueStore } from '../../../src/env.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { define, pool } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { env, until } from '../support/worker.ts';
import { startIsolate, writeElsewhere, type ProxyIsolate } from './isolate.ts';

const CHAT = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'restored' }] };
const PATH = '/first/v1/chat/completions';
const LONG_MS = 10_000;

/** Gateway keys: nobody gets in without one. */
const KEYS = [{ id: 'team', hash: `sha256:${'0'.repeat(64)}` }];

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('other-directory', { chunks: 1 });
});

const config = (more: object = {}): object => ({
  upstreams: [{ id: 'first', base_url: strict.url }],
  groups: [{ name: 'ours', match: { upstreams: ['first'] }, limits: { max_concurrency: 5 } }],
  ...more,
});

/** Brings the directory back to what it was; answers with what does so. */
function backUp(): Promise<() => Promise<void>> {
  const inside = <T>(work: (sql: SqlStorage) => T): Promise<T> =>
    runInDurableObject(directoryOf(env) as never, (_, { storage }: DurableObjectState) =>
      work(storage.sql),
    );
  return inside((sql) => sql.exec('SELECT * FROM configuration').one()).then((row) => async () => {
    await inside((sql) => {
      sql.exec('DELETE FROM configuration');
      const places = Object.keys(row).map(() => '?');
      sql.exec(`INSERT INTO configuration VALUES (${places.join()})`, ...Object.values(row));
    });
    await abortAllDurableObjects();
  });
}

async function versionNow(): Promise<number> {
  return (await directoryOf(env).snapshot(null))?.version ?? 0;
}

describe('a pool that remembers a higher version', () => {
  let isolate: ProxyIsolate;

  beforeEach(async () => {
    isolate = await startIsolate();
    await writeElsewhere(config());
    await isolate.send(PATH, CHAT);
  });

  afterEach(() => vi.restoreAllMocks());

  it('goes by the lower one, which it reads', async () => {
    await define('ours', 7, {}, (await versionNow()) + 1_000);
    passTime(LONG_MS);
    expect((await isolate.send(PATH, CHAT)).status).toBe(200);
    expect(await pool('ours').status()).toMatchObject({ limit: { configured: 5 } });
  });

  it('sends calls back that come while it cannot know, and they wait for that', async () => {
    await define('ours', 7, {}, (await versionNow()) + 1_000);
    expect((await isolate.send(PATH, CHAT)).status).toBe(200);
  });

  it('or are refused, where they do not want to wait', async () => {
    await define('ours', 7, {}, (await versionNow()) + 1_000);
    const acquired = vi.spyOn(GroupObject.prototype, 'acquire');
    const headers = { 'headgate-max-wait': '0' };
    const { status, headers: said } = await isolate.send(PATH, CHAT, { headers });
    expect([status, said.get('headgate-reason')]).toEqual([503, 'limiter_unavailable']);
    expect(acquired.mock.calls.length).toBeLessThanOrEqual(2);
  });
});

describe('an isolate that remembers a higher version', () => {
  it('takes the lower one', async () => {
    await writeElsewhere(config({ keys: KEYS }));
    const restore = await backUp();
    await writeElsewhere(config());
    const isolate = await startIsolate();
    expect((await isolate.send('/v1/models')).status).toBe(200);
    await restore();
    passTime(LONG_MS);
    expect((await isolate.send('/v1/models')).status).toBe(401);
    expect((await isolate.send(PATH, CHAT)).status).toBe(401);
  });

  it('takes it behind a call that a pool admits', async () => {
    await writeElsewhere(config({ keys: KEYS }));
    const restore = await backUp();
    await writeElsewhere(config());
    const isolate = await startIsolate();
    expect((await isolate.send(PATH, CHAT)).status).toBe(200);
    await restore();
    passTime(LONG_MS);
    await isolate.send(PATH, CHAT);
    expect((await isolate.send(PATH, CHAT)).status).toBe(401);
  });

  it('takes it where it has begun with an old copy, which is written anew', async () => {
    const entries = new Map<string, string>();
    const store: KeyValueStore = {
      get: (key) => Promise.resolve(JSON.parse(entries.get(key) ?? 'null')),
      put: (key, value) => Promise.resolve(void entries.set(key, value)),
    };
    const copied = async (): Promise<number | undefined> =>
      (await storedSnapshot({ ...env, SNAPSHOTS: store } as Env))?.version;
    const give = () =>
      runInDurableObject(directoryOf(env) as never, (instance: object) => {
        Object.assign((instance as { env: object }).env, { SNAPSHOTS: store });
      });
    await give();
    const older = await writeElsewhere(config({ keys: KEYS }));
    const restore = await backUp();
    const newer = await writeElsewhere(config());
    await until(async () => expect(await copied()).toBe(newer));
    await restore();
    await give();
    passTime(120_000);
    const isolate = await startIsolate(store);
    await isolate.send(PATH, CHAT);
    expect((await isolate.send(PATH, CHAT)).status).toBe(401);
    await until(async () => expect(await copied()).toBe(older));
  });
});
