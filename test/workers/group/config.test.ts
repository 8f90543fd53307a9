// How an object keeps up with its configuration, with the real directory behind it.
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import {
  NO_COOLDOWN,
  nothingLeaks,
  pool,
  queueUp,
  request,
  resetPool,
  take,
  untilWrittenEmpty,
  untilStatus,
} from '../support/pool.ts';
import { change, configure, env } from '../support/worker.ts';

beforeAll(() => configure({}));
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(nothingLeaks);

/** Sets a group's limit; `told`: the directory's push arrives. */
async function setLimit(name: string, slotsMax: number, told = true): Promise<number> {
  if (!told) vi.spyOn(GroupObject.prototype, 'reconfigure').mockResolvedValue();
  const { json } = await change('PUT', `/groups/${name}`, {
    match: { models: [name] },
    limits: { max_concurrency: slotsMax },
    holds: NO_COOLDOWN,
  });
  return json.version as number;
}

it('an object that nobody has told anything reads the directory before it decides', async () => {
  const configVersion = await setLimit('fresh', 1);
  const { lease } = await take('fresh', 'a', { configVersion, wait: false });
  expect(await pool('fresh').status()).toMatchObject({ limit: { configured: 1 }, in_use: 1 });
  await lease.release('unused', null);
});

it('a ticket that was routed by a newer configuration makes the object read it first', async () => {
  const older = await setLimit('newer', 1);
  const first = await take('newer', 'a', { configVersion: older });
  const configVersion = await setLimit('newer', 2, false);
  const refused = await pool('newer').acquire(
    request('newer', 'b', { configVersion: older, wait: false }),
  );
  expect(refused).toMatchObject({ kind: 'rejected', configVersion: older });
  const second = await take('newer', 'c', { configVersion, wait: false });
  expect(second.configVersion).toBe(configVersion);
  await first.lease.release('unused', null);
  await second.lease.release('unused', null);
});

it('a lower limit that only a ticket brings takes hold before that ticket is decided', async () => {
  const older = await setLimit('lower', 2);
  const { lease } = await take('lower', 'a', { configVersion: older });
  const configVersion = await setLimit('lower', 1, false);
  const answer = await pool('lower').acquire(request('lower', 'b', { configVersion, wait: false }));
  expect(answer).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy', slotsMax: 1 } });
  await lease.release('unused', null);
});

it('while the directory is out of reach an object decides by what it knows', async () => {
  const known = await setLimit('alone', 1);
  const { lease } = await take('alone', 'a', { configVersion: known });
  vi.spyOn(DirectoryObject.prototype, 'definition').mockRejectedValue(new Error('out of reach'));
  const configVersion = known + 1_000;
  const refused = await pool('alone').acquire(
    request('alone', 'b', { configVersion, wait: false }),
  );
  expect(refused).toMatchObject({ kind: 'rejected', configVersion: known });
  await lease.release('unused', null);
  const next = await take('alone', 'c', { configVersion });
  await next.lease.release('unused', null);
});

it('while the directory hangs an object goes on by what it knows, after a second', async () => {
  const known = await setLimit('patient', 1);
  const first = await take('patient', 'a', { configVersion: known });
  await first.lease.release('unused', null);
  vi.spyOn(DirectoryObject.prototype, 'definition').mockReturnValue(new Promise(() => {}));
  const next = await take('patient', 'b', { configVersion: known + 1_000 });
  expect(next.configVersion).toBe(known);
  await next.lease.release('unused', null);
});

it('a change is pushed to an object that has waiters, and they are granted at once', async () => {
  const configVersion = await setLimit('pushed', 1);
  const { lease } = await take('pushed', 'a', { configVersion });
  const { answer } = await queueUp('pushed', 'b', { configVersion });
  await setLimit('pushed', 2);
  const next = await answer;
  if (next.kind !== 'granted') throw new Error(next.kind);
  expect(await pool('pushed').status()).toMatchObject({ limit: { configured: 2 }, in_use: 2 });
  await lease.release('unused', null);
  await next.lease.release('unused', null);
});

it('a version that is not newer changes nothing', async () => {
  const version = await setLimit('stale', 2);
  await take('stale', 'a', { configVersion: version });
  const { routingVersion } = await directoryOf(env).definition('stale');
  await pool('stale').reconfigure({ version, routingVersion, config: null });
  await pool('stale').reconfigure({ version: version - 1, routingVersion: 0, config: null });
  expect(await pool('stale').status()).toMatchObject({ limit: { configured: 2 }, in_use: 1 });
  await pool('stale').release('a.1', 'unused', null);
});

it('a group that was deleted sends its waiters and newcomers elsewhere, and its leases end in peace', async () => {
  const configVersion = await setLimit('retired', 1);
  const { lease } = await take('retired', 'a', { configVersion });
  const { answer } = await queueUp('retired', 'b', { configVersion });
  const { json } = await change('DELETE', '/groups/retired');
  expect(await answer).toEqual({ kind: 'moved', configVersion: json.version });
  const late = await pool('retired').acquire(request('retired', 'c', { configVersion }));
  expect(late).toEqual({ kind: 'moved', configVersion: json.version });
  expect(await pool('retired').status()).toMatchObject({ in_use: 1, queued: 0 });
  await lease.release('success', 200);
  await untilStatus('retired', { in_use: 0 });
});

it('an object knows its configuration after a reset, without the directory', async () => {
  const configVersion = await setLimit('remembered', 3);
  const { lease } = await take('remembered', 'a', { configVersion });
  await lease.release('unused', null);
  await untilWrittenEmpty('remembered');
  const definition = vi.spyOn(DirectoryObject.prototype, 'definition');
  await resetPool('remembered');
  expect(await pool('remembered').status()).toMatchObject({ limit: { configured: 3 } });
  expect(definition).not.toHaveBeenCalled();
});
