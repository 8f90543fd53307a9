// An isolate tells its name, and how often it had to wait for the configuration.
import { expect, it } from 'vitest';
import packageJson from '../../../package.json';
import { isolateConfig } from '../../../src/config/isolate-config.ts';
import { configure, env } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

const isolate = async () => bodyOf(await asAdmin('GET /isolate'));
const read = (minVersion = 0) => isolateConfig.forPool(env, { waitUntil: () => {} }, minVersion);

it('counts who needs the configuration, and of those who waits for it', async () => {
  await configure({});
  const version = (await read())?.snapshot.version ?? 0;
  const before = await isolate();
  expect(before.id).toMatch(/^[0-9a-f]{12}$/);
  expect(before.release).toBe(packageJson.version);

  await read();
  expect(await isolate()).toEqual({ ...before, config_reads: before.config_reads + 1 });

  await read(version + 1);
  expect(await isolate()).toEqual({
    ...before,
    config_reads: before.config_reads + 2,
    config_waits: before.config_waits + 1,
  });
});
