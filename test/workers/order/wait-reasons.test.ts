// What each queued call waits for, where calls of several groups wait, and that no wait is estimated while nothing ends.
import { beforeEach, describe, expect, it } from 'vitest';
import { parseExposition } from '../../unit/metrics/exposition-parser.ts';
import { pool, untilStatus } from '../support/pool.ts';
import { admin, call, change, until } from '../support/worker.ts';
import { keptAlive, readUntil } from './event-stream.ts';
import {
  allFree,
  ask,
  CHAT,
  configureGroups,
  finish,
  group,
  groupOf,
  keyHeader,
  keyOf,
  queued,
  scene,
  streaming,
  useScenes,
} from './scene.ts';

let wide = '';

useScenes('reasons');
beforeEach(() => {
  wide = scene.name('wide');
});

const bodyOf = (label: string, stream = true) => ({
  model: 'm',
  stream,
  messages: [{ role: 'user', content: label }],
});

const OWN = { limits: { max_concurrency: 4 } };
const ACME = { headers: keyHeader('acme') };

async function waitersOf(name: string) {
  return (await admin('GET', `/groups/${encodeURIComponent(name)}/waiters`)).json;
}

/** The queued calls of a group by reason, as the metrics have them. */
async function countedReasons(name: string): Promise<Record<string, number>> {
  const headers = { authorization: 'Bearer test-metrics-token' };
  const families = parseExposition(await (await call('/metrics', { headers })).text());
  return Object.fromEntries(
    families
      .flatMap(({ samples }) => samples)
      .filter((one) => one.name === 'headgate_queue_waits_for' && one.labels['group'] === name)
      .map(({ labels, value }) => [labels['reason'], value]),
  );
}

async function statusOf(name: string) {
  return (await admin('GET', `/groups/${encodeURIComponent(name)}/status`)).json;
}

/** A group of one slot, which a call of another key holds, and two calls of a key with limits that wait for it. */
async function waitOfKey() {
  await configureGroups(scene, [groupOf(wide, 1)], [await keyOf('acme', OWN), await keyOf('else')]);
  const holder = await streaming(scene, 'holder', { headers: keyHeader('else') });
  return [holder, await queued(wide, 'a', ACME), await queued(wide, 'b', ACME)];
}

describe('a call of several groups', () => {
  it('is found in the group that it waits in, and its key says which that is', async () => {
    const calls = await waitOfKey();
    const elsewhere = [{ group: wide, calls: 2 }];
    expect(await statusOf('key:acme')).toMatchObject({ queued: 0, waiting_elsewhere: elsewhere });
    expect(await waitersOf('key:acme')).toMatchObject({
      waiters: [],
      waiting_elsewhere: elsewhere,
    });
    const { groups } = (await admin('GET', '/status')).json;
    const ofKey = groups.find(({ name }: { name: string }) => name === 'key:acme');
    expect(ofKey).toMatchObject({ waiting_elsewhere: elsewhere });
    const { waiters, waiting_elsewhere: none } = await waitersOf(wide);
    expect(waiters).toMatchObject([
      { waits_for: 'slots', needs: ['key:acme'] },
      { waits_for: 'slots', needs: ['key:acme'] },
    ]);
    expect(none).toEqual([]);
    expect(await statusOf(wide)).toMatchObject({
      waiting_for: { slots: 2 },
      needed_elsewhere: { 'key:acme': 2 },
    });
    expect(await statusOf(wide)).not.toHaveProperty('waiting_elsewhere');
    await finish(scene, calls);
    await allFree(wide, 'key:acme');
    expect(await statusOf('key:acme')).not.toHaveProperty('waiting_elsewhere');
  });

  it('tells its caller where it waits, and afterwards for what it did', async () => {
    const [holder, a, b] = await waitOfKey();
    const { groups } = await (await call('/status', ACME)).json<{ groups: object[] }>();
    expect(groups).toContainEqual(
      expect.objectContaining({
        name: wide,
        waiting: Array.from({ length: 2 }, () =>
          expect.objectContaining({ waits_for: 'slots', needs: ['key:acme'] }),
        ),
      }),
    );
    await finish(
      scene,
      [holder, a, b].flatMap((one) => one ?? []),
    );
    const response = await a?.response;
    expect(response?.headers.get('headgate-waited-for')).toBe(`slots; group=${wide}`);
    expect((await holder?.response)?.headers.get('headgate-waited-for')).toBeNull();
    await allFree(wide);
  });

  it('is told on a refusal what it waited for in vain', async () => {
    const [holder, a, b] = await waitOfKey();
    const headers = { ...keyHeader('acme'), 'headgate-max-wait': '5s' };
    const late = await call(CHAT, { json: bodyOf('late', false), headers });
    expect(late.headers.get('headgate-reason')).toBe('queue_timeout');
    expect(late.headers.get('headgate-waited-for')).toBe(`slots; group=${wide}`);
    await finish(
      scene,
      [holder, a, b].flatMap((one) => one ?? []),
    );
  });
});

const CAUSES: readonly [string, Parameters<typeof groupOf>[2], number][] = [
  ['operator_pause', { paused: true }, 4],
  ['slots', {}, 1],
  ['cap', { fairness: { by: ['caller'], max_concurrency_each: 1 } }, 4],
];

it.each(CAUSES)(
  'a call says that it waits for %s now, whatever it waited for when it came',
  async (cause, fields, slots) => {
    await configureGroups(scene, [groupOf(group, 1)]);
    const calls = [await streaming(scene, 'holder'), await queued(group, 'waits')];
    expect((await waitersOf(group)).waiters).toMatchObject([{ waits_for: 'slots' }]);
    await change('PUT', `/groups/${group}`, groupOf(group, slots, fields));
    await until(async () => {
      const { waiters } = await waitersOf(group);
      expect(waiters).toMatchObject([
        { waits_for: cause, ...(cause === 'cap' && { cap: 'tenant' }) },
      ]);
      expect(await statusOf(group)).toMatchObject({ waiting_for: { [cause]: 1 } });
      expect(await countedReasons(group)).toEqual({ [cause]: 1 });
    });
    const { waiters } = await waitersOf(group);
    expect(waiters[0].estimate_ms).toBeNull();
    await change('PUT', `/groups/${group}`, groupOf(group, 4));
    await finish(scene, calls);
    await allFree(group);
  },
);

it('a wait for a rate limit is estimated, though nothing ends', async () => {
  await configureGroups(scene, [groupOf(group, 4, { limits: { rpm: 1 } })]);
  const calls = [await streaming(scene, 'holder'), await queued(group, 'waits')];
  const { waiters } = await waitersOf(group);
  expect(waiters).toMatchObject([{ waits_for: 'rates' }]);
  expect(waiters[0].estimate_ms).toBeGreaterThan(1_000);
  await change('PUT', `/groups/${group}`, groupOf(group, 4));
  await finish(scene, calls);
  expect((await calls[1]?.response)?.headers.get('headgate-waited-for')).toBe(
    `rates; group=${group}`,
  );
  await allFree(group);
});

it('no wait is estimated while no call ends, and each place says so', async () => {
  const keepalive = { after_ms: 100, every_ms: 1_000 };
  await configureGroups(scene, [groupOf(group, 1, { queue: { keepalive } })]);
  await finish(scene, [ask('quick')]);
  await scene.strict.configure({ silentAfterChunks: 1 });
  const holder = await streaming(scene, 'holder');
  const { reader } = await keptAlive(CHAT, { json: bodyOf('waits') });
  await untilStatus(group, { queued: 1 });
  // Five times the mean hold has passed, and two seconds at least.
  await until(async () => {
    const { stalled_ms: stalledMs } = await pool(group).status();
    expect(stalledMs).toBeGreaterThan(2_000);
  });
  expect((await waitersOf(group)).waiters).toMatchObject([
    { waits_for: 'slots', estimate_ms: null },
  ]);
  await readUntil(
    reader,
    /: headgate waiting for a slot: 0 ahead, no estimate: no call has ended for \d+ s\n\n/,
  );
  const impatient = await call(CHAT, {
    json: bodyOf('impatient', false),
    headers: { 'headgate-max-wait': '0' },
  });
  expect(Number(impatient.headers.get('retry-after'))).toBeGreaterThanOrEqual(15);
  await reader.cancel();
  holder.leave();
  await allFree(group);
});
