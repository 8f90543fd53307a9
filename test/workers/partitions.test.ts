// The bound on partitions: who shares a pool, for how long, and how idle pools make room again.
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { configSchema } from '../../src/contract/config/config.ts';
import type { DirectoryRpc, ConfigSnapshot } from '../../src/contract/rpc/directory-rpc.ts';
import { directoryOf } from '../../src/env.ts';
import { POOL_IDLE_MS, type AcquireRequest } from '../../src/contract/rpc/group-rpc.ts';
import { poolOf } from '../../src/routing/pool.ts';
import { acquireRequest } from '../support/requests.ts';
import { OVERFLOW_PARTITION } from '../../src/contract/pool-name.ts';
import { OVERFLOW_MAX, PARTITIONS_MAX } from '../../src/directory/pool-list.ts';
import { ownOrShared } from '../../src/call/acquire/pools.ts';
import type { RoutingTable } from '../../src/config/snapshots.ts';
import type { Placement } from '../../src/routing/placement.ts';
import { storedBoundIn } from './support/pool.ts';
import { admin, env, until } from './support/worker.ts';

function directoryNamed(name: string): DirectoryRpc {
  return env.DIRECTORY.getByName(name);
}

/** Runs SQL in an object's database. */
async function sql(stub: unknown, statement: string, ...values: unknown[]): Promise<void> {
  await runInDurableObject(stub as never, (_instance, state: DurableObjectState) => {
    state.storage.sql.exec(statement, ...(values as SqlStorageValue[]));
  });
}

/** Keeps a directory from asking its thousand pools, each of which would be a real object. */
async function withoutPools(name: string): Promise<void> {
  const busy = { forget: () => Promise.resolve(false), reconfigure: () => Promise.resolve() };
  await runInDurableObject(directoryNamed(name) as never, (instance: object) => {
    Object.defineProperty(instance, 'env', { value: { GROUPS: { getByName: () => busy } } });
  });
}

/** Lists so many partitions of a group without a call for each, and as told of whatever comes in a test. */
async function fill(name: string, group: string, count: number): Promise<void> {
  await directoryNamed(name).snapshot(null);
  await sql(
    directoryNamed(name),
    `WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?)
     INSERT INTO pools (group_name, object_name, jurisdiction, partition_key, told)
       SELECT ?, ? || '#p' || at, '', 'p' || at, 1000 FROM n`,
    count,
    group,
    group,
  );
  await abortAllDurableObjects();
  await withoutPools(name);
}

/** The version that a Worker with the newest copy would bring along. */
async function newest(): Promise<number> {
  return (await directoryOf(env).snapshot(null))?.version ?? 0;
}

async function requestOf(
  group: string,
  partition: string,
  ticketId: string,
): Promise<AcquireRequest> {
  return acquireRequest(group, ticketId, {
    partition,
    assumed: { slotsMax: 64, source: 'unknown' },
    configVersion: await newest(),
    wait: false,
    sliceMs: 8_000,
    model: null,
  });
}

async function useOnce(group: string, partition: string, ticketId: string): Promise<void> {
  const request = await requestOf(group, partition, ticketId);
  const answer = await poolOf(env, group, partition, null).acquire(request);
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  await answer.lease.release('success', 200);
}

/** Lets a pool believe that its last use was that long ago. */
async function ageBy(group: string, partition: string, ms: number): Promise<void> {
  const pool = () => poolOf(env, group, partition, null);
  await pool().status();
  // That nothing is held is written a little after the last end.
  await until(() =>
    runInDurableObject(pool() as never, (_instance, state: DurableObjectState) => {
      expect(storedBoundIn(state)?.mark ?? 0).toBe(0);
    }),
  );
  const at = Date.now() - ms;
  // One that nobody has used has written nothing.
  const none = { ended: [], lapsed: [], granted: [], heirs: [], waiters: 0 };
  const unused = JSON.stringify({ seq: 0, mark: 0, held: 0, since: 0, next: 0, ...none });
  await sql(pool(), `INSERT OR IGNORE INTO bound (place, boot, data) VALUES (301, '', ?)`, unused);
  await sql(pool(), `UPDATE bound SET data = json_set(data, '$.at', ?)`, at);
  const kept = `UPDATE memory SET value = json_set(value, '$.bound.at', ?) WHERE key = 'controls'`;
  await sql(pool(), kept, at);
  await abortAllDurableObjects();
}

const LONG_MS = POOL_IDLE_MS + 120_000;

describe('a group with too many partitions', () => {
  it('lets newcomers share a pool, the same ones after a reset too', async () => {
    await fill('sharing', 'g', PARTITIONS_MAX);
    const directory = () => directoryNamed('sharing');
    expect(await directory().share('g', 'p7')).toBe('p7');
    expect(await directory().share('g', 'new')).toBe(OVERFLOW_PARTITION);
    expect(await directory().share('other', 'new')).toBe('new');
    // Room for one more does not bring the one back that shares.
    await directory().unlist({ group: 'g', partition: 'p0' });
    await abortAllDurableObjects();
    await withoutPools('sharing');
    expect(await directory().share('g', 'new')).toBe(OVERFLOW_PARTITION);
    expect(await directory().share('g', 'newer')).toBe('newer');
  });

  it('is told of in the snapshot, whose tag changes with it', async () => {
    const directory = () => directoryNamed('tagged');
    await fill('tagged', 'g', PARTITIONS_MAX - 1);
    const before = await directory().snapshot(null);
    expect(before?.fullGroups).toEqual([]);
    expect(await directory().snapshot(before?.tag ?? null)).toBeNull();
    expect(await directory().list({ group: 'g', partition: 'last' })).toBe(true);
    const full = await directory().snapshot(before?.tag ?? null);
    expect(full).toMatchObject({ version: before?.version, fullGroups: ['g'] });
    expect(await directory().snapshot(full?.tag ?? null)).toBeNull();
    await directory().unlist({ group: 'g', partition: 'last' });
    expect((await directory().snapshot(full?.tag ?? null))?.fullGroups).toEqual([]);
  });

  it('lists no more of them', async () => {
    await fill('listed', 'g', PARTITIONS_MAX);
    const directory = () => directoryNamed('listed');
    expect(await directory().list({ group: 'g', partition: 'new' })).toBe(false);
    expect(await directory().list({ group: 'g', partition: 'p1' })).toBe(true);
    expect(await directory().list({ group: 'g', partition: OVERFLOW_PARTITION })).toBe(true);
    expect(await directory().pools()).toHaveLength(PARTITIONS_MAX + 1);
  });

  it('remembers a bounded number of those that share, and tells nobody new otherwise', async () => {
    await fill('many', 'g', PARTITIONS_MAX - 1);
    const directory = () => directoryNamed('many');
    await sql(
      directory(),
      `WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?)
       INSERT INTO overflow SELECT 'g', 's' || at FROM n`,
      OVERFLOW_MAX,
    );
    expect(await directory().share('g', 'anybody')).toBe(OVERFLOW_PARTITION);
    expect(await directory().share('g', 'p1')).toBe('p1');
  });

  it('starts anew when it is split in another way', async () => {
    const directory = () => directoryNamed('resplit');
    const groups = (by: 'caller' | 'model') =>
      configSchema.parse({ groups: [{ name: 'g', partition_by: [by] }] });
    await directory().replace(groups('caller'), 0, 'x', 'one');
    await fill('resplit', 'g', PARTITIONS_MAX);
    await directory().share('g', 'new');
    await sql(directory(), `DELETE FROM pools WHERE partition_key = 'p0'`);
    expect(await directory().share('g', 'new')).toBe(OVERFLOW_PARTITION);
    await directory().replace(groups('model'), 1, 'x', 'two');
    expect(await directory().share('g', 'new')).toBe('new');
  });

  it('makes room by letting go of pools that nobody used for long', async () => {
    // The pools tell the directory of this name.
    const directory = () => directoryOf(env);
    await useOnce('auto:openai', 'p0', 'idle');
    await useOnce('auto:openai', 'p1', 'busy');
    await until(async () => expect(await directory().pools()).toHaveLength(2));
    await ageBy('auto:openai', 'p0', LONG_MS);
    // Somebody shares already: no need for a thousand objects to be asked.
    await sql(directory(), `INSERT INTO overflow VALUES ('auto:openai', 'new')`);
    await directory().list({ group: 'auto:openai', partition: OVERFLOW_PARTITION });
    expect(await directory().share('auto:openai', 'new')).toBe(OVERFLOW_PARTITION);
    const partitions = async () => (await directory().pools()).map(({ partition }) => partition);
    await until(async () => expect(await partitions()).not.toContain('p0'));
    expect(await partitions()).toContain('p1');
    expect(await partitions()).toContain(OVERFLOW_PARTITION);
    // Those that share go on to, until their pool is idle as well.
    expect(await directory().share('auto:openai', 'new')).toBe(OVERFLOW_PARTITION);
    await ageBy('auto:openai', OVERFLOW_PARTITION, LONG_MS);
    expect(await poolOf(env, 'auto:openai', OVERFLOW_PARTITION, null).forget(null)).toBe(true);
    expect(await directory().share('auto:openai', 'new')).toBe('new');
    await sql(directory(), `DELETE FROM pools`);
    await abortAllDurableObjects();
  });
});

describe('a Worker', () => {
  const placement: Placement = {
    group: 'full',
    partition: 'new',
    assumed: null,
    config: null,
    isOfProvider: true,
    ruledLane: null,
  };
  const tableOf = (fullGroups: readonly string[]) =>
    ({ snapshot: { fullGroups } as unknown as ConfigSnapshot }) as RoutingTable;

  it('asks nobody unless the group is full, and then once in a while', async () => {
    let asked = 0;
    const fake = {
      DIRECTORY: {
        getByName: () => ({
          share: () => {
            asked += 1;
            return Promise.resolve(OVERFLOW_PARTITION);
          },
        }),
      },
    } as never;
    expect(await ownOrShared(fake, tableOf([]), placement)).toBe(placement);
    const own = { ...placement, partition: null };
    expect(await ownOrShared(fake, tableOf(['full']), own)).toBe(own);
    expect(asked).toBe(0);
    const shared = { ...placement, partition: OVERFLOW_PARTITION };
    expect(await ownOrShared(fake, tableOf(['full']), placement)).toEqual(shared);
    expect(await ownOrShared(fake, tableOf(['full']), placement)).toEqual(shared);
    expect(asked).toBe(1);
  });

  it('uses the own pool while the directory is out of reach', async () => {
    const fails = { share: () => Promise.reject(new Error('out of reach')) };
    const fake = { DIRECTORY: { getByName: () => fails } } as never;
    const other = { ...placement, partition: 'other' };
    expect(await ownOrShared(fake, tableOf(['full']), other)).toEqual(other);
  });
});

describe('an idle partition', () => {
  beforeEach(async () => {
    await admin('PUT', '/config', {
      groups: [{ name: 'split', partition_by: ['caller'], limits: { max_concurrency: 2 } }],
    });
  });

  async function partitions(group: string): Promise<{ partition: string }[]> {
    return (await admin('GET', `/groups/${group}/status`)).json.partitions;
  }

  async function listed(group: string): Promise<unknown[]> {
    return (await directoryOf(env).pools()).filter((pool) => pool.group === group);
  }

  it('disappears from the status, leaves the list and comes back with its next 2xx', async () => {
    const { version } = (await directoryOf(env).snapshot(null)) ?? { version: 0 };
    expect(version).toBeGreaterThan(0);
    await useOnce('auto:groq', 'fp', 'first');
    await until(async () => expect(await listed('auto:groq')).toHaveLength(1));
    expect(await partitions('auto:groq')).toMatchObject([{ partition: 'fp' }]);
    await ageBy('auto:groq', 'fp', LONG_MS);
    expect((await admin('GET', '/groups/auto%3Agroq/status')).status).toBe(404);
    await until(async () => expect(await listed('auto:groq')).toEqual([]));
    await useOnce('auto:groq', 'fp', 'second');
    await until(async () => expect(await listed('auto:groq')).toHaveLength(1));
  });

  it('stays for ten minutes, and while a call is in flight', async () => {
    await useOnce('split', 'young', 'first');
    await until(async () => expect(await listed('split')).toHaveLength(1));
    await ageBy('split', 'young', POOL_IDLE_MS - 120_000);
    expect(await partitions('split')).toMatchObject([{ partition: 'young' }]);
    expect(await poolOf(env, 'split', 'young', null).forget(null)).toBe(false);
    await ageBy('split', 'young', LONG_MS);
    const pool = poolOf(env, 'split', 'young', null);
    const answer = await pool.acquire(await requestOf('split', 'young', 'holds'));
    expect(await pool.forget(null)).toBe(false);
    if (answer.kind === 'granted') await answer.lease.release('unused', null);
  });

  it('does not take its group with it, which is configured', async () => {
    await admin('PUT', '/groups/apart', {
      partition_by: ['caller'],
      limits: { max_concurrency: 2 },
    });
    await useOnce('apart', 'old', 'first');
    await until(async () => expect(await listed('apart')).toHaveLength(1));
    await ageBy('apart', 'old', LONG_MS);
    const { status, json } = await admin('GET', '/groups/apart/status');
    expect([status, json.partitions]).toEqual([200, []]);
    expect(json.limit.effective).toBe(2);
  });
});
