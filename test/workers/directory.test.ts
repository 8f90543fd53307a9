// The directory's object by itself: versions, the audit log, the list of pools, and what it pushes to
// real group objects at a change.
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test';
import { env as bindings } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { configSchema, type Config, type ConfigInput } from '../../src/contract/config/config.ts';
import type { DirectoryRpc } from '../../src/contract/rpc/directory-rpc.ts';
import type { Env } from '../../src/env.ts';
import type { AcquireRequest, GroupRpc } from '../../src/contract/rpc/group-rpc.ts';
import { poolOf } from '../../src/routing/pool.ts';
import { acquireRequest } from '../support/requests.ts';
import { until } from './support/worker.ts';

// The test pool types its bindings by a generated file that this project does not keep.
const env = bindings as unknown as Env;

function configOf(input: ConfigInput): Config {
  return configSchema.parse(input);
}

/** Each test has a directory of its own; the groups' objects know the one called `directory` alone. */
function directoryNamed(name: string): DirectoryRpc {
  return env.DIRECTORY.getByName(name);
}

function request(group: string, configVersion: number, ticketId: string): AcquireRequest {
  return acquireRequest(group, ticketId, { configVersion, sliceMs: 8_000 });
}

/** Replaces whatever the directory holds. */
async function put(directory: DirectoryRpc, input: ConfigInput): Promise<number> {
  const version = (await directory.snapshot(null))?.version ?? -1;
  const answer = await directory.replace(configOf(input), version, 'test', 'config: import');
  expect(answer.kind).toBe('replaced');
  return answer.version;
}

async function untilLimit(pool: () => GroupRpc, configured: number | null): Promise<void> {
  await until(async () => {
    expect((await pool().status()).limit.configured).toBe(configured);
  });
}

describe('the configuration', () => {
  it('is version 0 and full of defaults until it is written', async () => {
    const snapshot = await directoryNamed('fresh').snapshot(null);
    expect(snapshot?.version).toBe(0);
    expect(snapshot?.config).toEqual(configOf({}));
    expect(atob(snapshot?.fingerprintKey ?? '')).toHaveLength(32);
  });

  it('survives a reset, and so does the fingerprint key', async () => {
    const version = await put(directoryNamed('kept'), { groups: [{ name: 'a' }] });
    const before = await directoryNamed('kept').snapshot(null);
    await abortAllDurableObjects();
    expect(await directoryNamed('kept').snapshot(null)).toEqual(before);
    expect(before?.version).toBe(version);
  });

  it('is not sent again to who has that version', async () => {
    const directory = directoryNamed('known');
    const before = (await directory.snapshot(null))?.tag ?? null;
    await put(directory, {});
    const snapshot = await directory.snapshot(before);
    expect(snapshot?.version).toBe(1);
    expect(await directory.snapshot(snapshot?.tag ?? null)).toBeNull();
  });

  it('is replaced only by who has seen its version', async () => {
    const directory = directoryNamed('set');
    const wanted = configOf({ groups: [{ name: 'a' }] });
    expect(await directory.replace(wanted, 0, 'x', 'one')).toEqual({
      kind: 'replaced',
      version: 1,
    });
    expect(await directory.replace(wanted, 0, 'y', 'two')).toEqual({
      kind: 'conflict',
      version: 1,
    });
    const { entries } = await directory.auditPage({ limit: 10 });
    expect(entries).toMatchObject([{ version: 1, actor: 'x', action: 'one' }]);
    // Version 0 is stored so that the first change can be undone.
    const versions = await directory.versions();
    expect(versions).toMatchObject([
      { version: 1, actor: 'x', action: 'one' },
      { version: 0, actor: '', action: '' },
    ]);
    expect(await directory.configAt(0)).toEqual(configOf({}));
  });
});

it('wrong tokens are counted by address', async () => {
  const directory = directoryNamed('attempted');
  expect(await directory.failedAttempt('a')).toBe(1);
  expect(await directory.failedAttempt('a')).toBe(2);
  expect(await directory.failedAttempt('b')).toBe(1);
});

it('the key of sessions is made once, and kept', async () => {
  const { sessionKey } = await directoryNamed('signing').adminAccess();
  expect(Uint8Array.fromBase64(sessionKey)).toHaveLength(32);
  await abortAllDurableObjects();
  const again = await directoryNamed('signing').adminAccess();
  expect(again.sessionKey).toBe(sessionKey);
  expect((await directoryNamed('signing').snapshot(null))?.fingerprintKey).not.toBe(sessionKey);
});

describe('the routing version', () => {
  const base: ConfigInput = {
    groups: [{ name: 'a', match: { models: ['x'] }, limits: { max_concurrency: 1 } }],
  };
  const edited = (fields: object): ConfigInput => ({
    groups: [{ ...base.groups?.[0], name: 'a', ...fields }],
  });

  it.each<[string, ConfigInput, boolean]>([
    ['a limit', edited({ limits: { max_concurrency: 2 } }), false],
    ['a pause', edited({ paused: true }), false],
    ['a queue', edited({ queue: { max_length: 3 } }), false],
    ['the keys', { ...base, keys: [{ id: 'k', hash: `sha256:${'0'.repeat(64)}` }] }, false],
    [
      'an automatic group',
      { ...base, auto_groups: [{ name: 'auto:openai', paused: true }] },
      false,
    ],
    ['the matching', edited({ match: { models: ['y'] } }), true],
    ['the split', edited({ partition_by: ['api_key'] }), true],
    ['the jurisdiction', edited({ jurisdiction: 'eu' }), true],
    ['another group', { groups: [...(base.groups ?? []), { name: 'b' }] }, true],
    ['no groups', {}, true],
    ['the upstreams', { ...base, upstreams: [{ id: 'openai', enabled: false }] }, true],
    ['the default upstream', { ...base, default_upstream: 'openai' }, true],
  ])('moves only when calls may take another way: %s', async (title, next, moves) => {
    const directory = directoryNamed(`routing ${title}`);
    await put(directory, base);
    const version = await put(directory, next);
    const { routingVersion } = await directory.definition('a');
    expect(routingVersion).toBe(moves ? version : version - 1);
  });

  it('does not move when groups only change places', async () => {
    const directory = directoryNamed('order');
    await put(directory, { groups: [{ name: 'a' }, { name: 'b' }] });
    await put(directory, { groups: [{ name: 'b' }, { name: 'a' }] });
    expect((await directory.definition('a')).routingVersion).toBe(1);
  });
});

describe('the list of pools', () => {
  it('survives a reset, takes a pool once and lets go of it', async () => {
    const list = () => directoryNamed('listing');
    const pool = { group: 'auto:openai', partition: 'fp_1' };
    await list().list(pool);
    await list().list(pool);
    await list().list({ group: 'auto:openai', partition: null });
    await abortAllDurableObjects();
    expect(await list().pools()).toMatchObject([{ group: 'auto:openai', partition: null }, pool]);
    await list().unlist(pool);
    expect(await list().pools()).toMatchObject([{ group: 'auto:openai', partition: null }]);
  });

  it('remembers the jurisdiction, so that a pool is found after its group has moved', async () => {
    const directory = directoryNamed('moved');
    await put(directory, { groups: [{ name: 'm', partition_by: ['caller'], jurisdiction: 'eu' }] });
    await directory.list({ group: 'm', partition: 'p' });
    await put(directory, { groups: [{ name: 'm', partition_by: ['caller'], jurisdiction: 'us' }] });
    await directory.list({ group: 'm', partition: 'p' });
    const pool = { group: 'm', partition: 'p' };
    await until(async () => {
      // The one in the old jurisdiction held nothing, and went when it was told of the change.
      expect(await directory.pools()).toEqual([{ ...pool, jurisdiction: 'us' }]);
    });
  });
});

describe('a change is pushed', () => {
  // The groups' objects read from this one.
  const directory = () => directoryNamed('directory');

  it('to the own object of an edited group and to listed partitions, past one that fails', async () => {
    const groups = (max_concurrency: number): ConfigInput => ({
      groups: [
        { name: 'own', limits: { max_concurrency } },
        { name: 'split', partition_by: ['caller'], limits: { max_concurrency } },
      ],
    });
    await put(directory(), groups(1));
    await directory().list({ group: 'split', partition: 'one' });
    await directory().list({ group: 'split', partition: 'broken' });
    await runInDurableObject(poolOf(env, 'split', 'broken', null) as never, (instance: object) => {
      const reconfigure = () => Promise.reject(new Error('this pool is broken'));
      Object.defineProperty(instance, 'reconfigure', { value: reconfigure });
    });
    await directory().list({ group: 'split', partition: 'two' });
    await directory().wake({ group: 'own', partition: null, window: 1, idleMs: 0, said: '{}' });
    await put(directory(), groups(2));
    await untilLimit(() => poolOf(env, 'own', null, null), 2);
    await untilLimit(() => poolOf(env, 'split', 'one', null), 2);
    await untilLimit(() => poolOf(env, 'split', 'two', null), 2);
    expect((await poolOf(env, 'split', 'broken', null).status()).limit.configured).toBeNull();
  });

  it('as a move to the waiters of every pool when calls may take another way', async () => {
    await put(directory(), { groups: [{ name: 'full', limits: { max_concurrency: 0 } }] });
    const version = await put(directory(), {
      groups: [{ name: 'full', limits: { max_concurrency: 0 }, paused: true }],
    });
    const waiting = poolOf(env, 'full', null, null).acquire(request('full', version, 'waiter'));
    await until(async () => {
      expect((await poolOf(env, 'full', null, null).status()).queued).toBe(1);
    });
    await put(directory(), {
      groups: [
        { name: 'full', limits: { max_concurrency: 0 }, paused: true },
        { name: 'new', match: { models: ['z'] } },
      ],
    });
    expect(await waiting).toMatchObject({ kind: 'moved', configVersion: version + 1 });
  });

  it('to a deleted group, which stays listed until its last lease has ended', async () => {
    const version = await put(directory(), {
      groups: [{ name: 'leaving', limits: { max_concurrency: 1 } }],
    });
    const pool = () => poolOf(env, 'leaving', null, null);
    const answer = await pool().acquire(request('leaving', version, 'holder'));
    expect(answer.kind).toBe('granted');
    if (answer.kind !== 'granted') return;
    await put(directory(), {});
    await untilLimit(pool, null);
    const leaving = async () =>
      (await directory().pools()).filter(({ group }) => group === 'leaving');
    expect(await leaving()).toHaveLength(1);
    await answer.lease.release('unused', null);
    // The next push finds it empty.
    await put(directory(), { groups: [{ name: 'next' }] });
    await until(async () => expect(await leaving()).toEqual([]));
  });
});
