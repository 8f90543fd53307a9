import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { FeedRpc, PoolReport } from '../../../src/contract/rpc/feed-rpc.ts';
import { FeedLink } from '../../../src/group/observe/feed-link.ts';
import { onTimer } from '../../../src/runtime/async.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A watched pool with news at every look, and what it told of itself. */
function watched(): { readonly link: FeedLink; readonly pushes: PoolReport[] } {
  const pushes: PoolReport[] = [];
  let version = 0;
  const report = (): PoolReport => {
    version += 1;
    const status = {} as PoolReport['status'];
    return { at: Date.now(), configVersion: version, status, detail: null };
  };
  const memory = { recall: () => null, remember: () => undefined };
  const push: FeedRpc['push'] = async (_key, pushed) => {
    pushes.push(pushed);
    return 'status';
  };
  const hub = { push } as FeedRpc;
  const way = { hub: () => hub, waitUntil: () => undefined, after: onTimer };
  const link = new FeedLink(memory, report, way);
  link.watch({ key: 'k', untilAt: Date.now() + 600_000, everyMs: 1_000, isDetailed: false });
  return { link, pushes };
}

it('tells what changed at most once in a while', async () => {
  const { link, pushes } = watched();
  for (let event = 0; event < 5; event += 1) link.note(Date.now());
  await vi.advanceTimersByTimeAsync(999);
  expect(pushes).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(pushes).toHaveLength(1);
});
