/** Why calls waited, whose they were, and minutes of which nothing is known: what a history tells of yesterday. */
import { beforeAll, describe, expect, it } from 'vitest';
import { historySchema } from '../../../src/admin/resources/history.ts';
import { MINUTE_MS } from '../../../src/contract/history.ts';
import { directoryOf } from '../../../src/env.ts';
import {
  crashPool,
  inside,
  NO_COOLDOWN,
  passAwake,
  pool,
  queueUp,
  resetPool,
  take,
} from '../support/pool.ts';
import { passTime, stopTime } from '../support/time.ts';
import { admin, configure, env } from '../support/worker.ts';

beforeAll(async () => {
  stopTime();
  const group = (name: string, slots = 1) => ({
    name,
    match: { models: [name] },
    limits: { max_concurrency: slots },
    holds: NO_COOLDOWN,
  });
  await configure({
    groups: [
      ...['told', 'left', 'rows', 'late', 'quiet'].map((name) => group(name)),
      group('long', 2),
      group('many', 20),
      { ...group('parts'), partition_by: ['caller'] },
    ],
  });
});

/** Goes to the beginning of the next minute. */
function beginMinute(): number {
  passTime(MINUTE_MS - (Date.now() % MINUTE_MS));
  return Date.now();
}

/** Has one call hold the only slot of a pool while another one waits for it. */
async function waitOnce(name: string, holder: string, waiter: string, ms: number): Promise<void> {
  const first = await take(name, `${holder}-${Date.now()}`, { tenant: holder });
  const second = await queueUp(name, `${waiter}-${Date.now()}`, { tenant: waiter });
  await passAwake(name, ms);
  await first.lease.release('success', 200);
  const answer = await second.answer;
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  await answer.lease.release('success', 200);
}

async function historyOf(name: string, query = '') {
  const { json } = await admin('GET', `/groups/${name}/history${query}`);
  return historySchema.parse(json);
}

describe('a minute', () => {
  it('tells what calls waited for, and whose waited and held longest', async () => {
    beginMinute();
    await waitOnce('told', 'holder', 'waiter', 8_000);
    const { points } = await historyOf('told');
    expect(points.at(-1)).toMatchObject({
      waited_for: { slots: 1 },
      waited_for_ms: { slots: 8_000 },
      tenants_waited: [{ tenant: 'waiter', ms: 8_000 }],
      tenants_held: [{ tenant: 'holder', ms: 8_000 }],
    });
  });

  it('counts holds that go on as far as they lie in it', async () => {
    const from = beginMinute();
    const { lease } = await take('long', 'stream', { tenant: 'streams' });
    for (let times = 0; times < 2; times += 1) {
      const renewed = lease.renew(null);
      await passAwake('long', 35_000);
      expect(await renewed).toBe('ok');
    }
    const open = await pool('long').history(from, Date.now() + 1, MINUTE_MS);
    expect(open.points.map(({ tenantsHeld }) => tenantsHeld)).toEqual([
      [['streams', MINUTE_MS]],
      [['streams', 10_000]],
    ]);
    await lease.release('success', 200);
  });

  it('counts who left without a slot, and not who did not wait', async () => {
    const from = beginMinute();
    const { lease } = await take('left', 'holds', { tenant: 'holder' });
    const { answer } = await queueUp('left', 'leaves', { tenant: 'impatient' });
    await passAwake('left', 4_000);
    await pool('left').cancel('leaves');
    await answer;
    await lease.release('success', 200);
    const { points } = await pool('left').history(from, Date.now() + 1, MINUTE_MS);
    expect(points).toMatchObject([
      { waitedFor: { slots: 1 }, tenantsWaited: [['impatient', 4_000]], granted: 1 },
    ]);
  });

  it('names five tenants, and cuts their names', async () => {
    const from = beginMinute();
    const calls = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        take('many', `many-${index}`, { tenant: `${index}${'x'.repeat(300)}` }),
      ),
    );
    await passAwake('many', 1_000);
    for (const { lease } of calls) await lease.release('success', 200);
    const { points } = await pool('many').history(from, Date.now() + 1, MINUTE_MS);
    const [point] = points;
    expect(point?.tenantsHeld).toHaveLength(5);
    expect(point?.tenantsHeld?.map(([tenant]) => tenant.length)).toEqual([128, 128, 128, 128, 128]);
  });

  it('of several pools is joined, with three tenants of each kind', async () => {
    const from = beginMinute();
    for (const partition of ['one', 'two', 'three', 'four']) {
      await directoryOf(env).list({ group: 'parts', partition });
      await waitOnce(`parts#${partition}`, `h-${partition}`, `w-${partition}`, 4_000);
    }
    const { points } = await historyOf('parts', `?from=${from}`);
    expect(points).toHaveLength(1);
    expect(points[0]?.waited_for).toEqual({ slots: 4 });
    expect(points[0]?.tenants_waited).toHaveLength(3);
  });

  it('is one row, as before', async () => {
    beginMinute();
    for (let call = 0; call < 3; call += 1) await waitOnce('rows', 'h', 'w', 4_000);
    const counted = (table: string) =>
      inside(
        'rows',
        (_instance, { storage }) =>
          storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).one().n,
      );
    beginMinute();
    await pool('rows').status();
    await resetPool('rows');
    expect(await counted('history')).toBe(1);
  });
});

describe('time of which nothing is known', () => {
  it('is told after a reset with calls in flight, and no more than was lost', async () => {
    const from = beginMinute();
    const { lease } = await take('told', 'lost', { tenant: 'x' });
    await passAwake('told', 20_000);
    const crashedAt = Date.now();
    await crashPool('told');
    lease[Symbol.dispose]();
    passTime(5_000);
    const { gaps } = await historyOf('told', `?from=${from}`);
    expect(gaps).toHaveLength(1);
    const [gap] = gaps;
    expect(gap?.partition).toBe(null);
    expect(Date.parse(gap?.from ?? '')).toBe(from);
    expect(Date.parse(gap?.to ?? '')).toBeGreaterThanOrEqual(crashedAt);
    expect(Date.parse(gap?.to ?? '')).toBeLessThanOrEqual(crashedAt + 5_000);
  });

  it('ends a TTL after the last write, however late somebody asks, and stays told', async () => {
    const from = beginMinute();
    await take('late', 'lost', { tenant: 'x' });
    await crashPool('late');
    passTime(30 * MINUTE_MS);
    const first = await pool('late').history(from, Date.now() + 1, MINUTE_MS);
    expect(first.gaps).toEqual([{ from, to: from + 45_000 }]);
    await resetPool('late');
    const again = await pool('late').history(from + 10_000, from + 20_000, MINUTE_MS);
    expect(again.gaps).toEqual([{ from: from + 10_000, to: from + 20_000 }]);
    const after = await pool('late').history(from + MINUTE_MS, Date.now() + 1, MINUTE_MS);
    expect(after.gaps).toEqual([]);
  });

  it('is none where nothing ran', async () => {
    const from = beginMinute();
    const { lease } = await take('quiet', 'short');
    await lease.release('success', 200);
    await resetPool('quiet');
    passTime(10 * MINUTE_MS);
    const { gaps, points } = await pool('quiet').history(from, Date.now() + 1, MINUTE_MS);
    expect([gaps, points.length]).toEqual([[], 1]);
  });
});
