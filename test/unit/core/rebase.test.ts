import { describe, expect, test } from 'vitest';
import { after } from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';
import { call, leftIn, metered } from './limits/metered.ts';

/** Rows that were written by a clock which was an hour ahead, and has been set back. */

const HOUR_MS = 3_600_000;

/** The next instance of a group, by a clock that shows an hour less. */
function setBack(group: TestGroup): TestGroup {
  group.write();
  group.now = after(group.now, -HOUR_MS);
  return group.reset();
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
