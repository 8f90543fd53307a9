// An operator pauses, drains and resumes groups that Headgate made by itself. The upstream counts.
import { abortAllDurableObjects } from 'cloudflare:test';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { poolName } from '../../../src/contract/pool-name.ts';
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
import { admin, change, configure, env, open, until, type OpenCall } from '../support/worker.ts';

const GROUP = 'auto:up';
const PATH = `/groups/${encodeURIComponent(GROUP)}`;

let strict: Strict;
let keys = 0;
/** The pools of keys that have had a success: they are stored. */
const proved: string[] = [];

beforeEach(async () => {
  strict = await strictScope('automatic', { silentAfterChunks: 1 });
  await configure({ upstreams: [{ id: 'up', base_url: strict.url }] });
});

afterAll(nothingLeaks);

/** A provider key that no other test uses, and where its calls go. */
interface Key {
  readonly key: string;
  readonly partition: string;
  readonly pool: string;
}

async function newKey(): Promise<Key> {
  keys += 1;
  const key = `sk-automatic-${keys}`;
  const { json } = await admin('POST', '/fingerprint', { key });
  const partition = json.fingerprint as string;
  return { key, partition, pool: poolName(GROUP, partition) };
}

/** A key that has had a success, so that its pool is listed. */
async function provedKey(): Promise<Key> {
  const one = await newKey();
  await finish([await streaming(one, 'proves')]);
  await until(async () => {
    const listed = (await directoryOf(env).pools()).map(({ partition }) => partition);
    expect(listed).toContain(one.partition);
  });
  proved.push(one.pool);
  return one;
}

function ask({ key }: Key, label: string, headers: Record<string, string> = {}): OpenCall {
  const path = '/up/v1/chat/completions';
  return open(path, label, { headers: { authorization: `Bearer ${key}`, ...headers } });
}

async function streaming(key: Key, label: string): Promise<OpenCall> {
  const { inFlight } = await strict.stats();
  const call = ask(key, label);
  await until(async () => expect((await strict.stats()).inFlight).toBe(inFlight + 1));
  return call;
}

/** Asks as a call that does not want to wait. */
async function refusal(key: Key) {
  const { status, headers } = await ask(key, 'at-once', { 'headgate-max-wait': '0' }).response;
  return { status, reason: headers.get('headgate-reason') };
}

const PAUSED = { status: 503, reason: 'paused' };
const DRAINING = { status: 503, reason: 'draining' };

async function finish(calls: readonly OpenCall[]): Promise<void> {
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
    const known = await provedKey();
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
    const known = await provedKey();
    const fresh = await newKey();
    await change('POST', `${PATH}/pause`);
    await untilStatus(known.pool, { paused: true });
    for (const name of proved) await untilWrittenEmpty(name);
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
  const known = await provedKey();
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
