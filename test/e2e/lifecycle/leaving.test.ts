import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { StrictArrival } from '../../strict-upstream/counts.ts';
import type { LifecycleCallLeaving, LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { clock, FIGURE, median, until } from '../support/lifecycle-wait.ts';

/**
 * A client that leaves frees its place. Limit 1 and no cool-downs, so that the next waiter's arrival at
 * the upstream tells when the slot came back. "At once" is held against the median of several runs: 50 ms, or a few
 * times what an ordinary call takes in between, on a machine that is busy with other things.
 */
const RUNS = 7;
const FREED_WITHIN_MS = 50;
const CALLS_MAX = 3;
const LEAVINGS: readonly LifecycleCallLeaving[] = ['FIN', 'RST'];

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({ config: practiceConfig(1), upstream: { chunks: 1 } });
});

afterAll(() => stage.close());

let calls = 0;

/** Sends a call whose name nobody else has. */
function send(
  name: string,
  headers: Record<string, string> = {},
): { label: string; call: LifecycleOpenCall } {
  calls += 1;
  const label = `${name}-${calls}`;
  return { label, call: openChat(stage.url(), { label, headers }) };
}

function arrivalOf(label: string): StrictArrival | undefined {
  return stage.upstream.stats().arrivals.find((arrival) => arrival.label === label);
}

/** One run: how long the place took to come back, and how long before that the upstream saw the abort. */
interface LeavingRun {
  readonly freedMs: number;
  /** Negative: the next call arrived upstream before the abort of the one that left. */
  readonly abortedBeforeMs: number;
}

/** Lets a holder leave once `isUnderWay`; the next waiter's arrival upstream tells the rest. */
async function leaveWhileHolding(
  how: LifecycleCallLeaving,
  headers: Record<string, string>,
  isUnderWay: (holder: { label: string; call: LifecycleOpenCall }) => boolean,
): Promise<LeavingRun> {
  const holder = send('holder', headers);
  await until('the holder is under way', () => isUnderWay(holder));
  const next = send('next');
  await stage.admin.untilGroup('practice', { in_use: 1, queued: 1 });
  const leftAt = clock();
  holder.call.leave(how);
  expect(await next.call.answered).toBe(200);
  expect(await next.call.ended).toBe('complete');
  await until('the upstream sees the abort', () => arrivalOf(holder.label)?.state === 'aborted');
  await stage.admin.untilIdle();
  const arrivedAt = arrivalOf(next.label)?.at ?? Number.NaN;
  const abortedAt = arrivalOf(holder.label)?.endedAt ?? Number.NaN;
  return { freedMs: arrivedAt - leftAt, abortedBeforeMs: arrivedAt - abortedAt };
}

/** Lets a waiter leave; how long until the status no longer counts it. */
async function leaveWhileQueued(how: LifecycleCallLeaving): Promise<number> {
  const holder = send('holder', { 'x-strict-silent-after-chunks': '1' });
  expect(await holder.call.answered).toBe(200);
  const leaver = send('leaver');
  await stage.admin.untilGroup('practice', { queued: 1 });
  const next = send('next');
  await stage.admin.untilGroup('practice', { queued: 2 });
  const leftAt = clock();
  leaver.call.leave(how);
  await stage.admin.untilGroup('practice', { queued: 1 });
  const freedMs = clock() - leftAt;
  stage.upstream.resume();
  expect(await holder.call.ended).toBe('complete');
  expect(await next.call.ended).toBe('complete');
  await stage.admin.untilIdle();
  expect(arrivalOf(leaver.label)).toBeUndefined();
  expect(arrivalOf(next.label)?.state).toBe('done');
  return freedMs;
}

/** Times an ordinary call, from its first byte out to its last one in. */
async function ordinaryMs(): Promise<number> {
  const sentAt = clock();
  expect(await send('ordinary').call.ended).toBe('complete');
  await stage.admin.untilIdle();
  return clock() - sentAt;
}

/** Repeats a run, and says how long its place may take to come back. */
async function repeat<T>(run: () => Promise<T>): Promise<{ runs: T[]; withinMs: number }> {
  const runs: T[] = [];
  const callsMs: number[] = [];
  for (let i = 0; i < RUNS; i += 1) {
    runs.push(await run());
    callsMs.push(await ordinaryMs());
  }
  return { runs, withinMs: Math.max(FREED_WITHIN_MS, CALLS_MAX * median(callsMs)) };
}

const AT_ONCE = { isFreedAtOnce: true, isAbortedFirst: true };

/** Of the order only the median is looked at: an upstream that is busy sees both in one turn. */
function inTheMiddle({ runs, withinMs }: { runs: LeavingRun[]; withinMs: number }): typeof AT_ONCE {
  const freedMs = runs.map((run) => run.freedMs);
  const verdict = {
    isFreedAtOnce: median(freedMs) <= withinMs,
    isAbortedFirst: median(runs.map((run) => run.abortedBeforeMs)) > 0,
  };
  if (Object.values(verdict).includes(false)) console.log(withinMs, runs);
  return verdict;
}

const hasChunk = ({ call }: { call: LifecycleOpenCall }): boolean =>
  call.text().includes('[practice]');

describe.each(LEAVINGS)('a client that leaves with a %s', FIGURE, (how) => {
  it('in mid-stream aborts the upstream call, then frees its slot, both at once', async () => {
    const flowing = { 'x-strict-chunks': '2000', 'x-strict-chunk-delay-ms': '5' };
    const runs = await repeat(() => leaveWhileHolding(how, flowing, hasChunk));
    expect(inTheMiddle(runs)).toEqual(AT_ONCE);
  });

  it('on a silent stream aborts the upstream call, then frees its slot, both at once', async () => {
    const silent = { 'x-strict-silent-after-chunks': '1' };
    const runs = await repeat(() => leaveWhileHolding(how, silent, hasChunk));
    expect(inTheMiddle(runs)).toEqual(AT_ONCE);
  });

  it('before the headers aborts the upstream call, then frees its slot, both at once', async () => {
    const slow = { 'x-strict-first-byte-delay-ms': '60000' };
    const isUpstream = ({ label }: { label: string }): boolean => arrivalOf(label) !== undefined;
    const runs = await repeat(() => leaveWhileHolding(how, slow, isUpstream));
    expect(inTheMiddle(runs)).toEqual(AT_ONCE);
  });

  it('while queued leaves the queue at once, and its call never reaches the upstream', async () => {
    const { runs: freedMs, withinMs } = await repeat(() => leaveWhileQueued(how));
    expect(median(freedMs)).toBeLessThanOrEqual(withinMs);
  });
});

it('clients that leave as the answer begins leave no slot behind', async () => {
  const CLIENTS = 24;
  await stage.admin.setLimit('practice', CLIENTS);
  const silent = { 'x-strict-silent-after-chunks': '1' };
  const leaveOften = async (how: LifecycleCallLeaving): Promise<void> => {
    for (let i = 0; i < 30; i += 1) {
      const { call } = send('hasty', silent);
      await call.answered;
      // The first piece may be on its way to it: a write to who has left is not seen as a departure.
      call.leave(how);
      await call.ended;
    }
  };
  const clients = Array.from({ length: CLIENTS }, (_, i) =>
    leaveOften(i % 2 === 0 ? 'FIN' : 'RST'),
  );
  await Promise.all(clients);
  await stage.admin.untilIdle();
  await vi.waitFor(() => expect(stage.upstream.stats().inFlight).toBe(0), {
    timeout: 40_000,
  });
  await stage.admin.setLimit('practice', 1);
});

it('clients that leave while comments are written to them leave the queue', async () => {
  const queue = { keepalive: { after_ms: 0, every_ms: 1_000 } };
  const waits = await startStage({ config: practiceConfig(1, { queue }) });
  try {
    const chat = (label: string): LifecycleOpenCall =>
      openChat(waits.url(), { label, headers: { 'x-strict-silent-after-chunks': '1' } });
    const holder = chat('holder');
    await until('the holder is under way', () => hasChunk({ call: holder }));
    const others = Array.from({ length: 40 }, (_, i) => chat(`waits-${i}`));
    await Promise.all(others.map((each) => each.answered));
    // For as long as it stands still it sees nobody leave, and comments are due when it goes on.
    process.kill(waits.workerdPid(), 'SIGSTOP');
    for (const each of others) each.leave('RST');
    await Promise.all(others.map((each) => each.ended));
    await delay(1_500);
    process.kill(waits.workerdPid(), 'SIGCONT');
    await waits.admin.untilGroup('practice', { in_use: 1, queued: 0 });
    holder.leave('RST');
    await waits.admin.untilIdle();
    expect(waits.upstream.stats().total).toBe(1);
  } finally {
    await waits.close();
  }
});
