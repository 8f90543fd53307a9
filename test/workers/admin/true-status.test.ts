// What the status says of a group in a word, and of its last hour: whatever becomes of its object.
import { beforeEach, expect, it, vi } from 'vitest';
import { configSchema, type ConfigInput } from '../../../src/contract/config/config.ts';
import { directoryOf } from '../../../src/env.ts';
import { pool, request, resetPool, take } from '../support/pool.ts';
import { passTime, stopTime } from '../support/time.ts';
import { env, noteVersion, until } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

async function put(config: ConfigInput): Promise<void> {
  const { version = 0 } = (await directoryOf(env).snapshot(null)) ?? {};
  noteVersion(await directoryOf(env).replace(configSchema.parse(config), version, 'test', 'reset'));
}

const shown = async (name: string) =>
  bodyOf(await asAdmin('GET /groups/{name}/status', { params: { name } }));

beforeEach(() => {
  passTime(0);
  return () => void vi.restoreAllMocks();
});

it('a group with free slots that waits for a rate is rate limited, and full only where its slots are', async () => {
  await put({ groups: [{ name: 'rated', limits: { max_concurrency: 2, rpm: 60 } }] });
  // What is used up stays so: a second later there is room for one call again.
  stopTime();
  let served = 0;
  for (; served < 200; served += 1) {
    const { rates } = await shown('rated');
    if ((rates?.['rpm']?.left ?? 0) < 1) break;
    const { lease } = await take('rated', `r${served}`);
    await lease.release('success', 200);
  }
  expect(served).toBeGreaterThan(0);
  expect(await shown('rated')).toMatchObject({
    state: 'rate limited',
    rate_used_up: 'rpm',
    in_use: 0,
  });
  await put({ groups: [{ name: 'rated', limits: { max_concurrency: 1 } }] });
  await until(async () => expect((await shown('rated')).state).toBe('flowing'));
  const { lease } = await take('rated', 'last');
  expect((await shown('rated')).state).toBe('full');
  await lease.release('success', 200);
});

it('a budget without room is told, also after a reset of the object, until it is raised', async () => {
  // Of this day, whatever the clock says.
  stopTime();
  const budget = (per_day: number) => ({
    groups: [{ name: 'paid', limits: { budget_usd: { per_day } } }],
  });
  await put(budget(0.000001));
  const price = { input: 0.001, output: 0.001 };
  const estimate = { inputTokens: 1_000, maxOutputTokens: 10, reserve: 'none', price } as const;
  const refused = await pool('paid').acquire(request('paid', 'dear', { estimate }));
  expect(refused).toMatchObject({ kind: 'rejected', rejection: { reason: 'budget_exhausted' } });
  expect(await shown('paid')).toMatchObject({
    state: 'budget spent',
    budget_spent: { window: 'day', limit_usd: 0.000001 },
    last_hour: { rejected: { budget_exhausted: 1 } },
  });
  await resetPool('paid');
  expect(await shown('paid')).toMatchObject({
    state: 'budget spent',
    budget_spent: { window: 'day', limit_usd: 0.000001 },
  });
  await put(budget(5));
  await until(async () => expect((await shown('paid')).state).toBe('flowing'));
});

it('a budget without room is none any more once it is taken away, or a call was granted since', async () => {
  stopTime();
  const paid = { name: 'once-paid', limits: { max_concurrency: 2 } };
  await put({ groups: [{ ...paid, limits: { budget_usd: { per_day: 0.01 } } }] });
  const price = { input: 0.001, output: 0.001 };
  const dear = { inputTokens: 1_000, maxOutputTokens: 10, reserve: 'none', price } as const;
  const refuse = (ticket: string) =>
    pool('once-paid').acquire(request('once-paid', ticket, { estimate: dear }));
  await refuse('dear');
  expect((await shown('once-paid')).state).toBe('budget spent');
  const { lease } = await take('once-paid', 'cheap');
  await lease.release('success', 200);
  expect((await shown('once-paid')).state).toBe('flowing');
  await resetPool('once-paid');
  expect((await shown('once-paid')).state).toBe('flowing');
  await refuse('dear-again');
  expect((await shown('once-paid')).state).toBe('budget spent');
  await put({ groups: [paid] });
  await until(async () => expect((await shown('once-paid')).state).toBe('flowing'));
});

it('the last hour outlives a reset of the object, and the totals since its start do not', async () => {
  await put({ groups: [{ name: 'hourly', limits: { max_concurrency: 2 } }] });
  for (const ticket of ['a', 'b', 'c']) {
    const { lease } = await take('hourly', ticket);
    if (ticket === 'c') {
      const said = { retryAfterMs: null, slotsMax: null, hints: [] };
      await lease.report({ kind: 'never_fits', ...said }, false);
    }
    await lease.release('success', 200);
  }
  passTime(120_000);
  const { lease } = await take('hourly', 'd');
  await lease.release('success', 200);
  const before = await shown('hourly');
  expect(before).toMatchObject({ granted_total: 4, last_hour: { granted: 4 } });
  const { refused, wait_p95_ms } = before.last_hour.steps;
  expect([refused.length, wait_p95_ms.length]).toEqual([12, 12]);
  await resetPool('hourly');
  expect(await shown('hourly')).toMatchObject({
    granted_total: 0,
    last_hour: { granted: 4, refusals: { never_fits: 1 } },
  });
  passTime(3_600_000);
  expect((await shown('hourly')).last_hour).toMatchObject({ granted: 0, refusals: {} });
});

it('a group whose upstream refuses all calls says so with the message, and flows again once one is served', async () => {
  await put({ groups: [{ name: 'refusing', limits: { max_concurrency: 2 } }] });
  const refuse = async (ticket: string) => {
    const { lease } = await take('refusing', ticket);
    const said = { retryAfterMs: null, slotsMax: null, hints: [], words: 'quota exceeded' };
    await lease.report({ kind: 'quota', ...said }, false);
    await lease.release('failed', 429);
  };
  expect(await shown('refusing')).toMatchObject({ state: 'flowing' });
  for (const ticket of ['a', 'b', 'c', 'd', 'e', 'f']) await refuse(ticket);
  const reported = {
    state: 'refused by upstream',
    lately: { served: 0, is_failing: true, refusals: { quota: 6 }, ended: { failed: 6 } },
    upstreams: [{ last_refusals: [{ kind: 'quota', status: 429, message: 'quota exceeded' }] }],
  };
  expect(await shown('refusing')).toMatchObject(reported);
  const { lease } = await take('refusing', 'served');
  await lease.release('success', 200);
  expect(await shown('refusing')).toMatchObject({ state: 'flowing', lately: { served: 1 } });
  // Without calls it is idle, whatever happened before.
  passTime(60_000);
  await refuse('later');
  passTime(60_000);
  await refuse('later-still');
  expect((await shown('refusing')).state).toBe('refused by upstream');
  passTime(240_000);
  expect((await shown('refusing')).state).toBe('flowing');
});

it('a group whose upstream answers all calls with an error status is not flowing, until one is served', async () => {
  await put({ groups: [{ name: 'declining', limits: { max_concurrency: 2 } }] });
  for (const ticket of ['a', 'b', 'c']) {
    const { lease } = await take('declining', ticket);
    await lease.release('success', 401);
  }
  expect(await shown('declining')).toMatchObject({
    state: 'refused by upstream',
    lately: { served: 0, is_failing: true, answered_errors: { '401': 3 } },
  });
  await resetPool('declining');
  expect((await shown('declining')).state).toBe('refused by upstream');
  const { lease } = await take('declining', 'served');
  await lease.release('success', 200);
  expect(await shown('declining')).toMatchObject({ state: 'flowing', lately: { served: 1 } });
});
