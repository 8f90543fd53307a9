import { describe, expect, test } from 'vitest';
import type { UpstreamSignal } from '../../../../src/core/words/signal.ts';
import { TestGroup } from '../../../support/core-builders.ts';
import { call, leftIn, metered } from './metered.ts';

/** The queue when its upstream asks for a pause, and after it. */

const sliceMs = 600_000;

/** A refusal that stops the group for so long. */
function pauseOf(retryAfterMs: number | null): Partial<UpstreamSignal> {
  return { kind: 'requests', retryAfterMs };
}

/** Eight slots, one of them in use by a call that was refused with a pause of ten seconds. */
function pausedGroup(settings = {}): TestGroup {
  const group = new TestGroup({ slotsMax: 8, timeoutMs: 600_000, ...settings });
  group.ask('refused');
  group.report('refused', pauseOf(10_000));
  return group;
}

describe('in a pause', () => {
  test('nothing is granted, and everybody goes on waiting', () => {
    const group = pausedGroup();
    expect(group.ask('a', { sliceMs })).toEqual([]);
    expect(group.advance(9_999)).toEqual([]);
    expect(group.waiting()).toEqual(['a']);
    expect(group.advance(1)).toEqual(['grant a.1']);
  });

  test('nothing is granted to whoever asks, whatever ends meanwhile', () => {
    const group = pausedGroup();
    group.ask('a', { sliceMs });
    expect(group.release('refused', 'failed')).toEqual(['ended refused.1']);
    expect(group.reconfigure({ slotsMax: 100 })).toEqual([]);
    expect(group.promote('a')).toEqual([]);
  });

  test('what is in flight goes on', () => {
    const group = new TestGroup({ slotsMax: 3 });
    group.askAll('a', 'b', 'c');
    expect(group.report('a', pauseOf(10_000))).toEqual([]);
    expect(group.inUse()).toBe(3);
    group.renew('b');
    expect(group.lease('b').phase).toBe('held');
  });

  test('a later refusal that asks for less does not shorten it', () => {
    const group = new TestGroup({ slotsMax: 8 });
    group.askAll('a', 'b');
    group.report('a', pauseOf(10_000));
    group.report('b', pauseOf(1_000));
    group.ask('c', { sliceMs });
    expect(group.wakesIn()).toBe(10_000);
  });

  test('a later refusal that asks for more extends it', () => {
    const group = new TestGroup({ slotsMax: 8 });
    group.askAll('a', 'b');
    group.report('a', pauseOf(1_000));
    group.ask('c', { sliceMs });
    group.report('b', pauseOf(10_000));
    expect(group.wakesIn()).toBe(10_000);
    expect(group.advance(1_000)).toEqual([]);
  });

  test('who would rather not wait is told so, and when to come back', () => {
    const group = pausedGroup();
    expect(group.ask('a', { wait: false })).toEqual(['reject a upstream_limited']);
    expect(group.rejection('a').retryAfterMs).toBeGreaterThanOrEqual(8_000);
    expect(group.rejection('a').retryAfterMs).toBeLessThanOrEqual(12_000);
  });

  test('a waiter that would not live to see its end is refused at once', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('refused');
    group.ask('short', { deadlineMs: 9_999 });
    group.ask('long', { deadlineMs: 10_000 });
    expect(group.report('refused', pauseOf(10_000))).toEqual(['reject short upstream_limited']);
    expect(group.waiting()).toEqual(['long']);
  });

  test('a newcomer that would not live to see its end is refused at once', () => {
    const group = pausedGroup();
    expect(group.ask('short', { deadlineMs: 9_999 })).toEqual(['reject short upstream_limited']);
    expect(group.ask('long', { deadlineMs: 10_000 })).toEqual([]);
  });

  test('the time-out of the group counts like a deadline', () => {
    const group = new TestGroup({ slotsMax: 1, timeoutMs: 5_000 });
    group.ask('refused');
    group.ask('a');
    expect(group.report('refused', pauseOf(10_000))).toEqual(['reject a upstream_limited']);
  });

  test('a try is declined', () => {
    expect(pausedGroup().ask('a', { isTry: true })).toEqual(['declined a']);
  });

  test('nothing stops a dry run', () => {
    const group = pausedGroup({ isDryRun: true });
    expect(group.ask('a', { deadlineMs: 1 })).toEqual(['grant a.1']);
    expect(group.state.totals.wouldWait).toBe(1);
  });
});

describe('after a pause', () => {
  test('the slots come back a quarter first, and twice as many every two seconds', () => {
    const group = pausedGroup({ queueLengthMax: 100 });
    group.release('refused', 'failed');
    for (let index = 0; index < 12; index += 1) group.ask(`w${index}`, { sliceMs });
    const granted = [];
    for (const ms of [9_999, 1, 1_999, 1, 1_999, 1]) {
      group.advance(ms);
      granted.push(group.inUse());
    }
    expect(granted).toEqual([0, 2, 2, 4, 4, 8]);
  });

  test('the group wakes at each step, and at none more', () => {
    const group = pausedGroup();
    group.release('refused', 'failed');
    for (let index = 0; index < 12; index += 1) group.ask(`w${index}`, { sliceMs });
    const wakes: number[] = [];
    for (let step = 0; step < 3; step += 1) {
      wakes.push(group.wakesIn());
      group.advance(group.wakesIn());
    }
    expect(wakes).toEqual([10_000, 2_000, 2_000]);
    expect(group.wakesIn()).toBeGreaterThan(10_000);
  });

  test('a call that is wider than the first step of the ramp goes when nobody else does', () => {
    const group = pausedGroup();
    group.release('refused', 'failed');
    group.ask('wide', { slots: 5, sliceMs });
    expect(group.wakesIn()).toBe(10_000);
    expect(group.advance(10_000)).toEqual(['grant wide.1']);
  });
});

describe('a pause by a nearly empty limit', () => {
  test('stops the next calls, though the call was served', () => {
    const group = new TestGroup({ slotsMax: 8 });
    group.ask('a');
    group.report('a', { kind: 'served', retryAfterMs: 3_000 });
    expect(group.ask('b', { sliceMs })).toEqual([]);
    expect(group.advance(3_000)).toEqual(['grant b.1']);
    expect(group.state.totals.refusals).toEqual({});
  });
});

test('a limit that was refused counts as used up', () => {
  const group = metered({ rpm: 60, tpm: 6_000, itpm: 5_000, otpm: 5_000 });
  call(group, 'a');
  call(group, 'b');
  group.report('a', { kind: 'requests', retryAfterMs: 0 });
  expect(leftIn(group)['rpm']).toBe(0);
  expect(leftIn(group)['tpm']).toBeGreaterThan(5_000);
  group.report('b', { kind: 'tokens', retryAfterMs: 0 });
  expect(leftIn(group)).toMatchObject({ tpm: 0, itpm: 0, otpm: 0 });
});

test('a wide call above what was learned goes at the end of a pause too', () => {
  const group = new TestGroup({ slotsMax: 8, timeoutMs: 600_000 });
  group.askAll('a', 'b');
  group.report('b', { kind: 'concurrency' });
  group.report('a', pauseOf(10_000));
  for (const name of ['a', 'b']) group.release(name, 'failed');
  group.ask('wide', { slots: 4, sliceMs });
  expect(group.wakesIn()).toBe(10_000);
  expect(group.advance(10_000)).toEqual(['grant wide.1']);
});
