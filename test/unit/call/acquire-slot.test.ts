// How a Worker asks for a slot, against a scripted object and a virtual clock: slices, asks that supersede
// each other, objects that hang, and answers that come too late.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type {
  AcquireAnswer,
  AcquireRequest,
  GroupRpc,
  LeaseRpc,
} from '../../../src/contract/rpc/group-rpc.ts';
import { steadyClock } from '../../../src/runtime/steady-clock.ts';
import { acquireSlot, type Acquired } from '../../../src/call/acquire/acquire-slot.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const REQUEST: Omit<AcquireRequest, 'sliceMs'> = {
  version: 1,
  group: 'g',
  partition: null,
  assumed: null,
  configVersion: 1,
  ticketId: 't',
  attempt: 1,
  enqueuedAt: 0,
  deadlineAt: null,
  wait: true,
  caller: 'c',
  agent: null,
  upstream: 'u',
  model: null,
  passedUnlimited: 0,
};

interface Ask {
  readonly request: AcquireRequest;
  readonly at: number;
  answer(answer: AcquireAnswer): void;
  fail(error: Error): void;
}

/** An object whose asks stay open until the test answers them. */
function scriptedPool() {
  const asks: Ask[] = [];
  const acquire = (request: AcquireRequest): Promise<AcquireAnswer> =>
    new Promise((resolve, reject) => {
      asks.push({ request, at: Date.now() - startedAt, answer: resolve, fail: reject });
    });
  const startedAt = Date.now();
  const stub = { acquire } as Partial<GroupRpc> as GroupRpc;
  return { asks, source: () => stub };
}

function granted(attachment: number) {
  const dispose = vi.fn<() => void>();
  const release = vi.fn<LeaseRpc['release']>(() => Promise.resolve());
  const lease = {
    renew: () => Promise.resolve('ok' as const),
    confirm: () => Promise.resolve(),
    report: () => Promise.resolve(),
    release,
    [Symbol.dispose]: dispose,
  };
  const answer = {
    kind: 'granted',
    lease,
    leaseId: 't.1',
    attachment,
    configVersion: 1,
  } satisfies AcquireAnswer;
  return { answer, dispose, release };
}

function pending(estimateMs: number): AcquireAnswer {
  return { kind: 'pending', position: 0, estimateMs, configVersion: 1 };
}

/** Starts asking, and tells what became of it so far. */
function start(of: Partial<AcquireRequest> = {}) {
  const pool = scriptedPool();
  const caller = new AbortController();
  const seen: { result: Acquired | null } = { result: null };
  const work = acquireSlot(pool.source, { ...REQUEST, ...of }, caller.signal).then((result) => {
    seen.result = result;
  });
  return { ...pool, caller, seen, work };
}

it('an ask is answered with a grant', async () => {
  const { asks, seen, work } = start();
  const { answer, dispose } = granted(1);
  asks[0]?.answer(answer);
  await work;
  expect(seen.result).toEqual({ kind: 'granted', granted: answer, late: [] });
  expect(dispose).not.toHaveBeenCalled();
});

it('asks again a second before its slice ends, and the new ask is for the same attempt', async () => {
  const { asks, caller, work } = start();
  await vi.advanceTimersByTimeAsync(6_999);
  expect(asks).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(asks.map(({ at, request }) => [at, request.sliceMs])).toEqual([
    [0, 8_000],
    [7_000, 8_000],
  ]);
  const sentAt = expect.any(Number);
  expect(asks[1]?.request).toEqual({ ...asks[0]?.request, sentAt });
  caller.abort();
  await work;
});

it.each([
  [2_000, 8_000],
  [40_000, 20_000],
  [600_000, 30_000],
])('with an estimate of %d ms the next slice is %d ms', async (estimateMs, sliceMs) => {
  const { asks, caller, work } = start();
  asks[0]?.answer(pending(estimateMs));
  await vi.advanceTimersByTimeAsync(0);
  expect(asks[1]?.request.sliceMs).toBe(sliceMs);
  await vi.advanceTimersByTimeAsync(sliceMs - 1_001);
  expect(asks).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(asks).toHaveLength(3);
  caller.abort();
  await work;
});

it('a grant to an ask that was superseded counts, and the newer one is handed over as late', async () => {
  const { asks, seen, work } = start();
  await vi.advanceTimersByTimeAsync(7_000);
  const { answer, dispose } = granted(1);
  asks[0]?.answer(answer);
  await work;
  const { result } = seen;
  if (result?.kind !== 'granted') throw new Error('not granted');
  expect(result.granted).toBe(answer);
  expect(result.late).toHaveLength(1);
  const newer = granted(2);
  asks[1]?.answer(newer.answer);
  expect(await result.late[0]).toBe(newer.answer);
  expect(dispose).not.toHaveBeenCalled();
  expect(newer.dispose).not.toHaveBeenCalled();
});

it('what was answered to a superseded ask is not the answer to the ticket', async () => {
  const { asks, seen, caller, work } = start();
  await vi.advanceTimersByTimeAsync(7_000);
  asks[0]?.answer(pending(0));
  await vi.advanceTimersByTimeAsync(100);
  expect(asks).toHaveLength(2);
  expect(seen.result).toBeNull();
  caller.abort();
  await work;
});

it.each([
  ['rejected', { reason: 'busy', slotsMax: 1, retryAfterMs: 1_000 }],
  ['moved', undefined],
])('%s ends the asking, and a slot that comes too late is given back', async (kind, rejection) => {
  const { asks, seen, work } = start();
  await vi.advanceTimersByTimeAsync(7_000);
  asks[1]?.answer({ kind, configVersion: 7, rejection } as AcquireAnswer);
  await work;
  expect(seen.result).toMatchObject({ kind });
  const { answer, dispose, release } = granted(1);
  asks[0]?.answer(answer);
  await vi.advanceTimersByTimeAsync(0);
  // Unused: what was reserved for it must not count as used.
  expect(release.mock.calls).toEqual([['unused', null]]);
  expect(dispose).toHaveBeenCalledOnce();
});

it('a caller that leaves ends the asking, and a slot that comes too late is given back', async () => {
  const { asks, seen, caller, work } = start();
  caller.abort();
  await work;
  expect(seen.result).toEqual({ kind: 'left' });
  const { answer, dispose, release } = granted(1);
  asks[0]?.answer(answer);
  await vi.advanceTimersByTimeAsync(0);
  // Unused: what was reserved for it must not count as used.
  expect(release.mock.calls).toEqual([['unused', null]]);
  expect(dispose).toHaveBeenCalledOnce();
});

it('a caller that left before never asks', async () => {
  const { asks, source } = scriptedPool();
  expect(await acquireSlot(source, REQUEST, AbortSignal.abort())).toEqual({ kind: 'left' });
  expect(asks).toEqual([]);
});

it('an ask that fails is made again within 100 ms, with a new stub', async () => {
  const { asks, caller, work } = start();
  asks[0]?.fail(new Error('reset'));
  await vi.advanceTimersByTimeAsync(50);
  expect(asks.map(({ at }) => at)).toEqual([0, 50]);
  caller.abort();
  await work;
});

it('seven failures in a row make the group unavailable; an answer in between starts anew', async () => {
  const { asks, seen, work } = start();
  for (let failure = 0; failure < 6; failure += 1) {
    asks.at(-1)?.fail(new Error('Network connection lost.'));
    await vi.advanceTimersByTimeAsync(2_000);
  }
  asks.at(-1)?.answer(pending(0));
  await vi.advanceTimersByTimeAsync(0);
  for (let failure = 0; failure < 7; failure += 1) {
    expect(seen.result).toBeNull();
    asks.at(-1)?.fail(new Error('Network connection lost.'));
    await vi.advanceTimersByTimeAsync(2_000);
  }
  await work;
  expect(seen.result).toEqual({ kind: 'unavailable' });
});

it('an attempt whose grant was lost on its way is asked for under the next number', async () => {
  const { asks, seen, work } = start();
  asks[0]?.answer({ kind: 'gone' });
  await vi.advanceTimersByTimeAsync(0);
  expect(asks.map(({ request }) => request.attempt)).toEqual([1, 2]);
  asks[1]?.answer(granted(1).answer);
  await work;
  expect(seen.result?.kind).toBe('granted');
});

it('an overloaded object is not asked again', async () => {
  const { asks, seen, work } = start();
  asks[0]?.fail(Object.assign(new Error('overloaded'), { overloaded: true }));
  await work;
  expect(seen.result).toEqual({ kind: 'unavailable' });
  expect(asks).toHaveLength(1);
});

it('an object that hangs is given up, and one that answers superseded asks never is', async () => {
  const hangs = start();
  await vi.advanceTimersByTimeAsync(60_000);
  await hangs.work;
  expect(hangs.seen.result).toEqual({ kind: 'unavailable' });
  const lives = start();
  for (let slice = 0; slice < 20; slice += 1) {
    await vi.advanceTimersByTimeAsync(7_000);
    lives.asks.at(-2)?.answer(pending(0));
  }
  expect(lives.seen.result).toBeNull();
  lives.caller.abort();
  await lives.work;
});

it('an object that lives and does not end the wait keeps nobody past the deadline', async () => {
  const lives = start({ deadlineAt: steadyClock.now() + 20_000 });
  // Elapsed time counts: by the wall clock there is an hour left from here on.
  vi.setSystemTime(Date.now() - 3_600_000);
  for (let slice = 0; slice < 6 && lives.seen.result === null; slice += 1) {
    await vi.advanceTimersByTimeAsync(7_000);
    lives.asks.at(-2)?.answer(pending(0));
  }
  expect(lives.seen.result).toEqual({ kind: 'unavailable' });
});

it('leaves no timer behind', async () => {
  const { asks, work } = start();
  asks[0]?.answer(granted(1).answer);
  await work;
  expect(vi.getTimerCount()).toBe(0);
});
