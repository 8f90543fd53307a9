// The Worker's asking against a real pool, where the call is so far back that nobody is parked for it.
import { afterAll, expect, it } from 'vitest';
import { acquireSlot, type WaitTerms } from '../../../src/call/acquire/acquire-slot.ts';
import { NEAR_PLACES } from '../../../src/core/words/settings.ts';
import { steadyClock, type Schedule } from '../../../src/runtime/async.ts';
import { define, inside, learnSlow, nothingLeaks, pool, request, take } from '../support/pool.ts';
import { until } from '../support/worker.ts';

const GROUP = 'far-asks';

afterAll(nothingLeaks);

/** A schedule whose time passes when the test says so. */
function heldSchedule() {
  const set = new Map<() => void, number>();
  const after: Schedule = (ms, run) => {
    set.set(run, ms);
    return () => set.delete(run);
  };
  const fire = (): void => {
    for (const run of set.keys()) {
      set.delete(run);
      run();
    }
  };
  return { after, fire, delays: () => [...set.values()] };
}

it('rests until it is to ask again, keeps its place, and has its slot from there', async () => {
  await define(GROUP, 1);
  await learnSlow(GROUP);
  const holder = await take(GROUP, 'holder');
  await inside(GROUP, (instance) => {
    for (let at = 0; at < NEAR_PLACES; at += 1) {
      instance.acquire(request(GROUP, `near-${at}`, { sliceMs: 3_600_000 })).catch(() => undefined);
    }
  });
  const { after, fire, delays } = heldSchedule();
  const patience: WaitTerms = {
    signal: new AbortController().signal,
    after,
    listener: null,
    until: steadyClock.now() + 240_000,
    bypass: () => Promise.resolve(null),
  };
  const asked = acquireSlot(() => pool(GROUP), request(GROUP, 'far'), patience);
  // As long as its first slice would have been, without the second by which a parked call is asked ahead.
  await until(() => expect(delays()).toEqual([8_000]));
  expect((await pool(GROUP).waiters()).at(-1)?.ticket).toBe('far');
  fire();
  await until(() => expect(delays()).toEqual([30_000]));
  await inside(GROUP, async (instance) => {
    for (let at = 0; at < NEAR_PLACES; at += 1) await instance.cancel(`near-${at}`);
  });
  fire();
  // Nobody is ahead any more: it is parked.
  await until(() => expect(delays()).toEqual([29_000]));
  await holder.lease.release('unused', null);
  const end = await asked;
  if (end.kind !== 'granted') throw new Error(end.kind);
  expect(delays()).toEqual([]);
  await end.granted.lease.release('unused', null);
});
