// How an object keeps up with its configuration, with the real directory behind it.
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import type { GroupDefinition } from '../../../src/contract/rpc/group-rpc.ts';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import {
  define,
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
import { passTime } from '../support/time.ts';
import { change, configure, env, until } from '../support/worker.ts';

/** Longer than a pool goes without the directory, where it has a reason to read it. */
const LONG_MS = 5_000;

beforeAll(() => configure({}));
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(nothingLeaks);

/** Sets a group's limit; `told`: the directory's push arrives. */
async function setLimit(name: string, slotsMax: number, reported = true): Promise<number> {
  if (!reported) vi.spyOn(GroupObject.prototype, 'reconfigure').mockResolvedValue();
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

describe('a pool that was told of a version which the directory does not have', () => {
  /** Tells it, as a directory would that is no more, and lets it forget when. */
  async function reportOfOther(name: string, version: number, slotsMax = 7): Promise<void> {
    await define(name, slotsMax, {}, version);
    passTime(LONG_MS);
  }

  const read = () => vi.spyOn(DirectoryObject.prototype, 'definition');

  it('reads it for a newcomer of an older one, and goes by what it says', async () => {
    const configVersion = await setLimit('set-back', 1);
    await define('set-back', 7, {}, configVersion + 1_000);
    const early = await pool('set-back').acquire(request('set-back', 'a', { configVersion }));
    expect(early).toEqual({ kind: 'moved', configVersion: configVersion + 1_000 });
    passTime(LONG_MS);
    const { lease, configVersion: by } = await take('set-back', 'b', { configVersion });
    expect(by).toBe(configVersion);
    expect(await pool('set-back').status()).toMatchObject({ limit: { configured: 1 }, in_use: 1 });
    await lease.release('unused', null);
    await untilWrittenEmpty('set-back');
    await resetPool('set-back');
    expect(await pool('set-back').status()).toMatchObject({ limit: { configured: 1 } });
  });

  it('is listed anew, because that directory does not know it', async () => {
    const configVersion = await setLimit('unknown', 1);
    const isListed = async (): Promise<boolean> =>
      (await directoryOf(env).pools()).some(({ group }) => group === 'unknown');
    const succeed = async (id: string): Promise<void> => {
      const { lease } = await take('unknown', id, { configVersion });
      await lease.release('success', 200);
    };
    await succeed('a');
    await until(async () => expect(await isListed()).toBe(true));
    await directoryOf(env).unlist({ group: 'unknown', partition: null });
    await succeed('b');
    expect(await isListed()).toBe(false);
    await reportOfOther('unknown', configVersion + 1_000);
    await succeed('c');
    await until(async () => expect(await isListed()).toBe(true));
  });

  it('also where that directory has overtaken it', async () => {
    const older = await setLimit('overtaken', 1);
    const isListed = async (): Promise<boolean> =>
      (await directoryOf(env).pools()).some(({ group }) => group === 'overtaken');
    const reads = read();
    const { lease } = await take('overtaken', 'a', { configVersion: older });
    reads.mockClear();
    await lease.release('success', 200);
    await until(() => expect(reads).toHaveBeenCalledTimes(1));
    await until(async () => expect(await isListed()).toBe(true));
    await directoryOf(env).unlist({ group: 'overtaken', partition: null });
    const configVersion = await setLimit('overtaken', 2, false);
    const next = await take('overtaken', 'b', { configVersion });
    await until(async () => expect(await isListed()).toBe(true));
    await next.lease.release('unused', null);
  });

  it('reads it once for all, and then not for seconds', async () => {
    const configVersion = await setLimit('once', 1);
    const pushed = configVersion + 1;
    await reportOfOther('once', pushed);
    const { routingVersion, config } = await directoryOf(env).definition('once');
    const reads = read().mockResolvedValue({ version: pushed, routingVersion, config });
    const come = async (id: string): Promise<void> => {
      const answer = await pool('once').acquire(request('once', id, { configVersion }));
      expect(answer).toEqual({ kind: 'moved', configVersion: pushed });
    };
    await Promise.all(Array.from({ length: 20 }, (_, i) => come(`t${i}`)));
    await come('later');
    expect(reads).toHaveBeenCalledTimes(1);
  });

  it('does not read it for those who bring its own version, once it is listed', async () => {
    const configVersion = await setLimit('current', 1);
    const reads = read();
    const first = await take('current', 'a', { configVersion });
    reads.mockClear();
    await first.lease.release('success', 200);
    await until(() => expect(reads).toHaveBeenCalledTimes(1));
    passTime(LONG_MS);
    const { lease } = await take('current', 'b', { configVersion });
    await lease.release('unused', null);
    expect(reads).toHaveBeenCalledTimes(1);
  });

  it('keeps what it was told of while the directory answered', async () => {
    const configVersion = await setLimit('late', 1);
    await reportOfOther('late', configVersion + 10);
    const answer = Promise.withResolvers<GroupDefinition>();
    const old = await directoryOf(env).definition('late');
    const reads = read().mockReturnValueOnce(answer.promise);
    const asked = pool('late').acquire(request('late', 'a', { configVersion }));
    await until(() => expect(reads).toHaveBeenCalledTimes(1));
    await define('late', 7, {}, configVersion + 20);
    answer.resolve(old);
    expect(await asked).toEqual({ kind: 'moved', configVersion: configVersion + 20 });
    // It does not know yet which of them holds: the next one brings it out.
    const { lease } = await take('late', 'b', { configVersion });
    await lease.release('unused', null);
    expect(reads).toHaveBeenCalledTimes(2);
  });

  it('goes on by it while the directory hangs', async () => {
    const configVersion = await setLimit('hanging', 1);
    await reportOfOther('hanging', configVersion + 1_000);
    read().mockReturnValue(new Promise(() => {}));
    const answer = await pool('hanging').acquire(request('hanging', 'a', { configVersion }));
    expect(answer).toEqual({ kind: 'moved', configVersion: configVersion + 1_000 });
  });

  it('keeps it where only the directory says so: no newcomer had an older one', async () => {
    const known = await setLimit('alone-in-it', 1);
    await reportOfOther('alone-in-it', known + 10);
    const answer = await take('alone-in-it', 'a', { configVersion: known + 20 });
    expect(answer.configVersion).toBe(known + 10);
    await answer.lease.release('unused', null);
  });

  it('is no longer retired by it', async () => {
    const configVersion = await setLimit('back', 1);
    const gone = { version: configVersion + 1_000, routingVersion: 0, config: null };
    await pool('back').reconfigure(gone);
    passTime(LONG_MS);
    const { lease, configVersion: by } = await take('back', 'a', { configVersion });
    expect(by).toBe(configVersion);
    await lease.release('unused', null);
  });
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
