/** Markers of a group's history: what operators did, what the upstream made of it, and resets. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { callsSchema } from '../../../src/admin/resources/calls.ts';
import { historySchema } from '../../../src/admin/resources/history.ts';
import { POOL_MARKERS_MAX } from '../../../src/contract/history.ts';
import { SERVED, type UpstreamSignal } from '../../../src/core/words/signal.ts';
import { steadyClock } from '../../../src/runtime/async.ts';
import { inside, NO_COOLDOWN, pool, resetPool, take } from '../support/pool.ts';
import { passTime, stopTime } from '../support/time.ts';
import { admin } from '../support/worker.ts';

let groups = 0;

async function makeGroup(fields: object = {}): Promise<string> {
  groups += 1;
  const name = `marked-${groups}`;
  await admin('PUT', `/groups/${name}`, {
    limits: { max_concurrency: 20 },
    holds: NO_COOLDOWN,
    ...fields,
  });
  return name;
}

async function markersOf(name: string, query = '') {
  const { json } = await admin('GET', `/groups/${name}/history${query}`);
  return historySchema.parse(json).markers;
}

async function labelsOf(name: string): Promise<string[]> {
  return (await markersOf(name)).map(({ label }) => label);
}

let tickets = 0;

/** A call to which the upstream says that. */
async function answered(name: string, signal: Partial<UpstreamSignal>): Promise<void> {
  tickets += 1;
  const { lease } = await take(name, `marked-call-${tickets}`, { configVersion: 10_000 });
  await lease.report({ ...SERVED, ...signal }, false);
  await lease.release('refused', 429);
}

function rowsOf(name: string): Promise<number> {
  return inside(
    name,
    (_instance, state) =>
      state.storage.sql.exec<{ n: number }>('SELECT count(*) AS n FROM marker').one().n,
  );
}

beforeEach(async () => {
  await admin('PUT', '/config', {});
});

describe('what operators do', () => {
  it('is marked with who did it, and what was before', async () => {
    const name = await makeGroup();
    await admin('PATCH', `/groups/${name}`, { limits: { max_concurrency: 3 } });
    await admin('POST', `/groups/${name}/pause`);
    await admin('POST', `/groups/${name}/resume`);
    await admin('PATCH', `/groups/${name}`, { limits: { rpm: 60, tpm: 100 }, queue: null });
    await admin('PATCH', `/groups/${name}`, { warn_at: 0.5 });
    await admin('PUT', '/groups/another', {});
    const markers = await markersOf(name);
    expect(markers.map(({ kind, label }) => [kind, label])).toEqual([
      ['created', 'Created'],
      ['limit_changed', 'max_concurrency 20 → 3'],
      ['paused', 'Paused'],
      ['resumed', 'Resumed'],
      ['limit_changed', '2 limits'],
      ['edited', 'Edited'],
    ]);
    expect(markers.map(({ actor, partition }) => [actor, partition])).toEqual(
      markers.map(() => ['admin-token', null]),
    );
    expect(markers[4]?.detail).toBe('rpm none → 60; tpm none → 100, by admin-token');
    expect(markers[5]?.detail).toBe('warn_at, by admin-token');
  });

  it('is found in an import too, and not in what was done to another group', async () => {
    const name = await makeGroup();
    const limits = (max: number) => ({
      name,
      limits: { max_concurrency: max },
      holds: NO_COOLDOWN,
    });
    await admin('PUT', '/config', { groups: [limits(4), { name: `${name}-b`, paused: true }] });
    expect(await labelsOf(name)).toEqual(['Created', 'max_concurrency 20 → 4']);
    expect(await labelsOf(`${name}-b`)).toEqual(['Created']);
  });

  it('to the limits of a key is marked in its own group', async () => {
    await admin('POST', '/keys', { id: 'marked', limits: { max_concurrency: 2 } });
    await admin('PATCH', '/keys/marked', { limits: { max_concurrency: 1 } });
    expect(await labelsOf('key:marked')).toEqual(['Created', 'max_concurrency 2 → 1']);
  });

  it('is shown for the time that is asked for', async () => {
    const name = await makeGroup();
    const to = Date.now() - 60_000;
    expect(await markersOf(name, `?from=${to - 60_000}&to=${to}`)).toEqual([]);
  });
});

describe('what happens to a pool', () => {
  it.each<[string, Partial<UpstreamSignal>, string, string]>([
    ['requests', { kind: 'requests', retryAfterMs: 5_000 }, 'paused', 'Paused by the upstream'],
    ['headers', { retryAfterMs: 5_000 }, 'paused', 'Paused: limit nearly used up'],
    ['overload', { kind: 'overload' }, 'ceiling_cut', 'Learned ceiling 20 → 14'],
  ])('is marked with why: %s', async (what, signal, kind, label) => {
    const name = await makeGroup();
    await answered(name, signal);
    const [, marker] = await markersOf(name);
    expect(marker).toMatchObject({ kind, label, actor: null });
    expect(marker?.detail).toContain(what);
  });

  it('is marked when the breaker opens, and when it closes', async () => {
    const name = await makeGroup({ adaptive: 'off' });
    for (let call = 0; call < 10; call += 1) await answered(name, { kind: 'error' });
    passTime(60_000);
    for (let call = 0; call < 3; call += 1) await answered(name, {});
    expect(await labelsOf(name)).toEqual(['Created', 'Breaker opened', 'Breaker closed']);
  });

  it('is one marker a minute, however often, and outlives the instance', async () => {
    const name = await makeGroup();
    const held = [await take(name, `${name}-a`), await take(name, `${name}-b`)];
    for (const { lease } of held) {
      await lease.report({ ...SERVED, kind: 'requests', retryAfterMs: 1_000 }, false);
      passTime(5_000);
      await lease.report({ ...SERVED, kind: 'tokens', retryAfterMs: 1_000 }, false);
      passTime(5_000);
    }
    const paused = (await markersOf(name)).filter(({ kind }) => kind === 'paused');
    expect(paused).toHaveLength(1);
    expect(paused[0]?.detail).toContain('4 times within a minute');
    await expect.poll(() => rowsOf(name)).toBe(1);
    await resetPool(name);
    // The new instance begins with the first question, and so after the time that is asked for.
    await expect.poll(async () => (await markersOf(name)).length).toBe(3);
    const after = await markersOf(name);
    expect(after.map(({ kind }) => kind)).toEqual(['created', 'paused', 'reset']);
    expect(after[2]).toMatchObject({
      label: 'Object restarted',
      detail: 'Slots in use at its last write: 2',
    });
    for (const { lease } of held) lease[Symbol.dispose]();
    for (const { leaseId } of held) await pool(name).release(leaseId, 'unused', null);
  });

  it('is not marked where nothing was held when the instance ended', async () => {
    const name = await makeGroup();
    await answered(name, {});
    await resetPool(name);
    expect(await labelsOf(name)).toEqual(['Created']);
  });

  it('costs no row for calls that are served, and a bounded number for what goes on and on', async () => {
    const name = await makeGroup({ adaptive: 'off' });
    for (let call = 0; call < 20; call += 1) await answered(name, {});
    expect(await rowsOf(name)).toBe(0);
    await inside(name, (_instance, state) => {
      const marker = JSON.stringify({ at: 1, kind: 'reset', times: 1, why: null, figures: {} });
      state.storage.sql.exec(
        `INSERT INTO marker (sequence, at, data)
         WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?)
         SELECT n, 1, ? FROM counted`,
        2 * POOL_MARKERS_MAX,
        marker,
      );
    });
    await answered(name, { kind: 'requests', retryAfterMs: 1 });
    await expect.poll(() => rowsOf(name)).toBe(POOL_MARKERS_MAX);
    expect((await labelsOf(name)).at(-1)).toBe('Paused by the upstream');
  });

  it.each([0, 500])('is shown at once by a pool whose clock is %d ms ahead', async (aheadMs) => {
    const name = await makeGroup({ log: { sample: 1 } });
    stopTime();
    await admin('PATCH', `/groups/${name}`, { limits: { max_concurrency: 3 } });
    vi.spyOn(steadyClock, 'now').mockImplementation(() => Date.now() - aheadMs);
    await answered(name, { kind: 'requests', retryAfterMs: 5_000 });
    expect(await labelsOf(name)).toEqual([
      'Created',
      'max_concurrency 20 → 3',
      'Paused by the upstream',
    ]);
    const { json } = await admin('GET', `/calls?group=${name}`);
    expect(callsSchema.parse(json).calls).toHaveLength(1);
  });
});
