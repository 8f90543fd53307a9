/** Past of a pool as told over its contract: counters, points in time and decisions. */
import { describe, expect, it } from 'vitest';
import { MINUTE_MS, QUARTER_MS } from '../../../src/contract/history.ts';
import { quantileMs } from '../../../src/core/parts/totals.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import {
  crashPool,
  define,
  inside,
  pool,
  queueUp,
  request,
  resetPool,
  take,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { until } from '../support/worker.ts';

const DAY_MS = 86_400_000;

/** Slots of the ring that are for minutes. */
const MINUTES = 1_440;

function historyRows(name: string): Promise<{ slot: number; at: number }[]> {
  return inside(name, (_instance, state) =>
    state.storage.sql
      .exec<{ slot: number; at: number }>('SELECT slot, at FROM history ORDER BY slot')
      .toArray(),
  );
}

/** Sets the clock so that no minute ends by itself, and none is left out whole by a jump. */
function beginMinute(): void {
  passTime(MINUTE_MS - (Date.now() % MINUTE_MS));
}

/** Holds a slot for some time of the shifted clock. */
async function callFor(group: string, ticket: string, heldMs: number): Promise<void> {
  const { lease } = await take(group, ticket);
  passTime(heldMs);
  await lease.release('success', 200);
}

describe('counters', () => {
  it('go over the contract', async () => {
    await define('counted', 1);
    const { lease } = await take('counted', 'a');
    const waiting = await queueUp('counted', 'b');
    passTime(4_000);
    await lease.release('success', 200);
    const second = await waiting.answer;
    if (second.kind !== 'granted') throw new Error(second.kind);
    await second.lease.release('failed', 429);
    const { waits, holds, ended_total, status, ...rest } = await pool('counted').metrics();
    expect(status).toMatchObject({ granted_total: 2, in_use: 0 });
    expect(ended_total).toEqual({ success: 1, failed: 1 });
    expect(quantileMs(waits.counts, 1)).toBe(5_120);
    expect(holds.sumMs).toBeGreaterThanOrEqual(4_000);
    expect(rest).toMatchObject({ granted_again_total: 0, left_total: 0, moved_total: 0 });
  });

  it('give the status its waits, of the last five minutes only', async () => {
    await define('quantiles', 1);
    expect(await pool('quantiles').status()).toMatchObject({ wait_p50_ms: null });
    await callFor('quantiles', 'a', 1_000);
    expect(await pool('quantiles').status()).toMatchObject({ wait_p50_ms: 5, wait_p95_ms: 10 });
    for (let minute = 0; minute < 7; minute += 1) {
      passTime(MINUTE_MS);
      await pool('quantiles').status();
    }
    expect(await pool('quantiles').status()).toMatchObject({ wait_p95_ms: null });
  });
});

describe('history', () => {
  it('tells of the open minute what happened in it', async () => {
    await define('open', 2);
    beginMinute();
    const held = await take('open', 'a');
    await pool('open').acquire(request('open', 'wide', { slots: 3 }));
    const { points, now } = await pool('open').history(
      Date.now() - MINUTE_MS,
      Date.now(),
      MINUTE_MS,
    );
    const last = points.at(-1);
    expect(last).toMatchObject({
      inUseMax: 1,
      limit: 2,
      limitConfigured: 2,
      granted: 1,
      rejected: { never_fits: 1 },
    });
    expect(now - (last?.at ?? 0)).toBeLessThan(MINUTE_MS);
    await held.lease.release('unused', null);
  });

  it('outlives the instance, with what a later one adds to the same minute', async () => {
    await define('kept', 2);
    const now = Date.now();
    beginMinute();
    await callFor('kept', 'a', 1_000);
    // The minute is not over: it is kept with the bound of the pool that fell idle.
    await untilWrittenEmpty('kept');
    expect(await historyRows('kept')).toEqual([]);
    await crashPool('kept');
    passTime(20_000);
    await callFor('kept', 'b', 1_000);
    const { points } = await pool('kept').history(now, now + DAY_MS, MINUTE_MS);
    expect(points).toHaveLength(1);
    expect(points[0]).toMatchObject({ granted: 2, inUseMax: 1 });
    expect(points[0]?.slotMs).toBeGreaterThanOrEqual(2_000);
  });

  it('costs one row for a minute full of calls, and none while nothing happens', async () => {
    await define('cheap', 5);
    beginMinute();
    const begin = await take('cheap', 'begin');
    for (let call = 0; call < 50; call += 1) {
      const { lease } = await take('cheap', `c${call}`);
      await lease.release('success', 200);
    }
    passTime(MINUTE_MS);
    await begin.lease.release('success', 200);
    await untilWrittenEmpty('cheap');
    const minutes = async () =>
      (await historyRows('cheap')).filter(({ slot }) => slot < MINUTES).length;
    // That of the calls. The one in which the last ended is not over.
    expect(await minutes()).toBe(1);
    passTime(MINUTE_MS);
    await pool('cheap').status();
    await until(async () => expect(await minutes()).toBe(2));
    for (let minute = 0; minute < 3; minute += 1) {
      passTime(MINUTE_MS);
      await pool('cheap').status();
    }
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(await minutes()).toBe(2);
  });

  it('keeps minutes for a day and quarters of an hour for longer, in as many rows', async () => {
    await define('long', 2);
    const from = Date.now();
    for (let day = 0; day < 3; day += 1) {
      await callFor('long', `d${day}`, 1_000);
      await untilWrittenEmpty('long');
      passTime(DAY_MS);
    }
    await callFor('long', 'last', 1_000);
    const asked = await pool('long').history(from - QUARTER_MS, Date.now() + 1, QUARTER_MS);
    expect(asked.points.map(({ granted }) => granted)).toEqual([1, 1, 1, 1]);
    // The ring of minutes has one slot for each minute of the day: later days are written over it.
    const minutes = (await historyRows('long')).filter(({ slot }) => slot < MINUTES);
    expect(new Set(minutes.map(({ slot }) => slot)).size).toBe(minutes.length);
  });

  it('adds steps up', async () => {
    await define('steps', 2);
    beginMinute();
    const from = Date.now();
    await callFor('steps', 'a', 90_000);
    await callFor('steps', 'b', 1_000);
    const { points } = await pool('steps').history(from - DAY_MS, Date.now() + 1, DAY_MS);
    const granted = points.reduce((sum, point) => sum + point.granted, 0);
    const slotMs = points.reduce((sum, point) => sum + point.slotMs, 0);
    expect(granted).toBe(2);
    expect(slotMs).toBeGreaterThanOrEqual(91_000);
    expect(slotMs).toBeLessThan(100_000);
  });
});

describe('decisions', () => {
  it('explain a call by its lease, with what the upstream said', async () => {
    await define('explained', 1);
    const first = await take('explained', 'a', { agent: 'run-1', model: 'gpt-4o' });
    const waiting = await queueUp('explained', 'b');
    passTime(3_000);
    await first.lease.report({ ...SERVED, kind: 'requests', retryAfterMs: 50 }, false);
    await first.lease.release('failed', 429);
    const second = await waiting.answer;
    if (second.kind !== 'granted') throw new Error(second.kind);
    const all = await pool('explained').decisions({});
    expect(all.map(({ lease }) => lease)).toEqual(['b.1', 'a.1']);
    expect(all[1]).toMatchObject({
      agent: 'run-1',
      outcome: 'granted',
      waited_for: null,
      upstream_status: 429,
      upstream_said: 'requests',
      upstream_retry_after_ms: 50,
      ended: 'failed',
    });
    const [found] = await pool('explained').decisions({ ids: [second.leaseId] });
    expect(found).toMatchObject({ lease: 'b.1', waited_for: 'slots', ended: null, held_ms: null });
    expect(found?.waited_ms).toBeGreaterThanOrEqual(3_000);
    await second.lease.release('success', 200);
  });

  it('are found by time, outcome and number', async () => {
    await define('found', 1);
    const { lease } = await take('found', 'a');
    const between = Date.now() + 500;
    passTime(1_000);
    await pool('found').acquire(request('found', 'b', { wait: false }));
    const ids = async (filter: object) =>
      (await pool('found').decisions(filter)).map(({ ticket }) => ticket);
    expect(await ids({ toMs: between })).toEqual(['a']);
    expect(await ids({ fromMs: between })).toEqual(['b']);
    expect(await ids({ decided: 'rejected' })).toEqual(['b']);
    expect(await ids({ limit: 1 })).toEqual(['b']);
    expect(await ids({ ids: ['nothing.1'] })).toEqual([]);
    expect((await pool('found').decisions({ decided: 'rejected' }))[0]?.rejection).toMatchObject({
      reason: 'busy',
    });
    await lease.release('unused', null);
  });

  it('are gone after a reset, as the leases that live on tell nothing of the past', async () => {
    await define('amnesia', 1);
    const { lease } = await take('amnesia', 'a');
    await resetPool('amnesia');
    expect(await pool('amnesia').decisions({})).toEqual([]);
    await pool('amnesia').release('a.1', 'success', 200);
    lease[Symbol.dispose]();
    expect(await pool('amnesia').decisions({})).toEqual([]);
  });
});
