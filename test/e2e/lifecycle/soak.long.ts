import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { excesses, LimitHistory } from '../support/lifecycle-limits.ts';
import type { LifecycleRandom } from '../support/lifecycle-random.ts';
import { createRandom } from '../support/lifecycle-random.ts';
import { slotsOnDisk } from '../support/lifecycle-rows.ts';
import type { SoakCall } from '../support/lifecycle-soak.ts';
import { soakCall } from '../support/lifecycle-soak.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { clock, until } from '../support/lifecycle-wait.ts';

/**
 * Everything at once for minutes: streams, clients that leave, upstream connections that break, limits
 * that change, kills and restarts, over three Workers. The upstream's list of arrivals is held against
 * the limits that were in force; afterwards nothing may be left.
 */
const SOAK_MS = Number(process.env['HEADGATE_SOAK_S'] ?? '270') * 1_000;
const CLIENTS = 24;
const WORKERS = 3;
const FIRST_LIMIT = 4;
const LIMIT_MAX = 6;
const RESTART_EVERY_MS = 40_000;

/** How long after a restart calls may still fail for its sake: their client knew the old ports. */
const RESTART_ECHO_MS = 1_000;

let stage: LifecycleStage;

beforeAll(async () => {
  // The cool-down after a cancelled call is the time that the upstream has to see its end.
  const holds = { release_cooldown_ms: 0, cancel_cooldown_ms: 100, failure_hold_ms: 50 };
  // The limit in force is to be the configured one, whatever the upstream's errors would teach.
  const config = practiceConfig(FIRST_LIMIT, { holds, adaptive: 'off' });
  stage = await startStage({ config, workers: WORKERS });
});

afterAll(() => stage.close());

interface SoakSpan {
  readonly from: number;
  readonly to: number;
}

async function runClient(
  client: number,
  random: LifecycleRandom,
  endsAt: number,
): Promise<SoakCall[]> {
  const calls: SoakCall[] = [];
  while (clock() < endsAt) {
    const urls = stage.urls();
    const url = urls[random.between(0, urls.length - 1)] ?? '';
    const call = await soakCall(url, `${client}-${calls.length}`, random);
    calls.push(call);
    // Where nobody listens for a moment, a client does not try a thousand times a second.
    if (!call.asExpected) await delay(100);
  }
  return calls;
}

/** Changes limits all the time, and kills Headgate now and then; answers with the times of the latter. */
async function runOperator(
  random: LifecycleRandom,
  limits: LimitHistory,
  endsAt: number,
): Promise<SoakSpan[]> {
  const restarts: SoakSpan[] = [];
  let restartAt = clock() + RESTART_EVERY_MS;
  while (clock() < endsAt) {
    await delay(random.between(200, 3_000));
    const value = random.pick([
      [1, 0],
      [9, random.between(1, LIMIT_MAX)],
    ]);
    await limits.change(value, () => stage.admin.setLimit('practice', value));
    if (value === 0) await delay(500);
    if (clock() < restartAt) continue;
    restartAt = clock() + RESTART_EVERY_MS;
    const from = clock();
    await stage.kill9();
    await stage.start();
    restarts.push({ from, to: clock() + RESTART_ECHO_MS });
  }
  await limits.change(LIMIT_MAX, () => stage.admin.setLimit('practice', LIMIT_MAX));
  return restarts;
}

function tally(calls: readonly SoakCall[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { habit, outcome } of calls) {
    const name = `${habit}: ${outcome}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

it('a soak never exceeds the limit in force, and leaves nothing behind', async () => {
  const endsAt = clock() + SOAK_MS;
  const limits = new LimitHistory(FIRST_LIMIT);
  const operating = runOperator(createRandom(1), limits, endsAt);
  const clients = Array.from({ length: CLIENTS }, (_, i) =>
    runClient(i, createRandom(1_000 + i), endsAt),
  );
  const calls = (await Promise.all(clients)).flat();
  const restarts = await operating;
  const { admin, upstream } = stage;
  await admin.untilIdle();
  const stats = upstream.stats();
  console.log(
    `${calls.length} calls, ${restarts.length} restarts, peak ${stats.peak}`,
    tally(calls),
  );

  expect(excesses(stats.arrivals, limits)).toEqual([]);
  expect(stats.peak).toBeLessThanOrEqual(LIMIT_MAX);
  expect(stats.peak).toBeGreaterThan(1);
  expect(stats.inFlight).toBe(0);
  expect(stats.arrivals).toHaveLength(stats.total);

  const disturbed = ({ sentAt, endedAt }: SoakCall): boolean =>
    restarts.some(({ from, to }) => sentAt < to && endedAt > from);
  const odd = calls.filter((call) => !call.asExpected && !disturbed(call));
  expect(odd).toEqual([]);
  expect(calls.filter(({ outcome }) => outcome === 'hangs')).toEqual([]);

  const gauges = { in_use: 0, cooling: 0, queued: 0, expired_total: 0, resurrected_total: 0 };
  expect(await admin.group('practice')).toMatchObject(gauges);
  for (const url of stage.urls()) {
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ ok: true, calls_in_flight: 0 });
  }
  const isEmpty = async () => (await slotsOnDisk(stage.dataDir)) === 0;
  await until('it is written that nothing is held', isEmpty, { everyMs: 100 });
  await stage.stop();
  expect(await isEmpty()).toBe(true);
});
