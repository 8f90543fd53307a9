import { afterEach, beforeEach, expect, it } from 'vitest';
import { callerStatusSchema, type CallerStatus } from '../../../src/contract/caller-api.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { gatewayKey, PartyCalls } from '../support/order-load.ts';

/** Two callers share two slots, and one of them floods: what does the other see of its own calls? */
const LIMIT = 2;
const FLOOD = 60;
const QUIET = 3;

let stage: LifecycleStage;

beforeEach(async () => {
  stage = await startStage({
    config: (upstream) => ({
      ...(practiceConfig(LIMIT)(upstream) as object),
      keys: [gatewayKey('hg_flood'), gatewayKey('hg_quiet')],
    }),
    upstream: { limit: LIMIT, chunks: 3, chunkDelayMs: 30, silentAfterChunks: 1 },
  });
});

afterEach(() => stage.close());

async function statusOf(key: string): Promise<CallerStatus> {
  const response = await fetch(`${stage.url()}/status`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  return callerStatusSchema.parse(JSON.parse(text));
}

/** Positions of the quiet caller's calls, the next one first. */
async function positions(): Promise<readonly number[]> {
  const { groups } = await statusOf('hg_quiet');
  return groups.flatMap(({ waiting }) => waiting.map(({ position }) => position));
}

it('a caller beside one that floods sees its own calls move up, and none of the others', async () => {
  const { upstream, admin } = stage;
  const flood = new PartyCalls(stage.url(), { name: 'flood', key: 'hg_flood' }, 'shared');
  for (let i = 0; i < FLOOD; i += 1) flood.send();
  await admin.untilGroup('practice', { in_use: LIMIT, queued: FLOOD - LIMIT });
  const quiet = new PartyCalls(stage.url(), { name: 'quiet', key: 'hg_quiet' }, 'shared');
  for (let i = 0; i < QUIET; i += 1) quiet.send();
  await admin.untilGroup('practice', { queued: FLOOD - LIMIT + QUIET });

  const [first, last] = [await statusOf('hg_quiet'), await statusOf('hg_flood')];
  expect(first.groups).toHaveLength(1);
  expect(first.groups[0]).toMatchObject({ name: 'practice', in_flight: 0, slots_in_use: 0 });
  expect(first.groups[0]?.limits.slots).toBe(LIMIT);
  expect(first.groups[0]?.waiting).toHaveLength(QUIET);
  expect(JSON.stringify(first)).not.toContain('flood');
  expect(last.groups[0]).toMatchObject({ in_flight: LIMIT });
  expect(last.groups[0]?.waiting).toHaveLength(FLOOD - LIMIT);
  expect(JSON.stringify(last)).not.toContain('quiet');

  // Its three take turns with the flood, so they end long before that, and never move back.
  const before = await positions();
  upstream.configure({ silentAfterChunks: null });
  upstream.resume();
  let least: readonly number[] = before;
  await until('its calls have all left the queue', async () => {
    const now = await positions();
    expect(now.length).toBeLessThanOrEqual(least.length);
    least = now;
    return now.length === 0;
  });
  const { queued } = await admin.group('practice');
  expect(queued).toBeGreaterThan(0);
  await Promise.all([...flood.sent, ...quiet.sent].map(({ call }) => call.ended));
  await admin.untilIdle();
  expect((await statusOf('hg_quiet')).groups[0]).toMatchObject({ in_flight: 0, waiting: [] });
  expect(upstream.stats()).toMatchObject({ peak: LIMIT, completed: FLOOD + QUIET });
});

it('nobody is told anything without a key', async () => {
  const nobody = await fetch(`${stage.url()}/status`);
  expect([nobody.status, nobody.headers.get('content-type')]).toEqual([
    401,
    'application/problem+json',
  ]);
  await nobody.body?.cancel();
});
