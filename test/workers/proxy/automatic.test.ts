// An operator pauses, drains and resumes groups that Headgate made by itself. The upstream counts.
import { abortAllDurableObjects } from 'cloudflare:test';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { poolName } from '../../../src/contract/pool-name.ts';
import type { PoolStatus } from '../../../src/contract/status.ts';
import {
  nothingLeaks,
  pool,
  queueUp,
  request,
  tables,
  untilStatus,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import {
  admin,
  change,
  configure,
  env,
  open,
  until,
  type WorkerOpenCall,
} from '../support/worker.ts';

const GROUP = 'auto:up';
const PATH = `/groups/${encodeURIComponent(GROUP)}`;

let strict: Strict;
let keys = 0;
/** The pools of keys that have had a success: they are stored. */
const verified: string[] = [];

beforeEach(async () => {
  strict = await strictScope('automatic', { silentAfterChunks: 1 });
  await configure({ upstreams: [{ id: 'up', base_url: strict.url }] });
});

afterAll(nothingLeaks);

/** A provider key that no other test uses, and where its calls go. */
interface AutomaticKey {
  readonly key: string;
  readonly partition: string;
  readonly pool: string;
}

async function newKey(): Promise<AutomaticKey> {
  keys += 1;
  const key = `sk-automatic-${keys}`;
  const { json } = await admin('POST', '/fingerprint', { key });
  const partition = json.fingerprint as string;
  return { key, partition, pool: poolName(GROUP, partition) };
}

/** A key that has had a success, so that its pool is listed. */
async function verifiedKey(): Promise<AutomaticKey> {
  const one = await newKey();
  await finish([await streaming(one, 'proves')]);
  await until(async () => {
    const listed = (await directoryOf(env).pools()).map(({ partition }) => partition);
    expect(listed).toContain(one.partition);
  });
  verified.push(one.pool);
  return one;
}

function ask(
  { key }: AutomaticKey,
  label: string,
  headers: Record<string, string> = {},
): WorkerOpenCall {
  const path = '/up/v1/chat/completions';
  return open(path, label, { headers: { authorization: `Bearer ${key}`, ...headers } });
}

async function streaming(key: AutomaticKey, label: string): Promise<WorkerOpenCall> {
  const { inFlight } = await strict.stats();
  const call = ask(key, label);
  await until(async () => expect((await strict.stats()).inFlight).toBe(inFlight + 1));
  return call;
}

/** Asks as a call that does not want to wait. */
async function refusal(key: AutomaticKey) {
  const { status, headers } = await ask(key, 'at-once', { 'headgate-max-wait': '0' }).response;
  return { status, reason: headers.get('headgate-reason') };
}

const PAUSED = { status: 503, reason: 'paused' };
const DRAINING = { status: 503, reason: 'draining' };

async function finish(calls: readonly WorkerOpenCall[]): Promise<void> {
  await strict.configure({ silentAfterChunks: null });
  await strict.resume();
  expect(await Promise.all(calls.map(({ end }) => end))).toEqual(calls.map(() => 'done'));
  await strict.configure({ silentAfterChunks: 1 });
}

async function arrived(): Promise<(string | null)[]> {
  return (await strict.stats()).arrivals.map(({ label }) => label);
}

describe('a pause of an automatic group', () => {
  it('holds what waits, in pools that nobody has called before too, until it is resumed', async () => {
    const known = await verifiedKey();
    const running = await streaming(known, 'runs');
    await change('POST', `${PATH}/pause`);
    await untilStatus(known.pool, { paused: true });
    const fresh = await newKey();
    expect(await refusal(known)).toEqual(PAUSED);
    expect(await refusal(fresh)).toEqual(PAUSED);
    const waiting = ask(known, 'waits');
    await untilStatus(known.pool, { in_use: 1, queued: 1 });
    await finish([running]);
    await untilStatus(known.pool, { in_use: 0, queued: 1 });
    expect(await arrived()).toEqual(['proves', 'runs']);
    await change('POST', `${PATH}/resume`);
    await until(async () => expect(await arrived()).toEqual(['proves', 'runs', 'waits']));
    const first = await streaming(fresh, 'first');
    await finish([waiting, first]);
  });

  it('survives resets of everything', async () => {
    const known = await verifiedKey();
    const fresh = await newKey();
    await change('POST', `${PATH}/pause`);
    await untilStatus(known.pool, { paused: true });
    for (const name of verified) await untilWrittenEmpty(name);
    await abortAllDurableObjects();
    expect(await pool(known.pool).status()).toMatchObject({ paused: true });
    expect(await refusal(known)).toEqual(PAUSED);
    expect(await refusal(fresh)).toEqual(PAUSED);
    await abortAllDurableObjects();
    // It keeps nothing, and asks anew.
    expect(await tables(fresh.pool)).toEqual([]);
    expect(await refusal(fresh)).toEqual(PAUSED);
    await change('POST', `${PATH}/resume`);
    await finish([await streaming(known, 'known'), await streaming(fresh, 'fresh')]);
  });

  it('ends for who waits in a pool that is told nothing, when it asks again', async () => {
    const { partition, pool: name } = await newKey();
    const { json } = await change('POST', `${PATH}/pause`);
    const fields = {
      group: GROUP,
      partition,
      assumed: { slotsMax: 2, source: 'unknown' as const },
      configVersion: json.version as number,
    };
    const { answer } = await queueUp(name, 'waits', fields);
    await change('POST', `${PATH}/resume`);
    const again = pool(name).acquire(request(name, 'waits', fields));
    expect((await answer).kind).toBe('pending');
    const granted = await again;
    if (granted.kind !== 'granted') throw new Error(granted.kind);
    await granted.lease.release('cancelled', null);
  });

  it('is of that group alone', async () => {
    await configure({
      upstreams: [{ id: 'up', base_url: strict.url }],
      auto_groups: [{ name: 'auto:openai', paused: true, draining: true }],
    });
    await finish([await streaming(await newKey(), 'passes')]);
    expect(await arrived()).toEqual(['passes']);
  });
});

it('a drained automatic group refuses who comes, and lets its queue and its calls end', async () => {
  const known = await verifiedKey();
  await change('POST', `${PATH}/pause`);
  await untilStatus(known.pool, { paused: true });
  const waiting = ask(known, 'waits');
  await untilStatus(known.pool, { queued: 1 });
  await change('POST', `${PATH}/resume`);
  await until(async () => expect(await arrived()).toContain('waits'));
  await change('POST', `${PATH}/drain`);
  await untilStatus(known.pool, { draining: true, in_use: 1 });
  expect(await refusal(known)).toEqual(DRAINING);
  expect(await refusal(await newKey())).toEqual(DRAINING);
  await finish([waiting]);
  await change('POST', `${PATH}/resume`);
  await finish([await streaming(known, 'again')]);
});

async function untilLimit(
  { pool: name }: AutomaticKey,
  limit: Partial<PoolStatus['limit']>,
): Promise<void> {
  await until(async () => expect((await pool(name).status()).limit).toMatchObject(limit));
}

describe('an automatic group that gets an entry', () => {
  it('keeps who runs and who waits; then its new limit holds for them', async () => {
    const known = await verifiedKey();
    const running = [await streaming(known, 'one'), await streaming(known, 'two')];
    const { json } = await change('POST', `${PATH}/configure`);
    const { effective: slots } = (await pool(known.pool).status()).limit;
    expect(json.group.limits.max_concurrency).toBe(slots);
    await untilLimit(known, { source: 'configured' });
    await untilStatus(known.pool, { in_use: 2 });
    await change('PATCH', PATH, { limits: { max_concurrency: 1 } });
    const waiting = ask(known, 'waits');
    await untilStatus(known.pool, { in_use: 2, queued: 1 });
    const [first, ...others] = running;
    first?.leave();
    // One slot less: the one that came free is gone.
    await untilStatus(known.pool, { in_use: 1, queued: 1 });
    expect(await arrived()).not.toContain('waits');
    await finish([...others, waiting]);
    expect(await arrived()).toContain('waits');
    await change('DELETE', PATH);
    await untilLimit(known, { effective: slots, source: 'unknown' });
  });

  it('keeps what its pools have learned', async () => {
    const known = await verifiedKey();
    await strict.configure({ limit: 2 });
    const calls = ['one', 'two', 'three'].map((label) => ask(known, label));
    await untilLimit(known, { source: 'learned' });
    const { effective } = (await pool(known.pool).status()).limit;
    await change('POST', `${PATH}/configure`);
    await untilLimit(known, { configured: 64, effective, source: 'learned' });
    expect(effective).toBeLessThan(64);
    await strict.configure({ limit: null });
    await finish(calls);
    await change('DELETE', PATH);
  });

  it('counts tokens and money once it is limited by them', async () => {
    const known = await verifiedKey();
    await change('PATCH', PATH, { limits: { rpd: 1 } });
    await finish([await streaming(known, 'the only one')]);
    expect(await refusal(known)).toMatchObject({ status: 429 });
    await change('PATCH', PATH, {
      limits: { rpd: null, budget_usd: { per_day: 1, fallback_price: { input: 1, output: 1 } } },
    });
    await finish([await streaming(known, 'paid')]);
    await until(async () => {
      const { spend } = await pool(known.pool).status();
      expect(spend?.day_usd).toBeGreaterThan(0);
    });
    await change('DELETE', PATH);
    await untilLimit(known, { source: 'unknown' });
  });

  it('leaves calls to a group that matches them', async () => {
    await change('PATCH', PATH, { limits: { max_concurrency: 0 } });
    await change('PUT', '/groups/narrower', { match: { models: ['*'] } });
    await finish([await streaming(await newKey(), 'passes')]);
    expect(await arrived()).toEqual(['passes']);
    await change('DELETE', '/groups/narrower');
  });
});
