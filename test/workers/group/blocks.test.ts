// Rates and budgets are written in blocks, ahead of their use: most grants write nothing of them, a reset loses one
// block at the most, and gives nobody a second helping.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { BoundStore } from '../../../src/group/bound-store.ts';
import {
  crashPool,
  define,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  request,
  take,
  untilWrittenEmpty,
  type PoolGranted,
} from '../support/pool.ts';
import { stopTime } from '../support/time.ts';

const SLOTS = 64;
/** A block of it is a second: ten requests. */
const RATES = { limits: { max_concurrency: SLOTS, rpm: 600 } };
const BLOCK = 10;

/** A block of it is a 400th: 0.025 USD. */
const PER_DAY_USD = 10;
const BUDGET = { per_hour: null, per_day: PER_DAY_USD, per_month: null, fallback_price: null };

// What a minute has left depends on the time.
beforeAll(stopTime);

afterAll(nothingLeaks);

/** Takes so many slots one after the other. */
async function takeMany(name: string, count: number): Promise<PoolGranted[]> {
  const held: PoolGranted[] = [];
  for (let at = 0; at < count; at += 1) held.push(await take(name, `t${at}`));
  return held;
}

async function left(name: string): Promise<number> {
  return (await pool(name).status()).rates?.['rpm']?.left ?? Number.NaN;
}

const USED = { requests: 1, inputTokens: 0, outputTokens: 0, usd: 0, seen: null };

async function endAll(held: readonly PoolGranted[]): Promise<void> {
  await Promise.all(held.map(({ lease }) => lease.release('success', 200, USED)));
}

it('grants eat a block and write nothing of it until it is empty', async () => {
  await define('eaten', SLOTS, RATES);
  const write = vi.spyOn(BoundStore.prototype, 'write');
  // The first, the twelfth and the 23rd find none left.
  const held = await takeMany('eaten', 23);
  const kept = write.mock.calls.filter(([{ kept: one }]) => one !== null);
  write.mockRestore();
  expect(kept).toHaveLength(3);
  await endAll(held);
});

it('a grant beyond the block is behind the write of the next one', async () => {
  await define('behind', SLOTS, RATES);
  const held = await takeMany('behind', 11);
  const ahead = await inside('behind', async (instance, state) => {
    const seen: number[] = [];
    const read = () => {
      const [row] = state.storage.sql
        .exec<{ used: number }>(
          `SELECT json_extract(value, '$.rates.windows.rpm.bins[0][1]')
             + json_extract(value, '$.ahead.rpm') AS used FROM memory WHERE key = 'controls'`,
        )
        .toArray();
      seen.push(row?.used ?? 0);
    };
    read();
    const { kind } = await instance.acquire(request('behind', 'more'));
    if (kind !== 'granted') throw new Error(kind);
    read();
    return seen;
  });
  // All of those, and a block.
  expect(ahead).toEqual([11, 12 + BLOCK]);
  await endAll(held);
  await pool('behind').release('more.1', 'unused', null);
});

it.each([
  ['right after it was written', 12],
  ['half of which is used', 17],
  ['all of which is used', 22],
])('a reset loses the rest of a block %s', async (_, calls) => {
  const name = `lost-${calls}`;
  await define(name, SLOTS, RATES);
  await takeMany(name, calls);
  const before = await left(name);
  await crashPool(name);
  expect(await left(name)).toBe(before - (12 + BLOCK - calls));
  await passAwake(name, LEASE_TTL_MS);
});

it('a pool that is written empty loses nothing', async () => {
  await define('exact', SLOTS, RATES);
  await endAll(await takeMany('exact', 15));
  await untilWrittenEmpty('exact');
  const before = await left('exact');
  expect(before).toBeLessThan(600);
  await crashPool('exact');
  expect(await left('exact')).toBe(before);
});

it('money that calls have reserved stays reserved after a reset, and counts as spent once nobody comes for it', async () => {
  await define('money', SLOTS, { limits: { max_concurrency: SLOTS, budget_usd: BUDGET } });
  const price = { input: 0.0001, output: 0 };
  const estimate = { inputTokens: 100, maxOutputTokens: null, reserve: 'none', price } as const;
  for (let at = 0; at < 5; at += 1) await take('money', `t${at}`, { estimate });
  const before = (await pool('money').status()).spend;
  expect(before?.reserved_usd).toBeCloseTo(0.05, 9);
  await crashPool('money');
  const { spend } = await pool('money').status();
  const reserved = spend?.reserved_usd ?? 0;
  expect(reserved).toBeGreaterThanOrEqual(0.05 - 1e-9);
  expect(reserved).toBeLessThanOrEqual(0.05 + PER_DAY_USD / 400);
  await passAwake('money', LEASE_TTL_MS);
  const after = (await pool('money').status()).spend;
  expect(after?.reserved_usd).toBeCloseTo(0, 9);
  expect(after?.day_usd).toBeCloseTo(reserved, 9);
});
