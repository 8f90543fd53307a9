// Two thousand who wait and two hundred who hold, all of them as a Worker's calls do, through a reset of their object.
import { afterAll, expect, it, vi } from 'vitest';
import { acquireSlot, type WaitTerms } from '../../../src/call/acquire/acquire-slot.ts';
import { LeaseHolder } from '../../../src/call/acquire/lease-holder.ts';
import { LEASE_TTL_MS, settleMs } from '../../../src/core/words/settings.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { onTimer } from '../../../src/runtime/async.ts';
import { passTime, stopTime, withoutLongTimers } from '../support/time.ts';
import {
  crashPool,
  define,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  request,
  storedBound,
} from '../support/pool.ts';

const NAME = 'herd';
const HOLDERS = 200;
const WAITERS = 2_000;

/** Calls that end before, so that the group knows that they are short, and all who wait are parked. */
const SHORT_CALLS = 10;

/** Longer than anybody waits who comes back, and shorter than the object waits for them. */
const RETURN_MS_MAX = 2_200;

/** Two thousand calls take their time where the machine is busy with other things. */
const BUSY = { timeout: 120_000, interval: 200 };

const PATIENCE: WaitTerms = {
  signal: new AbortController().signal,
  after: onTimer,
  listener: null,
  until: Infinity,
  bypass: () => Promise.resolve(null),
};

const work: Promise<unknown>[] = [];
const ctx = { waitUntil: (one: Promise<unknown>) => void work.push(one) };

afterAll(nothingLeaks);

let sent = 0;

/** Waits for a slot as a call does. Returns who holds it then. */
async function hold(ticketId: string): Promise<LeaseHolder> {
  // Two calls of one Worker never came at the same time.
  const enqueuedAt = Date.now() - 10_000 + (sent += 1);
  const wanted = { ...request(NAME, ticketId, { enqueuedAt }), sliceMs: undefined };
  const source = () => pool(NAME);
  const acquired = await acquireSlot(source, wanted as never, PATIENCE);
  if (acquired.kind !== 'granted') throw new Error(`${ticketId}: ${acquired.kind}`);
  const { granted } = acquired;
  const self = { ...request(NAME, ticketId), leaseId: granted.leaseId };
  const holder = new LeaseHolder(source, self, granted, ctx, onTimer);
  holder.keep(() => undefined);
  return holder;
}

/** Counts the acquire calls that are parked: one for each who waits, once all are back. */
function countParked(): () => number {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { acquire } = GroupObject.prototype;
  let parked = 0;
  vi.spyOn(GroupObject.prototype, 'acquire').mockImplementation(async function counted(
    this: GroupObject,
    asked,
  ) {
    parked += 1;
    try {
      return await acquire.call(this, asked);
    } finally {
      parked -= 1;
    }
  });
  return () => parked;
}

/** Marks the instance that lives now, to find out whether it is still the same. */
const MARK = Symbol('the instance after the reset');

const isMarked = (): Promise<boolean> => inside(NAME, (instance) => MARK in instance);

it('are all served in their order, and the object is not reset again', async () => {
  const queue = { max_length: WAITERS, timeout_ms: 3_600_000 };
  await define(NAME, HOLDERS, { queue: queue as never });
  for (let at = 0; at < SHORT_CALLS; at += 1) {
    await (await hold(`short-${at}`)).release('success');
  }
  const names = Array.from({ length: HOLDERS }, (_, at) => `holder-${at}`);
  const holders = await Promise.all(names.map(hold));
  const served: string[] = [];
  const waiting = Array.from({ length: WAITERS }, async (_, at) => {
    const holder = await hold(`waiter-${at}`);
    served.push(`waiter-${at}`);
    await holder.release('success');
  });
  await vi.waitFor(
    async () =>
      expect(await pool(NAME).status()).toMatchObject({ in_use: HOLDERS, queued: WAITERS }),
    BUSY,
  );
  // They renew from the first second on, and hear of the reset by that.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const { waiters = 0, mark = 0 } = (await storedBound(NAME)) ?? {};
  const settlingMs = settleMs(waiters, mark);
  expect(settlingMs, 'the time in which they come back').toBeGreaterThan(RETURN_MS_MAX);

  // On a busy machine they may need longer. By its timer alone the object would go on.
  stopTime();
  const timers = withoutLongTimers(RETURN_MS_MAX);
  await crashPool(NAME);
  const parked = countParked();
  await inside(NAME, (instance) => Object.assign(instance, { [MARK]: true }));
  await vi.waitFor(async () => {
    const { in_use, queued } = await pool(NAME).status();
    const found = { in_use, queued, parked: parked() };
    expect(found).toEqual({ in_use: HOLDERS, queued: WAITERS, parked: WAITERS });
  }, BUSY);
  await Promise.all(holders.map((holder) => holder.release('success')));
  timers.mockRestore();
  passTime(settlingMs - 1);
  expect(await pool(NAME).status()).toMatchObject({ in_use: 0, queued: WAITERS });
  passTime(1);
  await pool(NAME).status();
  await Promise.all(waiting);
  expect(served).toEqual(Array.from({ length: WAITERS }, (_, at) => `waiter-${at}`));
  expect(await isMarked(), 'it is the instance from after the reset').toBe(true);
  await Promise.all(work);
  // What was marked besides them is nobody's.
  await passAwake(NAME, LEASE_TTL_MS);
}, 300_000);
