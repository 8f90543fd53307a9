// Whole calls while the group's object is reset under them. The upstream counts.
import { afterAll, beforeEach, expect, it, vi } from 'vitest';
import { GroupObject } from '../../../src/group/group-object.ts';
import {
  loseNextAnswer,
  NO_COOLDOWN,
  nothingLeaks,
  pool,
  resetPool,
  untilWrittenEmpty,
  untilStatus,
} from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { configure, open, until, type WorkerOpenCall } from '../support/worker.ts';

const CHAT = '/up/v1/chat/completions';
const LIMIT = 3;

let strict: Strict;
let group = '';
let groups = 0;

beforeEach(async () => {
  groups += 1;
  group = `reset-${groups}`;
  strict = await strictScope('reset', { limit: LIMIT, silentAfterChunks: 1 });
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [
      {
        name: group,
        match: { upstreams: ['up'] },
        limits: { max_concurrency: LIMIT },
        holds: NO_COOLDOWN,
      },
    ],
  });
});

afterAll(nothingLeaks);

/** Starts calls one after the other, so that their order in the queue is known. */
async function startInOrder(count: number): Promise<WorkerOpenCall[]> {
  const calls: WorkerOpenCall[] = [];
  for (let at = 0; at < count; at += 1) {
    calls.push(open(CHAT, `c${at}`));
    const in_use = Math.min(LIMIT, at + 1);
    await untilStatus(group, { in_use, queued: at + 1 - in_use });
    await until(async () => expect((await strict.stats()).inFlight).toBe(in_use));
  }
  return calls;
}

/** Ends the streams of each full round, until none is left. */
async function endInRounds(calls: readonly WorkerOpenCall[]): Promise<void> {
  for (let ended = 0; ended < calls.length; ended += LIMIT) {
    await until(async () =>
      expect((await strict.stats()).total).toBe(Math.min(ended + LIMIT, calls.length)),
    );
    await strict.resume();
    const round = calls.slice(ended, ended + LIMIT);
    expect(await Promise.all(round.map(({ end }) => end))).toEqual(round.map(() => 'done'));
  }
}

it('resets under streams cost no slot, no place in the queue and never the limit', async () => {
  const calls = await startInOrder(9);
  // Once before and once after the holders' first renewal.
  await resetPool(group);
  await untilStatus(group, { in_use: 3, queued: 6 });
  await until(async () => expect(await pool(group).leases()).toHaveLength(3));
  await resetPool(group);
  await untilStatus(group, { in_use: 3, queued: 6 });
  await endInRounds(calls);
  const { arrivals, peak, rejected429, completed } = await strict.stats();
  expect({ peak, rejected429, completed }).toEqual({ peak: 3, rejected429: 0, completed: 9 });
  expect(arrivals.map(({ label }) => label)).toEqual(calls.map(({ label }) => label));
  await untilStatus(group, { in_use: 0, queued: 0, resurrected_total: 0, expired_total: 0 });
  await untilWrittenEmpty(group);
});

it('streams that end between a reset and the next renewal give their slots back by lease id', async () => {
  const calls = await startInOrder(3);
  const releasedById = vi.spyOn(GroupObject.prototype, 'release');
  // Whoever comes back within those milliseconds has a handle of the new instance.
  const resumed = vi.spyOn(GroupObject.prototype, 'resume').mockRejectedValue(new Error('lost'));
  await resetPool(group);
  await strict.resume();
  await Promise.all(calls.map(({ end }) => end));
  await until(() => expect(new Set(releasedById.mock.calls.map(([id]) => id)).size).toBe(3));
  await untilStatus(group, { in_use: 0, unclaimed: 0 });
  releasedById.mockRestore();
  resumed.mockRestore();
  const next = open(CHAT, 'next');
  await until(async () => expect((await strict.stats()).total).toBe(4));
  await strict.resume();
  expect(await next.end).toBe('done');
  expect((await strict.stats()).peak).toBe(3);
});

it('a caller that leaves after a reset gives its slot back', async () => {
  const [first, ...others] = await startInOrder(4);
  await resetPool(group);
  await untilStatus(group, { in_use: 3, queued: 1 });
  first?.leave();
  await until(async () => expect(await strict.stats()).toMatchObject({ total: 4, aborted: 1 }));
  expect(await strict.stats()).toMatchObject({ peak: 3, rejected429: 0 });
  await strict.resume();
  expect(await Promise.all(others.map(({ end }) => end))).toEqual(['done', 'done', 'done']);
});

it('a grant whose reply is lost with the object makes one call at the upstream', async () => {
  const lost = loseNextAnswer(true);
  const calls = [open(CHAT, 'lost')];
  await until(async () => expect((await strict.stats()).inFlight).toBe(1));
  expect(lost).toHaveBeenCalledTimes(2);
  lost.mockRestore();
  expect(await pool(group).status()).toMatchObject({ in_use: 1, unclaimed: 0, queued: 0 });
  for (const [at, label] of ['a', 'b', 'c'].entries()) {
    calls.push(open(CHAT, label));
    await untilStatus(group, { in_use: Math.min(at + 2, LIMIT), queued: Math.max(at - 1, 0) });
  }
  await endInRounds(calls);
  expect(await strict.stats()).toMatchObject({ peak: 3, total: 4, rejected429: 0 });
});

it('an object that is reset again and again under a crowd loses no call', async () => {
  await strict.configure({ silentAfterChunks: null, chunks: 4, chunkDelayMs: 40 });
  const callersAtOnce = Array.from({ length: 24 }, (_, at) => open(CHAT, `c${at}`));
  for (const total of [3, 9]) {
    await until(async () => expect((await strict.stats()).total).toBeGreaterThan(total));
    await resetPool(group);
  }
  const ends = await Promise.all(callersAtOnce.map(({ end }) => end));
  expect(ends.filter((end) => end !== 'done')).toEqual([]);
  expect(await strict.stats()).toMatchObject({ peak: 3, total: 24, rejected429: 0, aborted: 0 });
});
