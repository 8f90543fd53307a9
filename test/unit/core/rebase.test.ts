import { describe, expect, test } from 'vitest';
import { correctSpend, undoCorrection, PERIODS, spentIn } from '../../../src/core/parts/spend.ts';
import { after } from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';
import { call, leftIn, metered, used } from './limits/metered.ts';

/** Rows that were written by a clock which was an hour ahead, and has been set back. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

/** The next instance of a group, by a clock that shows an hour less. */
function setBack(group: TestGroup): TestGroup {
  group.write();
  group.now = after(group.now, -HOUR_MS);
  return group.reset();
}

/** Makes a call that costs so much. */
function spend(group: TestGroup, name: string, usd: number): void {
  call(group, name, { usd });
  group.release(name, 'success', 1, used({ usd }));
}

describe('a lease', () => {
  test('whose slot cools down is free within one TTL', () => {
    const group = TestGroup.stored({ slotsMax: 1, timeoutMs: HOUR_MS, failureCooldownMs: 2_000 });
    group.ask('a');
    group.release('a', 'failed');
    const next = setBack(group);
    next.ask('b', { sliceMs: HOUR_MS });
    expect(next.advance(LEASE_TTL_MS)).toEqual(['grant b.1']);
  });

  test('of a dead holder is free one TTL from now', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.ask('a');
    const next = setBack(group.restart());
    next.ask('b', { sliceMs: HOUR_MS });
    expect(next.advance(LEASE_TTL_MS - 1)).toEqual([]);
    expect(next.advance(1)).toEqual(['grant b.1']);
  });

  test('is taken up again under a larger attachment than its holder has', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.ask('a');
    const next = setBack(group);
    const { attachment } = group.lease('a');
    next.resume('a', { attachment });
    expect(next.lease('a').attachment).toBeGreaterThan(attachment);
    expect(next.detach('a', attachment)).toEqual([]);
  });

  test('whose holder has had it for less than nothing was held for no time', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.ask('a', { isById: true });
    const next = setBack(group);
    next.resume('a', { isById: true, heldMs: -HOUR_MS });
    expect(next.lease('a').grantedAt).toBeLessThanOrEqual(next.now);
    next.advance(1_000);
    next.release('a');
    expect(next.state.holdMeanMs).toBe(1_000);
  });

  test('of which nothing is stored is so too, however far ahead its clock was', () => {
    const group = new TestGroup({ slotsMax: 1 });
    const attachment = 10 * group.state.nextAttachment;
    group.resume('a', { attachment });
    expect(group.lease('a').attachment).toBeGreaterThan(attachment);
    expect(group.detach('a', attachment)).toEqual([]);
  });
});

describe('what was learned and used', () => {
  test('a pause lasts as long as it was to, and no hour more', () => {
    const group = TestGroup.stored({ slotsMax: 4, timeoutMs: HOUR_MS });
    group.ask('a');
    group.report('a', { kind: 'requests', retryAfterMs: 30_000 });
    group.release('a', 'refused');
    const next = setBack(group);
    next.ask('b', { sliceMs: HOUR_MS });
    expect(next.advance(29_999)).toEqual([]);
    expect(next.advance(1)).toEqual(['grant b.1']);
  });

  test('a breaker stays open as long as it was to', () => {
    const group = TestGroup.stored({ slotsMax: 100, timeoutMs: HOUR_MS });
    const names = Array.from({ length: 20 }, (_, index) => `f${index}`);
    group.askAll(...names);
    for (const name of names) {
      group.report(name, { kind: 'error' });
      group.release(name, 'failed');
    }
    const { openedAt, openUntil } = group.state.controls.breaker;
    const next = setBack(group);
    const { breaker } = next.state.controls;
    expect(breaker.openUntil - next.now).toBe(openUntil - openedAt);
  });

  test('limits fill again from now on, and give no second helping', () => {
    const group = metered({ rpm: 1, rpd: 3 }, { timeoutMs: HOUR_MS });
    call(group, 'a');
    group.release('a');
    const next = setBack(group);
    // One was used; nothing is set aside by a group that is empty.
    expect(leftIn(next)).toMatchObject({ rpd: 2 });
    expect(next.ask('b', { sliceMs: HOUR_MS })).toEqual([]);
    expect(next.advance(50_000)).toEqual([]);
    expect(next.advance(80_000)).toEqual(['grant b.1']);
  });

  test.each(['perHourUsd', 'perDayUsd', 'perMonthUsd'] as const)(
    'a budget is open again after its period: %s',
    (limit) => {
      const group = metered({ [limit]: 10 });
      const { now } = group;
      group.now = after(now, YEAR_MS);
      spend(group, 'a', 10);
      group.write();
      group.now = now;
      const next = group.reset();
      expect(call(next, 'b', { usd: 1 })).toEqual([expect.stringContaining('budget')]);
      next.now = after(now, 31 * DAY_MS);
      expect(call(next, 'c', { usd: 1 })).toEqual(['grant c.1']);
    },
  );

  test('a key or agent spends no longer in a period of the future, and a correction of it can be undone', () => {
    const group = metered({ perHourUsd: 10 });
    const { now } = group;
    group.now = after(now, DAY_MS);
    spend(group, 'a', 10);
    const { spend: ahead } = group.state.controls;
    const wanted = { id: 'c', member: null, period: 'hour', usd: -4, by: 'op', note: '' } as const;
    correctSpend(ahead, wanted, group.now);
    group.write();
    group.now = now;
    const { state } = group.reset();
    const { total, keys } = state.controls.spend;
    for (const spent of [total, ...keys]) {
      for (const period of PERIODS) expect(spent.beganAt[period]).toBeLessThanOrEqual(now);
    }
    expect(spentIn(total, 'hour', now)).toBe(6);
    undoCorrection(state.controls.spend, 'c', now);
    expect(spentIn(total, 'hour', now)).toBe(10);
  });

  test('nothing that is noted lies in the future', () => {
    const group = TestGroup.stored({ slotsMax: 3, releaseCooldownMs: 'auto' });
    group.askAll('before', 'a', 'b');
    group.release('before');
    group.askAll('lags', 'c');
    group.report('lags', { kind: 'concurrency' });
    group.release('lags', 'failed');
    group.advance(200);
    group.report('c', { kind: 'concurrency' });
    group.report('b', { kind: 'overload' });
    const { now, state } = setBack(group);
    const { ceiling, lag } = state.controls;
    const { evidence, lastCutAt, lastProbeAt, lastRiseAt } = ceiling;
    const noted = [lastCutAt, lastProbeAt, lastRiseAt, lag.refusedAt, evidence.refusedAt];
    expect(noted.filter((at) => at > now)).toEqual([]);
    expect(evidence.refusal?.at ?? 0).toBeLessThanOrEqual(now);
  });
});
