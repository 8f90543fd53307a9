// Limits of members, by the upstream's own count of each key: no key has more calls under way than its limit, and what one
// key refuses no caller hears of while another serves.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { open, until, type WorkerOpenCall } from '../support/worker.ts';
import {
  ask,
  KEY,
  newScene,
  SECRETS,
  type MemberHere,
  type MembersScene,
} from './members-scene.ts';

afterAll(nothingLeaks);

const { UPSTREAM_A: A, UPSTREAM_B: B } = SECRETS;

const two = (slots: number): readonly MemberHere[] => [
  { name: 'a', secret: 'UPSTREAM_A', limits: { max_concurrency: slots } },
  { name: 'b', secret: 'UPSTREAM_B', limits: { max_concurrency: slots } },
];

/** A call whose stream is open until the upstream goes on. */
function stream(at: MembersScene, label: string): WorkerOpenCall {
  const messages = [{ role: 'user', content: label }];
  const headers = { ...KEY, 'x-strict-silent-after-chunks': '1' };
  return open(at.path(), label, { json: { model: 'm', stream: true, messages }, headers });
}

/** Makes calls all at once, and counts the answers by their status. */
async function load(at: MembersScene, calls: number): Promise<Record<number, number>> {
  const headers = { ...KEY, 'x-strict-first-byte-delay-ms': '30' };
  const all = await Promise.all(
    Array.from({ length: calls }, async (_, n) => (await ask(at, `call ${n}`, { headers })).status),
  );
  const counts: Record<number, number> = {};
  for (const status of all) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describe('each key has its own limit', () => {
  it('which is used in full, and never exceeded', async () => {
    const at = await newScene({
      members: two(3),
      settings: { here: { limitsByKey: { [A]: 3, [B]: 3 } } },
    });
    expect(await load(at, 40)).toEqual({ 200: 40 });
    const { keys, rejected429, peak } = await at.here.stats();
    expect([keys[A]?.peak, keys[B]?.peak, peak, rejected429]).toEqual([3, 3, 6, 0]);
  });

  it('within that of the group', async () => {
    const at = await newScene({ members: two(3), group: { limits: { max_concurrency: 4 } } });
    expect(await load(at, 20)).toEqual({ 200: 20 });
    expect((await at.here.stats()).peak).toBe(4);
  });

  it('and a stream holds its slot to the last byte', async () => {
    const at = await newScene({ members: two(1) });
    const held = [stream(at, 'one'), stream(at, 'two')];
    await until(async () => expect((await at.here.stats()).inFlight).toBe(2));
    for (const one of held) expect((await one.response).status).toBe(200);
    const third = ask(at, 'third');
    await untilStatus(at.group, { in_use: 2, queued: 1 });
    expect((await at.here.stats()).total).toBe(2);
    await at.here.resume();
    expect(await Promise.all(held.map(({ end }) => end))).toEqual(['done', 'done']);
    expect((await third).status).toBe(200);
    const { keys } = await at.here.stats();
    expect([keys[A]?.peak, keys[B]?.peak]).toEqual([1, 1]);
  });
});

describe('no caller hears', () => {
  it('that a key takes fewer at once than was said', async () => {
    const at = await newScene({
      members: two(4),
      settings: { here: { limitsByKey: { [A]: 2, [B]: 4 } } },
    });
    expect(await load(at, 60)).toEqual({ 200: 60 });
    const { keys } = await at.here.stats();
    expect(keys[B]?.rejected429).toBe(0);
    expect(keys[A]?.rejected429).toBeGreaterThan(0);
  });

  it('that a key is revoked while calls are under way', async () => {
    const at = await newScene({ members: two(4) });
    expect(await load(at, 16)).toEqual({ 200: 16 });
    await at.here.configure({ byKey: { [A]: { status: 401 } } });
    expect(await load(at, 40)).toEqual({ 200: 40 });
    // It is out after the first refusals, of the calls that were granted there meanwhile.
    const { total = 0 } = (await at.here.stats()).keys[A] ?? {};
    expect(await load(at, 20)).toEqual({ 200: 20 });
    expect((await at.here.stats()).keys[A]?.total).toBe(total);
  });
});

it('the cost of a call is that of the member where it ran', async () => {
  const prices = (usd: number) => ({ prices: { m: { input: usd, output: usd } } });
  const at = await newScene({
    members: [{ name: 'dear', at: 'there', secret: 'UPSTREAM_B' }],
    upstreams: { here: prices(100_000), there: prices(300_000) },
    settings: { there: { inputTokens: 10, outputTokens: 5 } },
    group: { limits: { budget_usd: { per_day: 1_000_000 } } },
  });
  const { status } = await ask(at, 'call');
  expect(status).toBe(200);
  await until(async () => {
    const { spend } = await pool(at.group).status();
    expect(spend).toMatchObject({ day_usd: 4.5, reserved_usd: 0 });
  });
});

it('and is set aside as such, whatever it would cost where it was called', async () => {
  const prices = (usd: number) => ({ prices: { m: { input: 0, output: usd } } });
  const at = await newScene({
    members: [
      { name: 'dear', at: 'there', secret: 'UPSTREAM_B', limits: { max_concurrency: 1 } },
      { name: 'cheap', secret: 'UPSTREAM_A', tier: 2 },
    ],
    upstreams: { here: prices(100_000), there: prices(300_000) },
    group: { limits: { budget_usd: { per_day: 1_000_000 } } },
  });
  const headers = { ...KEY, 'x-strict-silent-after-chunks': '1' };
  const messages = [{ role: 'user', content: 'held' }];
  const json = { model: 'm', stream: true, max_tokens: 10, messages };
  const reserved: (number | undefined)[] = [];
  const held: WorkerOpenCall[] = [];
  for (const label of ['first', 'second']) {
    const one = open(at.path(), label, { json, headers });
    held.push(one);
    expect((await one.response).status).toBe(200);
    reserved.push((await pool(at.group).status()).spend?.reserved_usd);
  }
  expect(reserved).toEqual([3, 4]);
  await Promise.all([at.here.resume(), at.there.resume()]);
  expect(await Promise.all(held.map(({ end }) => end))).toEqual(['done', 'done']);
});

it('a member whose price nobody knows runs nothing where a budget is to hold', async () => {
  const at = await newScene({
    members: [
      { name: 'unpriced', secret: 'UPSTREAM_A' },
      { name: 'priced', at: 'there', secret: 'UPSTREAM_B', tier: 2 },
    ],
    upstreams: {
      here: { prices: { other: { input: 1, output: 1 } } },
      there: { prices: { m: { input: 1, output: 1 } } },
    },
    group: { limits: { budget_usd: { per_day: 1_000 } } },
  });
  expect((await ask(at, 'call')).headers.get('headgate-member')).toBe('priced');
});
