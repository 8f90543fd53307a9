// The request that keeps a loan, against a scripted pool and a virtual clock.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type {
  GiveBackRequest,
  GroupRpc,
  KeepPrefetchAnswer,
  PrefetchReport,
  RenewAnswer,
} from '../../../src/contract/rpc/group-rpc.ts';
import {
  seeToKeeper,
  takeInPrefetched,
  type PrefetchContext,
} from '../../../src/call/acquire/prefetched-slots.ts';
import { LocalPrefetch, type LocalSlot } from '../../../src/call/acquire/local-prefetch.ts';
import { leaseId } from '../../../src/core/words/ids.ts';
import { onTimer, steadyClock } from '../../../src/runtime/async.ts';

/** An answer by which the loan is kept, and its renewals that are parked. */
interface LoanKeeperHold {
  readonly parked: PromiseWithResolvers<RenewAnswer>[];
  isDropped: boolean;
}

const PREFETCHED = { loan: leaseId('loan'), slots: ['a', 'b', 'c'].map(leaseId), attachment: 7 };

let prefetch: LocalPrefetch;
let holds: LoanKeeperHold[];
let isKnown: boolean;
let back: string[];
let pools = 0;
let way: PrefetchContext;

beforeEach(() => {
  // The clock is one of all tests in this process, and stands still until time has come to where others have set it.
  vi.useFakeTimers({ now: steadyClock.now() + 1 });
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  [holds, back, isKnown] = [[], [], true];
  const stub = { keepPrefetch: keepPrefetch, giveBack } as Partial<GroupRpc> as GroupRpc;
  const ctx = { waitUntil: (work: Promise<unknown>) => void work };
  way = { name: `pool-${(pools += 1)}`, pool: () => stub, ctx, after: onTimer };
  prefetch = new LocalPrefetch(PREFETCHED.loan, 1, steadyClock.now());
  prefetch.add(PREFETCHED);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function keepPrefetch(): Promise<KeepPrefetchAnswer> {
  if (!isKnown) return { kind: 'gone' };
  const hold: LoanKeeperHold = { parked: [], isDropped: false };
  holds.push(hold);
  const renew = (_report: PrefetchReport): Promise<RenewAnswer> => {
    const one = Promise.withResolvers<RenewAnswer>();
    hold.parked.push(one);
    // As the pool does when nothing happens.
    setTimeout(() => one.resolve('ok'), 1_000);
    return one.promise;
  };
  return { kind: 'kept', loan: { renew, [Symbol.dispose]: () => void (hold.isDropped = true) } };
}

async function giveBack({ slots }: GiveBackRequest): Promise<void> {
  back.push(...slots.map(({ slot }) => slot));
}

function take(): LocalSlot {
  const slot = prefetch.take();
  if (slot === null) throw new Error('none is free');
  return slot;
}

/** Has calls start and end for so long, all slots of the loan at once. */
async function callFor(ms: number): Promise<void> {
  for (let gone = 0; gone < ms; gone += 100) {
    const slots = [take(), take(), take()];
    seeToKeeper(prefetch, way);
    await vi.advanceTimersByTimeAsync(100);
    for (const slot of slots) prefetch.takeBack(slot);
  }
}

it('hands over to the next one after 20 s, and calls go on starting', async () => {
  await callFor(19_500);
  expect(holds).toHaveLength(1);
  await callFor(1_000);
  expect(holds.map(({ isDropped }) => isDropped)).toEqual([true, false]);
  expect(back).toEqual([]);
  await callFor(20_000);
  expect(holds.map(({ isDropped }) => isDropped)).toEqual([true, true, false]);
});

it('gives everything back soon after the last call, and ends', async () => {
  await callFor(1_500);
  await vi.advanceTimersByTimeAsync(600);
  expect(back.toSorted()).toEqual(['a', 'b', 'c']);
  expect(holds.map(({ isDropped }) => isDropped)).toEqual([true]);
  expect(prefetch.isEmpty).toBe(true);
});

it('gives back what is free once it is called back, and no call starts any more', async () => {
  const used = take();
  seeToKeeper(prefetch, way);
  await vi.advanceTimersByTimeAsync(100);
  const { renewedAt } = prefetch;
  holds[0]?.parked.at(-1)?.resolve('revoking');
  await vi.advanceTimersByTimeAsync(0);
  expect(back.toSorted()).toEqual(['a', 'b']);
  expect(prefetch.take()).toBeNull();
  // It says nothing of whether the slots are held.
  expect(prefetch.renewedAt).toBe(renewedAt);
  expect(prefetch.takeBack(used)).toBe(true);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(holds.map(({ isDropped }) => isDropped)).toEqual([true]);
});

it('gives back what is free where the loan is not known any more', async () => {
  isKnown = false;
  seeToKeeper(prefetch, way);
  await vi.advanceTimersByTimeAsync(0);
  expect(back.toSorted()).toEqual(['a', 'b', 'c']);
  expect(prefetch.isGone).toBe(true);
});

it('has slots go back at once that come after their loan was called back', async () => {
  takeInPrefetched(way, PREFETCHED, 1, steadyClock.now());
  await vi.advanceTimersByTimeAsync(100);
  holds[0]?.parked.at(-1)?.resolve('revoking');
  await vi.advanceTimersByTimeAsync(0);
  expect(back.toSorted()).toEqual(['a', 'b', 'c']);
  takeInPrefetched(
    way,
    { ...PREFETCHED, slots: [leaseId('d')], attachment: 8 },
    1,
    steadyClock.now(),
  );
  await vi.advanceTimersByTimeAsync(0);
  expect(back.at(-1)).toBe('d');
  expect(holds).toHaveLength(1);
});
