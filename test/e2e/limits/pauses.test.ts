import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';

import { until } from '../support/lifecycle-wait.ts';
import { endingsOf } from '../support/limits-load.ts';
import { startScopes } from '../support/limits-stage.ts';

const SLOTS = 8;
const WAITING = 9;
const RETRY_AFTER_MS = 2_000;

/** After a pause a quarter of the slots comes back, twice as many after each two seconds. */
const RAMP = [
  { beforeMs: 2_000, slots: 2 },
  { beforeMs: 4_000, slots: 4 },
];

const KINDS = ['requests', 'tokens'] as const;
const LANES = ['high', 'normal', 'low'];

let stage: LifecycleStage;

beforeAll(async () => {
  const group = { limits: { max_concurrency: SLOTS } };
  stage = await startScopes(
    KINDS.map((id) => ({ id, group })),
    { chunks: 10, chunkDelayMs: 100, failWaitMs: RETRY_AFTER_MS },
  );
});

afterAll(() => stage.close());

/** How many calls were at the upstream when each of them arrived, itself included. */
function inFlightAtArrivals(kind: string): { readonly at: number; readonly inFlight: number }[] {
  const { arrivals } = stage.upstream.stats(kind);
  return arrivals.map(({ at }) => ({
    at,
    inFlight: arrivals.filter((other) => other.at <= at && (other.endedAt ?? Infinity) > at).length,
  }));
}

it.concurrent.each(KINDS)(
  'a 429 for %s with Retry-After stops everybody, nobody comes earlier, and all are served, a few at first',
  async (kind) => {
    const { upstream, admin } = stage;
    const stats = () => upstream.stats(kind);
    const path = `/${kind}/v1/chat/completions`;
    const silent = { 'x-strict-silent-after-chunks': '1' };
    const held = Array.from({ length: SLOTS }, (_, i) =>
      openChat(stage.url(), { path, label: `held-${i}`, headers: silent }),
    );
    await until('all slots are taken', () => stats().inFlight === SLOTS);
    const waiting: LifecycleOpenCall[] = [];
    for (let at = 0; at < WAITING; at += 1) {
      const headers = { 'headgate-lane': LANES[at % LANES.length] ?? '' };
      const call = { path, label: `waiting-${at}`, headers };
      waiting.push(openChat(stage.url(), call));
    }
    await admin.untilGroup(kind, { in_use: SLOTS, queued: WAITING });
    upstream.failNext(1, kind, kind);
    held.shift()?.leave('RST');
    await until('one is refused', () => stats().refusals.length === 1);
    const refusedAt = stats().refusals[0]?.at ?? NaN;
    // What is in flight goes on to its end.
    await delay(RETRY_AFTER_MS / 4);
    upstream.resume(kind);
    expect(await endingsOf(held)).toEqual({ 200: SLOTS - 1 });
    expect(stats().inFlight).toBe(0);

    expect(await endingsOf(waiting)).toEqual({ 200: WAITING });
    const after = inFlightAtArrivals(kind).filter(({ at }) => at > refusedAt);
    expect(after).toHaveLength(WAITING);
    expect((after[0]?.at ?? NaN) - refusedAt).toBeGreaterThanOrEqual(RETRY_AFTER_MS);
    for (const { beforeMs, slots } of RAMP) {
      const few = after.filter(({ at }) => at < refusedAt + RETRY_AFTER_MS + beforeMs);
      expect(Math.max(...few.map(({ inFlight }) => inFlight))).toBeLessThanOrEqual(slots);
    }
    expect(stats()).toMatchObject({ rejected429: 1, completed: SLOTS - 1 + WAITING });
  },
);
