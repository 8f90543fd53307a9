import { describe, expect, test } from 'vitest';
import { estimateWaitMs } from '../../../../src/core/estimate.ts';
import { after } from '../../../../src/core/words/ids.ts';
import { HOLD_SAMPLES_MIN, RETRY_AFTER_MAX_MS } from '../../../../src/core/words/settings.ts';
import type { TestGroup } from '../../../support/core-builders.ts';
import { call, metered, used } from './metered.ts';

/** How long a wait is foreseen with limits besides slots, and whom that rejects. */

/** Calls of one second have taught the group how long a hold is. */
function experienced(limits: object, settings = {}): TestGroup {
  const group = metered(limits, { timeoutMs: 600_000, ...settings });
  group.state.holdSamples = HOLD_SAMPLES_MIN;
  group.state.holdMeanMs = 1_000;
  return group;
}

/** The wait foreseen for somebody with so many before it. */
function foreseen({ state, now }: TestGroup, ahead: number): number {
  return estimateWaitMs(state, ahead, now);
}

test('each place takes its turn of the limit of requests once it is used up', () => {
  const group = experienced({ rpm: 60, burstMs: 1_000 });
  call(group, 'a');
  call(group, 'b');
  expect([0, 1, 2].map((ahead) => foreseen(group, ahead))).toEqual([1_031, 2_000, 3_000]);
});

test('for what may go at once nobody waits', () => {
  const group = experienced({ rpm: 60, burstMs: 10_000 }, { slotsMax: 1 });
  call(group, 'holder');
  expect(foreseen(group, 4)).toBe(5_000);
  expect(call(group, 'a')).toEqual([]);
});

test('a call is rejected at once whose deadline comes before its turn of the requests', () => {
  const group = experienced({ rpm: 6, burstMs: 1_000 });
  call(group, 'a');
  call(group, 'b');
  const deadlineAt = after(group.now, 15_000);
  expect(call(group, 'c', {}, { deadlineAt })).toEqual(['reject c infeasible']);
  expect(call(group, 'd', {}, { deadlineAt: after(group.now, 25_000) })).toEqual([]);
});

test('a call is not rejected for turns that the burst covers', () => {
  const group = experienced({ rpm: 6, burstMs: 60_000 }, { slotsMax: 1 });
  call(group, 'holder');
  call(group, 'a');
  const deadlineAt = after(group.now, 5_000);
  expect(call(group, 'b', {}, { deadlineAt })).toEqual([]);
});

test('the wait for tokens counts as far as it is known', () => {
  const group = experienced({ tpm: 6_000 });
  call(group, 'a', { input: 5_820 });
  group.release('a', 'success', 1, used({ input: 5_820 }));
  call(group, 'b', { input: 300 });
  expect(foreseen(group, 0)).toBe(group.state.roomDueAt - group.now);
});

test('a pause is waited for first, and the slots after it', () => {
  const group = experienced({}, { slotsMax: 2 });
  group.ask('a');
  group.report('a', { kind: 'requests', retryAfterMs: 7_000 });
  expect(foreseen(group, 0)).toBe(7_000);
  expect(foreseen(group, 3)).toBe(7_000 + 1_500);
});

describe('where nothing drains', () => {
  test.each([
    ['no slots', {}, { slotsMax: 0 }],
    ['no requests', { rpm: 0 }, {}],
  ])('with %s the longest wait is told', (_, limits, settings) => {
    const group = metered(limits, settings);
    expect(foreseen(group, 0)).toBe(RETRY_AFTER_MAX_MS);
    expect(call(group, 'a', {}, { wait: false })).toEqual(['reject a busy']);
    expect(group.rejection('a').retryAfterMs).toBeGreaterThan(30_000);
  });
});

describe('a dry run', () => {
  test('counts who would have waited for requests, and lets them pass', () => {
    const group = metered({ rpm: 1 }, { isDryRun: true });
    expect(call(group, 'a')).toEqual(['grant a.1']);
    expect(call(group, 'b')).toEqual(['grant b.1']);
    expect(group.state.totals.wouldWait).toBe(1);
  });

  test('leaves no debt behind when it ends', () => {
    const group = metered({ rpm: 60, tpm: 6_000 }, { isDryRun: true, timeoutMs: 600_000 });
    for (let index = 0; index < 300; index += 1) {
      call(group, `call-${index}`, { input: 100 });
      group.release(`call-${index}`);
    }
    group.reconfigure({ isDryRun: false });
    expect(group.effects.map(({ kind }) => kind)).toContain('write');
    // The minute itself is used up.
    expect(call(group, 'a', { input: 100 })).toEqual([]);
    group.advance(62_000);
    expect(call(group, 'a', { input: 100 })).toEqual(['grant a.1']);
  });

  test('brings nothing back that was there', () => {
    const group = metered({ rpm: 60, burstMs: 10_000 }, { isDryRun: true });
    call(group, 'a');
    const before = structuredClone(group.state.controls.rates);
    group.reconfigure({ isDryRun: false });
    expect(group.state.controls.rates).toEqual(before);
  });
});
