// Reports of lease holders: those of one key count for at most a minute, until a second key or Headgate itself confirms them.
import { describe, expect, it } from 'vitest';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import { TestGroup, UNMETERED } from '../../support/core-builders.ts';

const WEEK_MS = 7 * 86_400_000;
const MINUTE_MS = 60_000;

const refused = (
  reportedBy: string,
  more: Partial<UpstreamSignal> = {},
): Partial<UpstreamSignal> => ({
  kind: 'requests',
  retryAfterMs: WEEK_MS,
  reportedBy,
  ...more,
});

function aGroup(slots = 10): TestGroup {
  const group = TestGroup.stored({ slotsMax: slots });
  for (let at = 0; at < slots; at += 1) group.ask(`c${at}`, { isById: true });
  return group;
}

/** How long the group is paused from now on. */
function pausedMs(group: TestGroup): number {
  return Math.max(0, group.member().controls.pause.until - group.now);
}

const countsOf = (group: TestGroup) => group.state.totals.reports;

describe('one key', () => {
  it.each([
    ['requests', {}],
    ['tokens', { kind: 'tokens' }],
    ['long_window', { kind: 'long_window', retryAfterMs: 31 * 86_400_000 }],
    ['unknown', { kind: 'unknown' }],
    ['ramp', { kind: 'ramp' }],
    ['overload', { kind: 'overload' }],
    ['nearly empty limits', { kind: 'served' }],
  ] as const)('pauses for a minute at most: %s', (_name, more) => {
    const group = aGroup();
    group.report('c0', refused('a', more));
    expect(pausedMs(group)).toBe(MINUTE_MS);
    group.advance(MINUTE_MS - 1);
    expect(pausedMs(group)).toBe(1);
    // Its reports meanwhile belong to the same claim.
    group.report('c1', refused('a', more));
    expect(pausedMs(group)).toBe(1);
    expect(countsOf(group)).toMatchObject({ unconfirmed: 1, confirmed: 0 });
  });

  it('never shortens a pause that Headgate saw', () => {
    const group = aGroup();
    group.report('c0', { kind: 'requests', retryAfterMs: 600_000 });
    group.report('c1', refused('a'));
    expect(pausedMs(group)).toBe(600_000);
    group.advance(MINUTE_MS);
    expect(pausedMs(group)).toBe(540_000);
  });

  it('lowers the learned limit for a minute, without storing it', () => {
    const group = aGroup();
    const before = group.member().controls.ceiling.slots;
    group.report('c0', refused('a', { kind: 'concurrency', retryAfterMs: null, slotsMax: 1 }));
    expect(group.member().controls.ceiling.slots).toBe(1);
    expect(group.restart().member().controls.ceiling.slots).toBe(before);
    group.advance(MINUTE_MS);
    expect(group.member().controls.ceiling.slots).toBe(before);
    expect(group.member().controls.lag.ms).toBe(0);
  });

  it('is muted if its report is not confirmed within a minute', () => {
    const group = aGroup();
    group.report('c0', refused('a'));
    group.advance(MINUTE_MS);
    group.ask('next', { isById: true });
    group.report('next', refused('a'));
    expect(pausedMs(group)).toBe(0);
    expect(countsOf(group)).toMatchObject({ unconfirmed: 1, ignored: 1 });
    group.report('next', refused('b'));
    expect(pausedMs(group)).toBe(MINUTE_MS);
    group.advance(10 * MINUTE_MS);
    group.ask('later', { isById: true });
    group.report('later', refused('a'));
    expect(pausedMs(group)).toBe(MINUTE_MS);
  });

  it('opens the breaker for at most a minute', () => {
    const group = aGroup(20);
    for (let at = 0; at < 12; at += 1) {
      group.report(`c${at}`, refused('a', { kind: 'overload', retryAfterMs: 3_600_000 }));
    }
    const { breaker } = group.member().controls;
    expect(breaker.phase).toBe('open');
    expect(breaker.openUntil - group.now).toBeLessThanOrEqual(MINUTE_MS);
    group.advance(MINUTE_MS);
    expect(breaker).toMatchObject({ phase: 'closed', openings: 0 });
  });

  it('does not reduce the rates of the group', () => {
    const rates = { ...UNMETERED.rates, rpm: 600, burstMs: MINUTE_MS };
    const group = new TestGroup({ slotsMax: 5, rates, isMetered: true });
    group.ask('a', { isById: true, estimate: { price: 0 } });
    const left = { ...group.member().controls.rates.buckets.rpm };
    const hints = [
      { dimension: 'requests', windowMs: MINUTE_MS, limit: 600, remaining: 0, resetMs: MINUTE_MS },
    ] as const;
    group.report('a', { kind: 'served', hints, reportedBy: 'a' });
    group.report('a', refused('a', { hints }));
    expect(group.member().controls.rates.buckets.rpm).toEqual(left);
  });

  it('has no effect with a report of a rejected key or an empty account', () => {
    const group = aGroup();
    for (const kind of ['unauthorized', 'quota', 'egress', 'never_fits'] as const) {
      group.report('c0', refused('a', { kind }));
    }
    expect(pausedMs(group)).toBe(0);
    expect(countsOf(group)).toMatchObject({ unconfirmed: 0 });
  });
});

describe('a second key', () => {
  it('confirms: the pause lasts as long as both reported', () => {
    const group = aGroup();
    group.report('c0', refused('a', { retryAfterMs: 900_000 }));
    group.advance(1_000);
    group.report('c1', refused('b', { kind: 'unknown', retryAfterMs: 1_800_000 }));
    expect(pausedMs(group)).toBe(899_000);
    group.advance(MINUTE_MS);
    expect(pausedMs(group)).toBe(839_000);
    expect(countsOf(group)).toMatchObject({ unconfirmed: 1, confirmed: 1 });
  });

  it('does not count if both are callers without a gateway key', () => {
    const group = aGroup();
    group.report('c0', refused(''));
    group.report('c1', refused(''));
    expect(pausedMs(group)).toBe(MINUTE_MS);
  });

  it('confirms only reports of the same kind', () => {
    const group = aGroup();
    group.report('c0', refused('a'));
    group.report('c1', refused('b', { kind: 'overload' }));
    expect(pausedMs(group)).toBe(MINUTE_MS);
  });
});

describe('Headgate itself', () => {
  it('confirms a report by a refusal that it sees', () => {
    const group = aGroup();
    group.report('c0', refused('a', { kind: 'concurrency', retryAfterMs: null, slotsMax: 4 }));
    group.report('c1', { kind: 'concurrency', slotsMax: 4 });
    group.advance(MINUTE_MS);
    expect(group.member().controls.ceiling.slots).toBeLessThanOrEqual(4);
  });

  it.each(['reported', 'ended'] as const)(
    'refutes a report by a call that is served after it: %s',
    (how) => {
      const group = aGroup();
      group.report('c0', refused('a', { kind: 'concurrency', retryAfterMs: null, slotsMax: 2 }));
      for (let at = 0; at < 10; at += 1) group.release(`c${at}`);
      group.advance(1);
      group.ask('call');
      expect(group.lease('call').phase).toBe('held');
      if (how === 'reported') group.report('call', {});
      else group.release('call');
      expect(group.member().controls.ceiling.slots).toBe(null);
      expect(countsOf(group)).toMatchObject({ refuted: 1 });
      // The key's reports are ignored for ten minutes; those of another key are not.
      group.ask('x', { isById: true });
      group.report('x', refused('a'));
      expect(pausedMs(group)).toBe(0);
      expect(countsOf(group)).toMatchObject({ ignored: 1 });
      group.report('x', refused('b'));
      expect(pausedMs(group)).toBe(MINUTE_MS);
    },
  );

  it('does not refute a report by a lease of the reporting key', () => {
    const group = aGroup();
    group.report('c0', refused('a', { kind: 'concurrency', retryAfterMs: null, slotsMax: 2 }));
    for (let at = 0; at < 10; at += 1) group.release(`c${at}`);
    group.advance(1);
    group.ask('next', { isById: true });
    group.report('next', { reportedBy: 'a' });
    group.release('next');
    expect(countsOf(group)).toMatchObject({ refuted: 0 });
  });
});

it('relearn deletes reports', () => {
  const group = aGroup();
  group.report('c0', refused('a'));
  group.send({ kind: 'relearn' });
  expect(pausedMs(group)).toBe(0);
  group.report('c1', refused('b'));
  expect(pausedMs(group)).toBe(MINUTE_MS);
});
