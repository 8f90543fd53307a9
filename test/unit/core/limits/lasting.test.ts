import { describe, expect, test } from 'vitest';
import { slotsLearned } from '../../../../src/core/capacity.ts';
import { LEASE_TTL_MS } from '../../../../src/core/words/settings.ts';
import { someClaim, TestGroup } from '../../../support/core-builders.ts';
import { call, leftIn, metered, used } from './metered.ts';

/** Limits after a reset. */

const sliceMs = 600_000;

describe('after a reset', () => {
  test('there is no second helping of requests and tokens', () => {
    const group = metered(
      { rpm: 2, rpd: 10, tpm: 1_000, tpd: 5_000, startsPerS: 100 },
      { timeoutMs: 600_000 },
    );
    call(group, 'a', { input: 400 });
    call(group, 'b', { input: 500 });
    group.release('b', 'success', 1, used({ input: 500 }));
    const before = leftIn(group);
    const after = group.restart();
    for (const name of ['rpm', 'rpd', 'tpm', 'tpd', 'startsPerS']) {
      expect(leftIn(after)[name], `${name} is less than before`).toBeLessThan(before[name] ?? 0);
    }
    call(after, 'c', { input: 10 });
    expect(after.advance(1_000)).toEqual([]);
    expect(after.waiting()).toEqual(['c']);
  });

  test('a call in flight is settled like any other', () => {
    const group = metered({ tpd: 5_000, perDayUsd: 100 });
    call(group, 'a', { input: 400, usd: 2 });
    const after = group.restart();
    const { tpd: tokens = 0, usd = 0 } = group.stored.ahead;
    expect(leftIn(after)).toMatchObject({ tpd: 4_600 - tokens, reservedUsd: 2 + usd });
    after.resume('a', { reserved: group.lease('a').reserved });
    after.release('a', 'success', 1, used({ input: 100, usd: 1 }));
    const settled = { tpd: 4_900 - tokens, reservedUsd: usd, spentUsd: 1 };
    expect(leftIn(after)).toMatchObject(settled);
  });

  test('a call that was settled before is not settled again while its slot cools down', () => {
    const group = metered({ tpd: 5_000, perDayUsd: 100 }, { releaseCooldownMs: 60_000 });
    call(group, 'a', { input: 400, usd: 2 });
    const { reserved } = group.lease('a');
    group.release('a', 'success', 1, used({ input: 100, usd: 1 }));
    const after = group.restart();
    const before = leftIn(after);
    after.send({
      kind: 'release',
      leaseId: group.lease('a').id,
      outcome: 'success',
      settlement: used({ input: 100, usd: 1 }),
      claim: someClaim('a', { reserved }),
    });
    expect(after.resume('a', { reserved })).toEqual(['gone a']);
    expect(leftIn(after)).toEqual(before);
  });

  test('money stays set aside as long as its holder may come back, and counts as spent from then on', () => {
    const group = metered({ perDayUsd: 100 });
    call(group, 'comes', { usd: 10 });
    call(group, 'stays', { usd: 20 });
    const after = group.restart();
    const lostUsd = group.stored.ahead.usd ?? 0;
    after.resume('comes', { reserved: group.lease('comes').reserved });
    expect(leftIn(after)).toMatchObject({ reservedUsd: 30 + lostUsd, spentUsd: 0 });
    after.advance(LEASE_TTL_MS - 1);
    after.renew('comes');
    expect(leftIn(after)).toMatchObject({ reservedUsd: 30 + lostUsd, spentUsd: 0 });
    after.advance(1);
    expect(leftIn(after)).toMatchObject({ reservedUsd: 10, spentUsd: 20 + lostUsd });
  });

  test('a pause lasts on, and its ramp', () => {
    const group = TestGroup.stored({ slotsMax: 4, timeoutMs: 600_000 });
    group.ask('a');
    group.report('a', { kind: 'requests', retryAfterMs: 10_000 });
    group.release('a', 'failed');
    const after = group.restart();
    after.ask('b', { sliceMs });
    after.ask('c', { sliceMs });
    expect(after.advance(9_999)).toEqual([]);
    expect(after.advance(1)).toEqual(['grant b.1']);
    expect(after.advance(2_000)).toEqual(['grant c.1']);
  });

  test('a learned ceiling stays', () => {
    const group = TestGroup.stored({ slotsMax: 10 });
    group.askAll('a', 'b', 'c');
    group.report('c', { kind: 'concurrency' });
    expect(slotsLearned(group.restart().state)).toBe(2);
  });

  describe('the breaker', () => {
    /** Half open, with one probe under way. */
    function halfOpen(): TestGroup {
      const group = TestGroup.stored({ slotsMax: 20, timeoutMs: 600_000, isAdaptive: false });
      for (let index = 0; index < 10; index += 1) {
        group.ask(`bad-${index}`, { sliceMs });
        group.report(`bad-${index}`, { kind: 'error' });
        group.release(`bad-${index}`, 'failed');
      }
      group.ask('probe', { sliceMs });
      group.advance(group.wakesIn());
      return group;
    }

    test('waits for a probe that may still be under way, until its holder comes back', () => {
      const after = halfOpen().restart();
      after.ask('next', { sliceMs });
      after.advance(1_000);
      expect(after.waiting()).toEqual(['next']);
      after.resume('probe');
      expect(after.report('probe', { kind: 'served' })).toEqual(['grant next.1']);
    });

    test('has the permit back of a probe whose holder does not come', () => {
      const after = halfOpen().restart();
      after.ask('next', { sliceMs });
      after.ask('other', { sliceMs });
      expect(after.advance(LEASE_TTL_MS - 1)).toEqual([]);
      expect(after.advance(1)).toEqual(['grant next.1']);
    });
  });
});
