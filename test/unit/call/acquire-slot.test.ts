// How a Worker asks for a slot, against a scripted object and a virtual clock: slices, asks that supersede
// each other, objects that hang, and answers that come too late.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type {
  AcquireAnswer,
  AcquireRequest,
  GroupRpc,
  LeaseRpc,
} from '../../../src/contract/rpc/group-rpc.ts';
import { onTimer, steadyClock } from '../../../src/runtime/async.ts';
import {
  acquireSlot,
  type Acquired,
  type WaitTerms,
  type SlotRequest,
} from '../../../src/call/acquire/acquire-slot.ts';
import type { PositionListener } from '../../../src/call/acquire/open-calls.ts';
import { leaseId } from '../../../src/core/words/ids.ts';
import { acquireRequest, type RequestFields } from '../../support/requests.ts';

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const REQUEST = requested();

function requested(of: RequestFields = {}): SlotRequest {
  return acquireRequest('g', 't', { enqueuedAt: 0, ...of });
}

type AcquireSlotPending = Extract<AcquireAnswer, { kind: 'pending' }>;

interface AcquireSlotAsk {
  readonly request: AcquireRequest;
  readonly at: number;
  answer(answer: AcquireAnswer): void;
  fail(error: Error): void;
}

/** Answers an ask at once by the time since the first; null: it stays open. */
type AcquireSlotScript = (atMs: number) => AcquireAnswer | Error | null;

/** An object whose asks stay open until the test answers them, unless its script does. */
function scriptedPool(script: AcquireSlotScript) {
  const asks: AcquireSlotAsk[] = [];
  const acquire = (request: AcquireRequest): Promise<AcquireAnswer> =>
    new Promise((resolve, reject) => {
      const at = Date.now() - startedAt;
      asks.push({ request, at, answer: resolve, fail: reject });
      const said = script(at);
      if (said instanceof Error) reject(said);
      else if (said !== null) resolve(said);
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
    passOver: () => Promise.resolve(),
    report: () => Promise.resolve(),
    release,
    [Symbol.dispose]: dispose,
  };
  const answer = {
    kind: 'granted',
    lease,
    leaseId: leaseId('t.1'),
    attachment,
    configVersion: 1,
  } satisfies AcquireAnswer;
  return { answer, dispose, release };
}

function pending(estimateMs: number | null, of: Partial<AcquireSlotPending> = {}): AcquireAnswer {
  const estimate =
    estimateMs === null ? { estimateMs: 60_000, isUnforeseen: true as const } : { estimateMs };
  return { kind: 'pending', position: 0, ...estimate, configVersion: 1, ...of };
}

const bypass = () => Promise.resolve(null);

/** Starts asking, and tells what became of it so far. */
function start(
  of: RequestFields = {},
  {
    script = () => null,
    ...how
  }: Partial<WaitTerms> & { readonly script?: AcquireSlotScript } = {},
) {
  const pool = scriptedPool(script);
  const caller = new AbortController();
  const seen: { result: Acquired | null } = { result: null };
  const patience = { after: onTimer, listener: null, until: Infinity, bypass, ...how };
  const request = requested(of);
  const by = { ...patience, signal: caller.signal };
  const work = acquireSlot(pool.source, request, by).then((result) => {
    seen.result = result;
  });
  return { ...pool, caller, seen, work };
}

/** An error by which the platform says that an object gets too many messages. */
function overload(): Error {
  return Object.assign(new Error('Durable Object is overloaded.'), { overloaded: true });
}

/** An error by which the platform says that the object was reset while it had a call. */
function reset(): Error {
  return Object.assign(new Error('Durable Object was reset.'), { durableObjectReset: true });
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
  const { asks, caller, work } = start({ passedUnlimited: 3 });
  await vi.advanceTimersByTimeAsync(6_999);
  expect(asks).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(asks.map(({ at, request }) => [at, request.sliceMs])).toEqual([
    [0, 8_000],
    [7_000, 8_000],
  ]);
  // Those that passed are counted once.
  const fields = { sentAt: expect.any(Number), passedUnlimited: 0 };
  expect(asks[0]?.request.passedUnlimited).toBe(3);
  expect(asks[1]?.request).toEqual({ ...asks[0]?.request, ...fields });
  caller.abort();
  await work;
});

it('says how far its clock is ahead once the wall clock was set back', async () => {
  const { asks, caller, work } = start();
  vi.spyOn(steadyClock, 'aheadMs', 'get').mockReturnValue(60_000);
  await vi.advanceTimersByTimeAsync(7_000);
  expect(asks[1]?.request.clockAheadMs).toBe(60_000);
  caller.abort();
  await work;
});

it.each([
  [2_000, 8_000],
  [40_000, 20_000],
  [600_000, 30_000],
  [null, 30_000],
])('with an estimate of %s ms the next slice is %d ms', async (estimateMs, sliceMs) => {
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
  const { asks, source } = scriptedPool(() => null);
  const patience = { after: onTimer, listener: null, until: Infinity, bypass };
  const left = await acquireSlot(source, REQUEST, { ...patience, signal: AbortSignal.abort() });
  expect(left).toEqual({ kind: 'left' });
  expect(asks).toEqual([]);
});

it.each([
  ['that does not know its place is made again 100 ms later', null, 0.5, 100],
  ['of the first in the queue too', 0, 0.5, 100],
  ['of one with 1,000 ahead later than of one with 700', 1_000, 0, 850],
  ['of one with 700 ahead', 700, 0.8, 765],
  ['of one far back no later than 2 s', 4_000, 0.8, 1_905],
])('an ask that fails %s', async (_, position, random, delayMs) => {
  vi.mocked(Math.random).mockReturnValue(random);
  const { asks, caller, work } = start();
  if (position !== null) asks[0]?.answer(pending(0, { position }));
  await vi.advanceTimersByTimeAsync(0);
  asks.at(-1)?.fail(new Error('reset'));
  const before = asks.length;
  await vi.advanceTimersByTimeAsync(Math.ceil(delayMs) - 1);
  expect(asks).toHaveLength(before);
  await vi.advanceTimersByTimeAsync(1);
  expect(asks).toHaveLength(before + 1);
  caller.abort();
  await work;
});

it('three seconds of failures put a group out of reach; an answer in between starts anew', async () => {
  const lost = new Error('Network connection lost.');
  let hasAnswered = false;
  const script = (atMs: number) => {
    if (hasAnswered || atMs < 2_500) return lost;
    hasAnswered = true;
    return pending(0);
  };
  const { asks, seen, work } = start({}, { script });
  await vi.advanceTimersByTimeAsync(5_400);
  expect(seen.result).toBeNull();
  await vi.advanceTimersByTimeAsync(2_000);
  await work;
  expect(seen.result).toEqual({ kind: 'unavailable' });
  const pauses = asks.slice(1).map(({ at }, index) => at - (asks[index]?.at ?? 0));
  expect(pauses.slice(0, 7)).toEqual([100, 50, 100, 200, 400, 500, 500]);
});

it('two failures do not put a group out of reach, however long they took', async () => {
  const { asks, seen, caller, work } = start();
  for (const ask of [0, 1]) {
    await vi.advanceTimersByTimeAsync(6_000);
    asks[ask]?.fail(new Error('Network connection lost.'));
  }
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asks).toHaveLength(3);
  expect(seen.result).toBeNull();
  asks[2]?.fail(new Error('Network connection lost.'));
  await work;
  expect(seen.result).toEqual({ kind: 'unavailable' });
  caller.abort();
});

it('an object that is reset again and again and serves in between is not out of reach', async () => {
  const { asks } = start();
  for (let resets = 1; resets <= 5; resets += 1) {
    await vi.advanceTimersByTimeAsync(2_000);
    expect(asks).toHaveLength(resets);
    asks.at(-1)?.fail(reset());
  }
});

it('an object that is reset at once whenever it starts is out of reach', async () => {
  const { seen } = start({}, { script: () => reset() });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(seen.result).toEqual({ kind: 'unavailable' });
});

it('grants that are lost on their way again and again put the group out of reach', async () => {
  const { asks, seen, work } = start({ attempt: 11 });
  for (let lost = 0; lost < 7; lost += 1) {
    expect(seen.result).toBeNull();
    asks.at(-1)?.answer({ kind: 'gone', attachment: 1 });
    await vi.advanceTimersByTimeAsync(2_000);
  }
  await work;
  expect(seen.result).toEqual({ kind: 'unavailable' });
  // The next round has the attempts from 21 on.
  expect(asks.map(({ request }) => request.attempt)).toEqual([11, 12, 13, 14, 15, 16, 17]);
});

it.each<[string, AcquireAnswer]>([
  ['that it still waits', pending(60_000)],
  ['that its attempt has ended', { kind: 'gone', attachment: 1 }],
])('an object that says at once and again %s is asked at once only once', async (_name, said) => {
  const { asks, caller } = start({}, { script: () => said });
  await vi.advanceTimersByTimeAsync(0);
  expect(asks).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(asks.length).toBeLessThan(7);
  expect(asks.length).toBeGreaterThan(3);
  caller.abort();
});

it('retries at once after an answer that came in time', async () => {
  const { asks, caller } = start();
  for (let asked = 1; asked < 6; asked += 1) {
    expect(asks).toHaveLength(asked);
    await vi.advanceTimersByTimeAsync(1_000);
    asks.at(-1)?.answer(pending(60_000));
    await vi.advanceTimersByTimeAsync(0);
  }
  caller.abort();
});

it('an attempt whose grant was lost on its way is asked for under the next number', async () => {
  const { asks, seen, work } = start();
  asks[0]?.answer({ kind: 'gone', attachment: 1 });
  await vi.advanceTimersByTimeAsync(0);
  expect(asks.map(({ request }) => request.attempt)).toEqual([1, 2]);
  asks[1]?.answer(granted(1).answer);
  await work;
  expect(seen.result?.kind).toBe('granted');
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

describe('an overloaded object', () => {
  it.each([
    ['says so', overload()],
    [
      'gets too much from the whole account',
      new Error('Your account is generating too much load on Durable Objects. Please back off.'),
    ],
  ])('that %s for three seconds has a slot for the call in the end', async (_, error) => {
    const { answer } = granted(1);
    const script = (atMs: number) => (atMs < 3_000 ? error : answer);
    const { asks, seen, work } = start({}, { script });
    await vi.advanceTimersByTimeAsync(5_000);
    await work;
    expect(seen.result).toMatchObject({ kind: 'granted' });
    // Half of 250 ms, doubled each time up to 4 s.
    expect(asks.map(({ at }) => at)).toEqual([0, 125, 375, 875, 1_875, 3_875]);
  });

  it('is asked after a random time of up to 4 s, until the deadline, and a last time then', async () => {
    const until = steadyClock.now() + 20_000;
    vi.mocked(Math.random).mockReturnValue(1 - 2 ** -53);
    const { asks, seen, work } = start({}, { script: () => overload(), until });
    await vi.advanceTimersByTimeAsync(19_900);
    expect(seen.result).toBeNull();
    await vi.advanceTimersByTimeAsync(100);
    await work;
    expect(seen.result).toEqual({ kind: 'overloaded', mayBypass: true, mayBeKnown: false });
    const pauses = asks.slice(1).map(({ at }, index) => at - (asks[index]?.at ?? 0));
    expect(pauses.slice(0, 7)).toEqual([249, 499, 999, 1_999, 3_999, 3_999, 3_999]);
    expect(asks.at(-1)?.at).toBe(20_000);
  });

  it.each([
    ['does not want to wait', { wait: false }],
    ['tries several groups at once', { isTry: true }],
  ])('is asked once by a call that %s', async (_, of) => {
    const { asks, seen, work } = start(of, { script: () => overload() });
    await work;
    expect(seen.result).toEqual({ kind: 'overloaded', mayBypass: false, mayBeKnown: false });
    expect(asks).toHaveLength(1);
  });

  it('is not out of reach, whatever failed before, nor by the first failures after it', async () => {
    const script = (atMs: number) =>
      atMs > 2_000 && atMs < 60_000 ? overload() : new Error('Network connection lost.');
    const { seen, work } = start({}, { script });
    await vi.advanceTimersByTimeAsync(62_500);
    expect(seen.result).toBeNull();
    await vi.advanceTimersByTimeAsync(5_000);
    await work;
    expect(seen.result).toEqual({ kind: 'unavailable' });
  });

  it('grants to the call that is parked there while the next one is not taken', async () => {
    const { asks, seen, work } = start();
    await vi.advanceTimersByTimeAsync(7_000);
    asks[1]?.fail(overload());
    await vi.advanceTimersByTimeAsync(1);
    const { answer } = granted(1);
    asks[0]?.answer(answer);
    await work;
    expect(asks).toHaveLength(2);
    expect(seen.result).toEqual({ kind: 'granted', granted: answer, late: [] });
  });

  it('is noticed by a superseded call, which took its time to fail', async () => {
    const { asks, seen, caller, work } = start();
    await vi.advanceTimersByTimeAsync(7_000);
    asks[0]?.fail(overload());
    await vi.advanceTimersByTimeAsync(7_000);
    expect(asks).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(125);
    expect(asks).toHaveLength(3);
    expect(seen.result).toBeNull();
    caller.abort();
    await work;
  });

  it('lets a call pass after two seconds without an answer, as soon as there is room', async () => {
    const by = { kind: 'bypass', end: () => {} } as const;
    let room = 0;
    const mayBypass = vi.fn<WaitTerms['bypass']>(() => Promise.resolve(room > 0 ? by : null));
    // An answer at one second: what was before does not count.
    const script = (atMs: number) =>
      atMs > 800 && atMs < 1_500 ? pending(0, { askAgainMs: 1_000 }) : overload();
    const { seen, work } = start({}, { script, bypass: mayBypass });
    await vi.advanceTimersByTimeAsync(3_800);
    expect(mayBypass).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(mayBypass).toHaveBeenCalled();
    expect(seen.result).toBeNull();
    room = 1;
    await vi.advanceTimersByTimeAsync(4_000);
    await work;
    expect(seen.result).toEqual({ kind: 'bypassed', by });
  });

  it('that grants, rejects or is left lets nobody pass', async () => {
    const mayBypass = vi.fn<WaitTerms['bypass']>();
    mayBypass.mockResolvedValue(null);
    const { caller, work } = start({}, { script: () => overload(), bypass: mayBypass });
    await vi.advanceTimersByTimeAsync(4_000);
    const before = mayBypass.mock.calls.length;
    caller.abort();
    await work;
    expect(mayBypass).toHaveBeenCalledTimes(before);
  });
});

describe('a call far back', () => {
  it('asks again when it is told to, and nothing is parked for it meanwhile', async () => {
    const { asks, seen, work } = start({ passedUnlimited: 3 });
    expect(asks[0]?.request).toMatchObject({ mayAskLater: true, passedUnlimited: 3 });
    asks[0]?.answer(pending(90_000, { position: 700, askAgainMs: 30_000 }));
    await vi.advanceTimersByTimeAsync(29_999);
    expect(asks).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    // Those that passed are counted once.
    expect(asks[1]?.request).toMatchObject({ mayAskLater: true, passedUnlimited: 0 });
    asks[1]?.answer(granted(1).answer);
    await work;
    expect(seen.result?.kind).toBe('granted');
  });

  it('leaves at once', async () => {
    const { asks, seen, caller, work } = start();
    asks[0]?.answer(pending(90_000, { askAgainMs: 30_000 }));
    await vi.advanceTimersByTimeAsync(10_000);
    caller.abort();
    await work;
    expect(seen.result).toEqual({ kind: 'left' });
    expect(asks).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is parked a second before its deadline, to be told what it waited for', async () => {
    const until = steadyClock.now() + 12_000;
    const { asks, seen, work } = start({}, { until });
    asks[0]?.answer(pending(90_000, { askAgainMs: 30_000 }));
    await vi.advanceTimersByTimeAsync(10_999);
    expect(asks).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(asks[1]?.request.mayAskLater).toBe(false);
    // An object that does not know of it yet is not asked again and again.
    asks[1]?.answer(pending(90_000, { askAgainMs: 30_000 }));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(asks).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(25_000);
    const rejection = { reason: 'queue_timeout', waitedMs: 12_000, retryAfterMs: 1_000 } as const;
    asks[2]?.answer({ kind: 'rejected', rejection, configVersion: 1 });
    await work;
    expect(seen.result).toMatchObject({ kind: 'rejected', rejection });
  });

  it('asks as often as its caller is told its place', async () => {
    const report = vi.fn<PositionListener['report']>();
    const script = () => pending(90_000, { position: 700, askAgainMs: 30_000 });
    const { caller, work } = start({}, { script, listener: { everyMs: 5_000, report: report } });
    await vi.advanceTimersByTimeAsync(20_000);
    const reported = { position: 700, estimateMs: 90_000 };
    expect(report.mock.calls).toMatchObject(Array.from({ length: 5 }, () => [reported]));
    caller.abort();
    await work;
  });

  it('takes a grant to an older call that still comes', async () => {
    const { asks, seen, work } = start();
    await vi.advanceTimersByTimeAsync(7_000);
    asks[1]?.answer(pending(90_000, { askAgainMs: 30_000 }));
    await vi.advanceTimersByTimeAsync(1_000);
    const { answer } = granted(1);
    asks[0]?.answer(answer);
    await work;
    expect(seen.result).toEqual({ kind: 'granted', granted: answer, late: [] });
  });
});

it('an object that hangs keeps nobody longer than two seconds past the deadline', async () => {
  const { seen, work } = start({ deadlineAt: steadyClock.now() + 500 });
  await vi.advanceTimersByTimeAsync(2_499);
  expect(seen.result).toBeNull();
  await vi.advanceTimersByTimeAsync(1);
  await work;
  expect(seen.result).toEqual({ kind: 'unavailable' });
});

describe('a call that was lost', () => {
  const isAnew = (asks: readonly AcquireSlotAsk[]) =>
    asks.map(({ request }) => request.isAnew ?? false);

  it('is followed by calls that say so, as none before them is open any more', async () => {
    const { asks, caller, work } = start();
    asks[0]?.fail(reset());
    await vi.advanceTimersByTimeAsync(1_000);
    asks[1]?.answer(pending(1_000));
    await vi.advanceTimersByTimeAsync(0);
    expect(isAnew(asks)).toEqual([false, true, true]);
    caller.abort();
    await work;
  });

  it('is followed by calls that do not as long as one before it is open', async () => {
    const { asks, caller, work } = start();
    await vi.advanceTimersByTimeAsync(7_000);
    asks[1]?.fail(reset());
    await vi.advanceTimersByTimeAsync(1_000);
    expect(isAnew(asks)).toEqual([false, false, false]);
    caller.abort();
    await work;
  });

  it('is none that the object refused, having too many', async () => {
    const { asks, caller, work } = start();
    asks[0]?.fail(overload());
    await vi.advanceTimersByTimeAsync(1_000);
    expect(isAnew(asks)).toEqual([false, false]);
    caller.abort();
    await work;
  });
});
