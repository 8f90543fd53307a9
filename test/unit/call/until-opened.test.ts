// A call that waits for the end of a group's pause, against a scripted object and a virtual clock. It never retries in a loop,
// whatever the object answers.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { GroupRpc } from '../../../src/contract/rpc/group-rpc.ts';
import { untilOpened } from '../../../src/call/acquire/until-opened.ts';
import { onTimer } from '../../../src/runtime/call-clock.ts';
import { steadyClock } from '../../../src/runtime/steady-clock.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function wait(opened: GroupRpc['opened'], openings = 0, forMs = 10_000) {
  const asks = vi.fn<GroupRpc['opened']>(opened);
  const caller = new AbortController();
  const stub = { opened: asks } as Partial<GroupRpc> as GroupRpc;
  const until = steadyClock.now() + forMs;
  const end = untilOpened(() => stub, { signal: caller.signal, after: onTimer, until, openings });
  return { asks, caller, end };
}

it.each<[string, GroupRpc['opened']]>([
  ['says at once that it is paused, because too many wait', () => Promise.resolve(false)],
  ['fails at once', () => Promise.reject(new Error('reset'))],
])('pauses between its asks where the group %s', async (_name, opened) => {
  const { asks, end } = wait(opened);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asks.mock.calls.length).toBeGreaterThan(12);
  expect(asks.mock.calls.length).toBeLessThan(42);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await end).toEqual({ kind: 'over' });
});

it('continues at once when the group opens, unless an earlier attempt failed', async () => {
  const first = wait(() => Promise.resolve(true));
  await vi.advanceTimersByTimeAsync(0);
  expect(await first.end).toEqual({ kind: 'opened' });
  const second = wait(() => Promise.resolve(true), 1);
  await vi.advanceTimersByTimeAsync(200);
  expect(second.asks).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(600);
  expect(await second.end).toEqual({ kind: 'opened' });
});

it('ends when its caller disconnects, parked or not', async () => {
  const parked = wait(() => new Promise(() => {}));
  parked.caller.abort();
  const resting = wait(() => Promise.resolve(false));
  await vi.advanceTimersByTimeAsync(0);
  resting.caller.abort();
  await vi.advanceTimersByTimeAsync(1_000);
  expect((await parked.end).kind).toBe('left');
  expect((await resting.end).kind).toBe('left');
});

it('a request that may not wait sends nothing to the group', async () => {
  const { asks, end } = wait(() => Promise.resolve(true), 3, 0);
  expect(await end).toEqual({ kind: 'over' });
  expect(asks).not.toHaveBeenCalled();
});
