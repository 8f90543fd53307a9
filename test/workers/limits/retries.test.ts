// Failures of the upstream: as often as the operator says, within a budget, and never once bytes were sent on.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { CallAttempts } from '../../../src/call/attempts/call-attempts.ts';
import { nothingLeaks } from '../support/pool.ts';
import {
  arrived,
  newStage,
  send,
  served,
  statusOf,
  reportedBy,
  untilArrived,
  untilGroup,
  type LimitsStage,
} from './stage.ts';

// How long it waits before a retry is tested where it is decided.
beforeAll(() => {
  vi.spyOn(CallAttempts.prototype, 'pauseMs').mockReturnValue(0);
});

afterAll(nothingLeaks);

/** Failures of a call before its first byte, with the status that its caller sees. */
const FAILURES = [
  ['an overload', 'overload', 503, null],
  ['a 5xx', 'error', 500, null],
  ['a connection that is reset', 'reset', 502, 'upstream_unreachable'],
] as const;

function retrying(max: number, budget = 0.1): Promise<LimitsStage> {
  return newStage({ group: { retries: { max, budget } } });
}

describe.each(FAILURES)('after %s', (_, failure, status, reason) => {
  it('nothing is tried again, unless the operator says so', async () => {
    const stage = await newStage();
    await stage.strict.failNext(failure);
    expect(await reportedBy(send(stage, 'one'))).toMatchObject({
      status,
      reason,
      shouldRetry: null,
    });
    await untilGroup(stage, { in_use: 0, cooling: 0 });
    expect(await arrived(stage)).toEqual(['one']);
  });

  it('a call is tried again up to retries.max', async () => {
    const stage = await retrying(2);
    await stage.strict.failNext(failure, 2);
    expect(await reportedBy(send(stage, 'one'))).toEqual(served(3));
    expect(await arrived(stage)).toEqual(['one', 'one', 'one']);
  });

  it('and retries.max more the caller has the failure', async () => {
    const stage = await retrying(1);
    await stage.strict.failNext(failure, 2);
    expect(await reportedBy(send(stage, 'one'))).toMatchObject({ status, reason });
    await untilArrived(stage, 2);
    await untilGroup(stage, { in_use: 0, cooling: 0 });
  });
});

it("Anthropic's 529 is an overload too", async () => {
  const stage = await retrying(1);
  await stage.strict.failNext('overload', 2);
  const one = send(stage, 'one', { path: `/${stage.upstream}/v1/messages` });
  expect(await reportedBy(one)).toMatchObject({ status: 529, tries: '2', reason: null });
  expect(await statusOf(stage)).toMatchObject({ refusals_total: { overload: 2 } });
});

describe('the budget of retries', () => {
  it('is a tenth of recent calls, after the first two', async () => {
    const stage = await retrying(1);
    await stage.strict.failNext('error', 6);
    for (const label of ['a', 'b', 'c', 'd']) {
      expect(await reportedBy(send(stage, label))).toMatchObject({ status: 500 });
    }
    expect(await arrived(stage)).toEqual(['a', 'a', 'b', 'b', 'c', 'd']);
  });

  it('is earned again by calls that need none', async () => {
    const stage = await retrying(1);
    for (const label of ['a', 'b', 'c']) {
      await stage.strict.failNext('error', label === 'c' ? 1 : 2);
      await reportedBy(send(stage, label));
    }
    expect(await arrived(stage)).toEqual(['a', 'a', 'b', 'b', 'c']);
    for (let at = 0; at < 10; at += 1) {
      expect(await reportedBy(send(stage, 'ok'))).toEqual(served(1));
    }
    await stage.strict.failNext('error');
    expect(await reportedBy(send(stage, 'd'))).toEqual(served(2));
  });

  it('of 0 allows none', async () => {
    const stage = await retrying(2, 0);
    await stage.strict.failNext('error');
    expect(await reportedBy(send(stage, 'one'))).toMatchObject({ status: 500, tries: '1' });
  });

  it('of another upstream is another', async () => {
    const spent = await retrying(1);
    await spent.strict.failNext('error', 5);
    for (const label of ['a', 'b', 'c']) await reportedBy(send(spent, label));
    const other = await retrying(1);
    await other.strict.failNext('error');
    expect(await reportedBy(send(other, 'one'))).toEqual(served(2));
  });
});

describe('a call that its SDK sends again', () => {
  const again = { 'x-stainless-retry-count': '1' };

  it('is not tried again here after a failure', async () => {
    const stage = await retrying(2);
    await stage.strict.failNext('error');
    const one = send(stage, 'one', { headers: again });
    expect(await reportedBy(one)).toMatchObject({ status: 500, tries: '1' });
    await untilArrived(stage, 1);
  });

  it('for the first time is tried again', async () => {
    const stage = await retrying(2);
    await stage.strict.failNext('error');
    const first = { 'x-stainless-retry-count': '0' };
    expect(await reportedBy(send(stage, 'one', { headers: first }))).toEqual(served(2));
  });

  it('waits in the queue all the same when it is refused', async () => {
    const stage = await newStage();
    await stage.strict.failNext('concurrency');
    expect(await reportedBy(send(stage, 'one', { headers: again }))).toEqual(served(2));
  });
});

it.each([
  ['breaks off in the middle', { 'x-strict-break-after-chunks': '2' }],
  ['breaks off behind its headers', { 'x-strict-break-after-chunks': '0' }],
])('a stream that %s is never sent again', async (_, headers) => {
  const stage = await retrying(2);
  const one = send(stage, 'one', { stream: true, headers });
  expect(await one.end).toBe('cut');
  await untilGroup(stage, { in_use: 0, cooling: 0 });
  expect(await arrived(stage)).toEqual(['one']);
});

it('a stream that ends with an error of its own is passed on as it is', async () => {
  const stage = await retrying(2);
  const one = send(stage, 'one', { stream: true, headers: { 'x-strict-error-after-chunks': '2' } });
  expect(await one.end).toBe('done');
  await untilArrived(stage, 1);
});
