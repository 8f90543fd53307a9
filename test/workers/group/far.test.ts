// Waiters that nobody is parked for: what an operator decides of them reaches their callers when they ask again.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import type { AcquireAnswer } from '../../../src/contract/rpc/group-rpc.ts';
import type { RequestFields } from '../../support/requests.ts';
import { NEAR_PLACES, ORPHAN_GRACE_MS } from '../../../src/core/words/settings.ts';
import {
  define,
  inside,
  learnSlow,
  nothingLeaks,
  pool,
  request,
  resetPool,
  storedBound,
  take,
  untilWrittenEmpty,
  releaseById,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { until } from '../support/worker.ts';

const SLICE_MS = 8_000;

const NO_NEED: RequestFields = { sliceMs: SLICE_MS, mayAskLater: true };

const QUEUE = { max_length: 1_000, timeout_ms: 3_600_000 } as const;

let groups = 0;
let name = '';
let release: () => Promise<void>;

const ask = (ticketId: string, fields: RequestFields = {}): Promise<AcquireAnswer> =>
  pool(name).acquire(request(name, ticketId, { ...NO_NEED, ...fields }));

/** Fills a pool with one slot so far that whoever comes is far back. */
beforeEach(async () => {
  name = `far-${groups++}`;
  await define(name, 1, { queue: QUEUE as never });
  await learnSlow(name);
  const holder = await take(name, 'holder');
  await inside(name, (instance) => {
    for (let at = 0; at < NEAR_PLACES; at += 1) {
      instance
        .acquire(request(name, `near-${at}`, { sliceMs: 3_600_000 }))
        .then(async (answer) => {
          if (answer.kind === 'granted') await answer.lease.release('unused', null);
        })
        .catch(() => undefined);
    }
  });
  release = () => holder.lease.release('unused', null);
  await ask('far');
});

afterAll(nothingLeaks);

async function queued(): Promise<number> {
  return (await pool(name).status()).queued;
}

/** Lets everybody have his turn. */
async function end(): Promise<void> {
  await release();
  await until(async () => expect(await queued()).toBe(0));
}

it('a waiter far back is sent away at once, and has its turn in its place when it asks', async () => {
  expect(await ask('far')).toMatchObject({
    kind: 'pending',
    position: NEAR_PLACES,
    askAgainMs: SLICE_MS,
  });
  const behind = pool(name).acquire(request(name, 'behind', { sliceMs: 3_600_000 }));
  await until(async () => expect(await queued()).toBe(NEAR_PLACES + 2));
  await inside(name, async (instance) => {
    for (let at = 0; at < NEAR_PLACES; at += 1) await instance.cancel(`near-${at}`);
  });
  const far = ask('far', { sliceMs: 60_000 });
  await until(async () => expect((await pool(name).waiters())[0]?.ticket).toBe('far'));
  await release();
  const granted = await far;
  if (granted.kind !== 'granted') throw new Error(granted.kind);
  await granted.lease.release('unused', null);
  const after = await behind;
  if (after.kind !== 'granted') throw new Error(after.kind);
  await after.lease.release('unused', null);
});

it('one that an operator took out is refused when it asks again', async () => {
  expect(await pool(name).dismiss('far')).toBe(true);
  expect(await queued()).toBe(NEAR_PLACES);
  for (let times = 0; times < 2; times += 1) {
    expect(await ask('far')).toMatchObject({
      kind: 'rejected',
      rejection: { reason: 'cancelled' },
    });
  }
  await end();
});

it('every one of as many as may wait hears that an operator took it out', async () => {
  const names = Array.from({ length: 850 }, (_, at) => `more-${at}`);
  await Promise.all(names.map((ticket) => ask(ticket)));
  await inside(name, async (instance) => {
    for (const ticket of names) await instance.dismiss(ticket);
  });
  await pool(name).dismiss('far');
  const answers = await Promise.all([...names, 'far'].map((ticket) => ask(ticket)));
  expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['rejected']));
  await end();
});

it('one that an operator put first is the next once it asks again', async () => {
  expect(await pool(name).promote('far', null, true)).toBe(true);
  expect((await pool(name).waiters())[0]?.ticket).toBe('far');
  const far = ask('far', { sliceMs: 60_000 });
  await until(async () => expect((await pool(name).status()).queued).toBeGreaterThan(0));
  await release();
  const granted = await far;
  if (granted.kind !== 'granted') throw new Error(granted.kind);
  expect(await queued()).toBe(NEAR_PLACES);
  await granted.lease.release('unused', null);
  await until(async () => expect(await queued()).toBe(0));
});

it('one whose calls may go another way now is sent back once, and is new here after that', async () => {
  const config = JSON.stringify(
    groupSchema.parse({ name, limits: { max_concurrency: 1 }, queue: QUEUE }),
  );
  await pool(name).reconfigure({ version: 2, routingVersion: 2, config });
  expect(await queued()).toBe(0);
  expect(await ask('far', { configVersion: 2 })).toEqual({ kind: 'moved', configVersion: 2 });
  const again = ask('far', { configVersion: 2 });
  await until(async () => expect(await queued()).toBe(1));
  await pool(name).cancel('far');
  expect(await again).toMatchObject({ kind: 'gone' });
  await release();
});

it('one that a change makes too large hears of it when it asks again', async () => {
  const estimate = {
    inputTokens: 900,
    maxOutputTokens: null,
    reserve: 'none',
    price: null,
  } as const;
  await ask('wide', { estimate });
  const limits = { max_concurrency: 1, tpm: 500 };
  const config = JSON.stringify(groupSchema.parse({ name, limits, queue: QUEUE }));
  await pool(name).reconfigure({ version: 2, routingVersion: 0, config });
  expect(await ask('wide', { configVersion: 2, estimate })).toMatchObject({
    kind: 'rejected',
    rejection: { reason: 'never_fits' },
  });
  await inside(name, async (instance) => {
    for (let at = 0; at < NEAR_PLACES; at += 1) await instance.cancel(`near-${at}`);
    await instance.cancel('far');
  });
  await end();
});

it('one that nobody asks for any more is dropped', async () => {
  passTime(SLICE_MS + ORPHAN_GRACE_MS + 1);
  expect(await queued()).toBe(NEAR_PLACES);
  await end();
});

it('a reset finds how many waited', async () => {
  await pool(name).revoke('nobody.1');
  expect(await storedBound(name)).toMatchObject({ waiters: 32 });
  await resetPool(name);
  expect(await storedBound(name)).toMatchObject({ waiters: 32 });
  // The row listed them as heirs, any of which might have the holder's slot.
  for (let at = 0; at < NEAR_PLACES; at += 1) await pool(name).cancel(`near-${at}`);
  await releaseById(name, { leaseId: 'holder.1', attachment: null });
  await untilWrittenEmpty(name);
});
