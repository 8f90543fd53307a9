// What operators see of a pool that has just been reset: how many slots nobody has claimed, and until when.
import { exports } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import { NEVER } from '../../../src/core/state.ts';
import { after } from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { History } from '../../../src/group/observe/history.ts';
import type { HistoryRows } from '../../../src/group/observe/rows.ts';
import { Warnings } from '../../../src/group/observe/warnings.ts';
import type { GroupStore } from '../../../src/group/store.ts';
import { TestGroup } from '../../support/core-builders.ts';
import { directoryOf } from '../../../src/env.ts';
import { change, env } from '../support/worker.ts';
import { inside, passAwake, pool, resume, take } from '../support/pool.ts';

// The test pool types its exports by a generated file that this project does not keep.
const worker = (exports as unknown as { default: Fetcher }).default;

async function ask(method: string, path: string, body?: unknown): Promise<Response> {
  return worker.fetch(`https://headgate.test${path}`, {
    method,
    headers: { authorization: 'Bearer test-admin-token' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** A group of four slots, of which two were held when its object was reset. */
async function resetGroup(name: string): Promise<void> {
  await change('PUT', `/groups/${name}`, { limits: { max_concurrency: 4 } });
  await take(name, `${name}-a`);
  await take(name, `${name}-b`);
  // The directory hears of the first use beside the call.
  const said = async () =>
    (await directoryOf(env).presence()).find(({ group }) => group === name)?.said;
  await expect.poll(said).toBeNull();
  // The call that asks for the reset dies with the instance.
  await inside(name, async (_instance, state) => {
    await state.storage.sync();
    state.abort('reset by the test');
  }).catch(() => {});
}

it('the status tells them apart from what is in use, until each is claimed or its time is over', async () => {
  await resetGroup('told');
  const before = Date.now();
  const status = await pool('told').status();
  expect(status).toMatchObject({ in_use: 0, unclaimed: 2 });
  const until = Date.parse(status.unclaimed_until ?? '');
  expect(until).toBeGreaterThan(before);
  expect(until).toBeLessThanOrEqual(Date.now() + LEASE_TTL_MS);

  await resume('told', { leaseId: 'told-a.1', attachment: null });
  expect(await pool('told').status()).toMatchObject({ in_use: 1, unclaimed: 1 });
  const response = await ask('GET', '/admin/api/groups/told/status');
  expect(await response.json()).toMatchObject({ in_use: 1, unclaimed: 1 });

  await passAwake('told', LEASE_TTL_MS);
  expect(await pool('told').status()).toMatchObject({ unclaimed: 0, unclaimed_until: null });
});

it('the metrics have them as slots of their own kind', async () => {
  await resetGroup('scraped');
  const text = await (await ask('GET', '/metrics')).text();
  const sample = (name: string) =>
    text
      .split('\n')
      .find((line) => line.startsWith(`${name}{group="scraped"`))
      ?.split(' ')[1];
  expect(sample('headgate_slots_unclaimed')).toBe('2');
  expect(sample('headgate_slots_in_use')).toBe('0');
});

it('a pool that an operator deletes is shown until they are free', async () => {
  await resetGroup('deleted');
  await ask('DELETE', '/admin/api/groups/deleted');
  const response = await ask('GET', '/admin/api/groups/deleted/status');
  expect(await response.json()).toMatchObject({ kind: 'retired', in_use: 0, unclaimed: 2 });
});

/** The core of a group of four slots, all of which were held when it was reset. */
function resetCore(): TestGroup {
  const before = TestGroup.stored({ slotsMax: 4 });
  before.askAll('a', 'b', 'c', 'd');
  before.write();
  return before.reset();
}

it('history counts calls without them', () => {
  const group = resetCore();
  const rows = { minute: () => null, recent: () => [], read: () => [] };
  const history = new History(rows as unknown as HistoryRows, null, group.now);
  group.resume('a');
  history.note(group.state, group.now);
  group.advance(60_000);
  expect(history.turn(group.state, group.now)?.inUseMax).toBe(1);
});

it('a pool is not near its limit by them', () => {
  const group = resetCore();
  const reported: string[] = [];
  const store = { recall: () => null, remember: () => {} } as unknown as GroupStore;
  const warnings = new Warnings(store, { group: 'g', partition: null }, (one) =>
    reported.push(one.kind),
  );
  const bounds = { warn_at: 0.8, warn_wait_ms: null, timeoutMs: 60_000 };
  group.state.unclaimed.until = NEVER;
  for (let second = 0; second < 70; second += 10) {
    warnings.note(group.state, bounds, after(group.now, second * 1_000));
  }
  expect(reported).toEqual([]);
});
