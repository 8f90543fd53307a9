import { afterEach, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { footprint, storm } from '../support/made-up-keys.ts';

/**
 * Made-up keys, in the default set-up without gateway keys. Each would have a pool of its
 * own, and on plain workerd a file.
 */
/** Two bursts of one key stay below the eight calls after which its group would try a second one at once. */
const CALLS = 3;
const MADE_UP = 800;

/** Enough that every one of them would be seen. */
const FILES_MORE_MAX = 20;

/** Calls that are sent at once: more than may be in flight. */
const AT_ONCE = 2_000;
const IN_FLIGHT_MAX = 1_000;

/** Maximum of calls in flight from an address whose keys were refused. */
const IN_FLIGHT_REFUSED_MAX = 500;

/** Maximum of memory that they may add. */
const MEGABYTES_MORE_MAX = 500;

const PATH = '/zai/api/paas/v4/chat/completions';

let stage: LifecycleStage;

afterEach(() => stage.close());

/** Calls of one key at once, of which its limit lets one through at a time. */
function burst(key: string): Promise<number[]> {
  const calls = Array.from({ length: CALLS }, (_, at) =>
    openChat(stage.url(), { path: PATH, model: 'glm-5.1', key, label: `${key}-${at}` }),
  );
  return Promise.all(
    calls.map(async (call) => {
      const status = await call.answered;
      await call.ended;
      return status;
    }),
  );
}

const ALL_SERVED = Array.from({ length: CALLS }, () => 200);

it('keys that are made up leave no file and no pool behind, while right ones, known and new, have their limit', async () => {
  stage = await startStage({
    config: ({ url }) => ({ upstreams: [{ id: 'zai', base_url: url }] }),
    upstream: { limits: { 'glm-5.1': 1 }, chunks: 3, chunkDelayMs: 5 },
  });
  const { upstream, admin, dataDir } = stage;
  expect(await burst('known')).toEqual(ALL_SERVED);
  const before = await footprint(stage.workerdPid(), dataDir);
  const made = { url: stage.url(), keys: MADE_UP, keysPerSecond: 100, path: PATH };
  const storming = storm({ ...made, inFlightMax: IN_FLIGHT_REFUSED_MAX - 10 });
  await until('the storm is on', () => upstream.stats().total > 100);
  expect(await burst('known')).toEqual(ALL_SERVED);
  expect(await burst('new')).toEqual(ALL_SERVED);
  expect((await storming).statuses).toEqual({ 401: MADE_UP });
  // One call at a time of each key, as the upstream counts them: more of one would have been refused.
  expect(upstream.stats()).toMatchObject({
    rejected429: 0,
    models: { 'glm-5.1': { peak: 1 } },
  });
  const after = await footprint(stage.workerdPid(), dataDir);
  expect(after.files - before.files).toBeLessThan(FILES_MORE_MAX);
  await until('unused connections and objects are gone', async () => {
    const { open } = await footprint(stage.workerdPid(), dataDir);
    return open < before.open + FILES_MORE_MAX;
  });
  await admin.untilIdle();
});

it('however many come at once, few are under way, and a key that had its success is served meanwhile', async () => {
  stage = await startStage({
    config: ({ url }) => ({ upstreams: [{ id: 'zai', base_url: url }] }),
    upstream: { limits: { 'glm-5.1': 1 }, chunks: 3, chunkDelayMs: 5 },
  });
  const { upstream, dataDir } = stage;
  expect(await burst('known')).toEqual(ALL_SERVED);
  const before = await footprint(stage.workerdPid(), dataDir);
  const slow = { 'x-strict-first-byte-delay-ms': '5000' };
  const many = { url: stage.url(), keys: AT_ONCE, keysPerSecond: AT_ONCE, path: PATH };
  const storming = storm({ ...many, headers: slow });
  await until('the storm is on', () => upstream.stats().inFlight > 100);
  expect(await burst('known')).toEqual(ALL_SERVED);
  const { statuses } = await storming;
  expect((statuses[401] ?? 0) + (statuses[429] ?? 0)).toBe(AT_ONCE);
  expect(upstream.stats().peak).toBeLessThanOrEqual(IN_FLIGHT_MAX + 1);
  const after = await footprint(stage.workerdPid(), dataDir);
  expect(after.megabytes - before.megabytes).toBeLessThan(MEGABYTES_MORE_MAX);
  // Who was turned away, or comes for the first time, is served as well.
  expect(await burst('new')).toEqual(ALL_SERVED);
});

it('what right keys have opened is closed when nobody uses it', async () => {
  stage = await startStage({
    config: ({ url }) => ({ upstreams: [{ id: 'zai', base_url: url }] }),
    upstream: { limits: { 'glm-5.1': 1 } },
  });
  const { dataDir } = stage;
  const before = await footprint(stage.workerdPid(), dataDir);
  const keys = Array.from({ length: FILES_MORE_MAX }, (_, at) => `right-${at}`);
  expect(await Promise.all(keys.map(burst))).toEqual(keys.map(() => ALL_SERVED));
  await until('the files of their pools are closed', async () => {
    const { open } = await footprint(stage.workerdPid(), dataDir);
    return open < before.open + FILES_MORE_MAX;
  });
});

it('who sends them waits, whatever it says of its address, and nobody else', async () => {
  stage = await startStage({
    config: ({ url }) => ({ upstreams: [{ id: 'zai', base_url: url }] }),
  });
  const [here, there] = ['127.0.0.1', '127.0.0.2'];
  const first = { url: stage.url(), keys: 20, keysPerSecond: 100, path: PATH, from: there };
  expect((await storm(first)).statuses).toEqual({ 401: 20 });
  const chat = (key: string, from: string, headers = {}): Promise<string> => {
    const call = openChat(stage.url(), { path: PATH, key, label: key, from, headers });
    return call.answered.then(() => key);
  };
  const forged = { 'cf-connecting-ip': here, 'x-forwarded-for': here, 'headgate-cf': '{}' };
  const waits = chat('waits', there, forged);
  // Sent after it, and let through before it: it is one second late.
  expect(await Promise.race([waits, chat('waits-not', here)])).toBe('waits-not');
  expect(await waits).toBe('waits');
  // It had its success.
  const another = chat('waits-too', there);
  expect(await Promise.race([another, chat('waits', there)])).toBe('waits');
  expect(await another).toBe('waits-too');
});
