// Reports of lease holders: those of one key count for at most a minute, until a second key or Headgate itself confirms them.
import { describe, expect, it } from 'vitest';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import { TestGroup, UNMETERED } from '../../support/core-builders.ts';
import { isGranted } from '../../support/scope-calls.ts';

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

/** Reports a refusal of a call that was granted just now. */
function reportOfNew(group: TestGroup, signal: Partial<UpstreamSignal>): void {
  const name = `call-${group.state.totals.granted}`;
  group.ask(name, { isById: true });
  group.report(name, signal);
  group.release(name, 'failed');
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

  it.each([
    ['a limit', {}],
    ['a long window', { kind: 'long_window', retryAfterMs: 31 * 86_400_000 }],
    ['an overload', { kind: 'overload' }],
    ['nearly empty limits', { kind: 'served' }],
  ] as const)('pauses the calls of a model or a key for a minute at most: %s', (_name, more) => {
    const group = TestGroup.stored({ slotsMax: 10, timeoutMs: 2 * MINUTE_MS });
    group.ask('before', { names: { model: 'flash' } });
    const own = { isById: true, names: { model: 'pro', credential: 'own' } };
    group.ask('c0', own);
    group.report('c0', refused('a', { scope: 'model', ...more }));
    group.release('c0', 'failed');
    group.ask('c1', { ...own, sliceMs: 2 * MINUTE_MS });
    expect(group.waiting()).toEqual(['c1']);
    expect(group.advance(MINUTE_MS)).toContain('grant c1.1');
    // It may stop no calls for a while.
    group.report('c1', refused('a', { scope: 'model', ...more }));
    expect(countsOf(group)).toMatchObject({ unconfirmed: 1, ignored: 1 });
    const [scope] = group.member().controls.scopes.narrower;
    expect(scope?.ceiling.slots).toBeNull();
    expect(scope?.pause.until).toBeLessThanOrEqual(group.now);
  });

  it('leaves only its wait to the model that it is about, when the first other model comes', () => {
    const group = TestGroup.stored({ slotsMax: 20 });
    const pro = { isById: true, names: { model: 'pro' } };
    for (let at = 0; at < 8; at += 1) group.ask(`pro-${at}`, pro);
    for (const name of ['pro-7', 'pro-6']) {
      group.report(name, { kind: 'concurrency', scope: 'model' });
      group.release(name, 'failed');
    }
    group.advance(1_000);
    group.release('pro-0');
    group.ask('pro-8', pro);
    const learned = group.member().controls.ceiling.slots;
    expect(learned).not.toBeNull();
    group.report('pro-8', refused('a', { kind: 'overload', scope: 'model' }));
    expect(group.member().controls.ceiling.slots).not.toBe(learned);
    group.ask('flash', { names: { model: 'flash' } });
    const { scopes, ceiling } = group.member().controls;
    expect(scopes.narrower.map((one) => one.ceiling.slots)).toEqual([learned]);
    group.advance(2 * MINUTE_MS);
    // The end of the report does not give the ceiling of one model to all.
    expect(ceiling.slots).toBeNull();
  });

  it('holds the calls of its own key, whatever others report without a gateway key', () => {
    const group = TestGroup.stored({ slotsMax: 10 });
    const withKey = (credential: string) => ({
      isById: true,
      names: { model: 'pro', credential },
    });
    for (const key of ['before', 'one', 'two']) group.ask(key, withKey(key));
    const isHeld = (key: string): boolean => {
      return !isGranted(group, `${key}-next`, { ...withKey(key), wait: false });
    };
    for (const key of ['one', 'two']) {
      group.report(key, refused('', { kind: 'long_window', scope: 'credential' }));
      group.release(key, 'failed');
      expect(isHeld(key)).toBe(true);
    }
    expect(isHeld('before')).toBe(false);
    expect(countsOf(group)).toMatchObject({ ignored: 0 });
  });

  it('does not make a refusal of another key apply to all', () => {
    const group = TestGroup.stored({ slotsMax: 10 });
    const withKey = (credential: string) => ({ names: { model: 'pro', credential } });
    group.ask('before', withKey('before'));
    group.ask('made-up', { ...withKey('made-up'), isById: true });
    group.ask('honest', withKey('honest'));
    const full = { kind: 'long_window', scope: 'credential', retryAfterMs: WEEK_MS } as const;
    group.report('made-up', refused('', full));
    group.report('honest', full);
    expect(isGranted(group, 'again', { ...withKey('honest'), wait: false })).toBe(false);
    expect(isGranted(group, 'other', { ...withKey('other'), wait: false })).toBe(true);
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

  it('stops the group for at most one minute in eleven, in one piece or in several', () => {
    const group = TestGroup.stored({ slotsMax: 10 });
    let heldMs = 0;
    for (let at = 0; at < 10; at += 1) {
      reportOfNew(group, refused('a', { retryAfterMs: 20_000 }));
      heldMs += pausedMs(group);
      group.advance(MINUTE_MS);
    }
    // The four seconds after a pause count too, because fewer calls run then.
    expect(heldMs).toBeGreaterThan(40_000);
    expect(heldMs).toBeLessThanOrEqual(MINUTE_MS);
    group.advance(MINUTE_MS);
    reportOfNew(group, refused('a', { retryAfterMs: 20_000 }));
    expect(pausedMs(group)).toBe(20_000);
  });

  it('is not ignored after short waits, or after errors that stop nothing', () => {
    const group = TestGroup.stored({ slotsMax: 10 });
    reportOfNew(group, refused('a', { kind: 'error', retryAfterMs: null }));
    group.advance(MINUTE_MS);
    for (let at = 0; at < 3; at += 1) {
      reportOfNew(group, refused('a', { retryAfterMs: 5_000 }));
      expect(pausedMs(group)).toBe(5_000);
      group.advance(MINUTE_MS);
    }
    expect(countsOf(group)).toMatchObject({ unconfirmed: 4, ignored: 0 });
  });

  it('uses its own time while reports of another key are unconfirmed', () => {
    const group = TestGroup.stored({ slotsMax: 10 });
    let heldMs = 0;
    for (let at = 0; at < 11; at += 1) {
      reportOfNew(group, refused('a', { kind: 'error', retryAfterMs: null }));
      reportOfNew(group, refused('b'));
      heldMs += pausedMs(group);
      group.advance(MINUTE_MS);
    }
    expect(heldMs).toBe(MINUTE_MS);
  });

  it('is ignored for ten minutes if its report of a minute is not confirmed', () => {
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

  it.each(['overload', 'concurrency'] as const)(
    'confirms only reports of the same kind: %s',
    (kind) => {
      const group = aGroup();
      group.report('c0', refused('a'));
      group.report('c1', refused('b', { kind, slotsMax: 1 }));
      expect(pausedMs(group)).toBe(MINUTE_MS);
      group.advance(MINUTE_MS);
      expect(group.member().controls.ceiling.slots).toBe(null);
    },
  );

  it.each([
    [7, 3],
    [3, 7],
  ])('confirms the larger of two concurrency limits: %i and %i', (one, other) => {
    const group = aGroup();
    const kind = 'concurrency';
    group.report('c0', refused('a', { kind, retryAfterMs: null, slotsMax: one }));
    group.report('c1', refused('b', { kind, retryAfterMs: null, slotsMax: other }));
    group.advance(MINUTE_MS);
    expect(group.member().controls.ceiling.slots).toBe(7);
  });

  it('does not confirm a concurrency limit by a report of another limit', () => {
    const group = aGroup();
    group.report('c0', refused('a', { retryAfterMs: 1_000 }));
    group.report('c1', refused('a', { kind: 'concurrency', retryAfterMs: null, slotsMax: 1 }));
    group.report('c2', refused('b', { retryAfterMs: 1_000 }));
    expect(countsOf(group)).toMatchObject({ confirmed: 1 });
    expect(group.member().controls.ceiling.slots).toBe(null);
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

  it.each([
    ['error', { kind: 'error', retryAfterMs: null }, 'requests', { retryAfterMs: 600_000 }],
    ['requests', { retryAfterMs: null }, 'long_window', { retryAfterMs: 600_000 }],
    ['concurrency', { kind: 'concurrency', slotsMax: 4 }, 'tokens', { retryAfterMs: 600_000 }],
    ['error', { kind: 'error', retryAfterMs: null }, 'served', { retryAfterMs: 600_000 }],
  ] as const)('keeps a pause that it sees after a report of %s', (_name, more, kind, seen) => {
    const group = aGroup();
    group.report('c0', refused('a', more));
    group.report('c1', { kind, ...seen });
    group.report('c2', refused('a', more));
    expect(pausedMs(group)).toBe(600_000);
    expect(pausedMs(group.restart())).toBe(600_000);
    group.advance(MINUTE_MS);
    expect(pausedMs(group)).toBe(540_000);
  });

  it('keeps a concurrency limit that it sees after a report of another kind', () => {
    const group = aGroup();
    group.report('c0', refused('a', { kind: 'error', retryAfterMs: null }));
    group.report('c1', { kind: 'concurrency', slotsMax: 4 });
    expect(group.restart().member().controls.ceiling.slots).toBe(4);
    group.advance(MINUTE_MS);
    expect(group.member().controls.ceiling.slots).toBe(4);
  });

  it('keeps a breaker open if it saw the failures', () => {
    const group = aGroup(20);
    group.report('c0', refused('a', { retryAfterMs: null }));
    for (let at = 1; at < 13; at += 1) {
      group.report(`c${at}`, { kind: 'overload', retryAfterMs: 900_000 });
    }
    expect(group.restart().member().controls.breaker.phase).toBe('open');
    group.advance(MINUTE_MS);
    const { breaker } = group.member().controls;
    expect(breaker.phase).toBe('open');
    expect(breaker.openUntil - group.now).toBe(840_000);
  });

  it.each(['requests', 'error'] as const)(
    'continues a reported pause, and undoes a reported limit, after a refusal that it sees: %s',
    (kind) => {
      const group = aGroup();
      group.report('c0', refused('a', { kind: 'concurrency', retryAfterMs: null, slotsMax: 1 }));
      group.report('c1', refused('a', { retryAfterMs: 30_000 }));
      group.report('c2', { kind, retryAfterMs: null });
      expect(group.member().controls.ceiling.slots).toBe(null);
      expect(pausedMs(group)).toBe(30_000);
    },
  );

  it('counts its own results for the breaker after the end of a report', () => {
    const group = aGroup();
    group.report('c0', { kind: 'error' });
    group.report('c1', refused('a', { kind: 'error', retryAfterMs: null }));
    group.report('c2', {});
    group.advance(MINUTE_MS);
    const { results } = group.member().controls.breaker;
    expect(results.map(({ failed }) => failed)).toEqual([true, false]);
  });

  it('does not open the breaker because of one failure after many reported ones', () => {
    const group = aGroup(20);
    for (let at = 0; at < 9; at += 1) {
      group.report(`c${at}`, refused('a', { kind: 'error', retryAfterMs: null }));
    }
    group.report('c10', { kind: 'error' });
    expect(group.member().controls.breaker).toMatchObject({ phase: 'closed', openings: 0 });
  });

  it('does not shorten the time of a breaker that a failed probe opened', () => {
    const group = aGroup(20);
    for (let at = 0; at < 12; at += 1) group.report(`c${at}`, { kind: 'error' });
    const { breaker } = group.member().controls;
    for (let at = 0; at < 20; at += 1) group.release(`c${at}`);
    group.ask('r', { isById: true });
    group.advance(breaker.openUntil - group.now);
    expect(breaker.probes).toHaveLength(1);
    group.report('r', { kind: 'error' });
    const seenUntil = breaker.openUntil;
    group.report('r', refused('a', { kind: 'unknown', retryAfterMs: 1_000 }));
    group.report('r', refused('a', { kind: 'unknown', retryAfterMs: 1_000 }));
    expect(breaker.openUntil).toBe(seenUntil);
  });

  it('refutes a concurrency limit by a call that is served beside more calls', () => {
    const group = aGroup();
    group.report('c0', refused('a', { kind: 'concurrency', retryAfterMs: null, slotsMax: 2 }));
    for (let at = 0; at < 10; at += 1) group.release(`c${at}`);
    // The lower limit grows by one as a probe once enough calls have filled it.
    for (let at = 0; at < 40 && countsOf(group).refuted === 0; at += 1) {
      group.advance(1_000);
      for (const of of ['x', 'y', 'z']) group.ask(`${of}${at}`);
      for (const of of ['x', 'y', 'z']) {
        group.report(`${of}${at}`, {});
        group.release(`${of}${at}`);
      }
    }
    expect(group.member().controls.ceiling.slots).toBe(null);
    expect(countsOf(group)).toMatchObject({ refuted: 1 });
    // The key's reports are ignored for ten minutes; those of another key are not.
    group.ask('later', { isById: true });
    group.report('later', refused('a'));
    expect(pausedMs(group)).toBe(0);
    expect(countsOf(group)).toMatchObject({ ignored: 1 });
    group.report('later', refused('b'));
    expect(pausedMs(group)).toBe(MINUTE_MS);
  });

  it.each(['reported', 'ended'] as const)(
    'refutes a wait by a call that starts within it and is served: %s',
    (how) => {
      const group = aGroup();
      group.release('c9');
      // It acquires its slot of another group only within the reported wait.
      group.ask('late', { waitsElsewhere: true });
      group.report('c0', refused('a', { retryAfterMs: 30_000 }));
      group.advance(1);
      group.confirm('late');
      if (how === 'reported') group.report('late', {});
      else group.release('late');
      expect(pausedMs(group)).toBe(0);
      expect(countsOf(group)).toMatchObject({ refuted: 1 });
    },
  );

  it.each([
    ['a wait that is over', { retryAfterMs: 5_000 }],
    ['a concurrency limit that was not exceeded', { kind: 'concurrency', slotsMax: 4 }],
    ['an error', { kind: 'error', retryAfterMs: null }],
  ] as const)('refutes no report by a call that is served after %s', (_name, more) => {
    const group = aGroup();
    group.report('c0', refused('a', { retryAfterMs: null, ...more }));
    const { slots } = group.member().controls.ceiling;
    for (let at = 0; at < 10; at += 1) group.release(`c${at}`);
    group.advance(5_000);
    for (const name of ['next', 'last']) group.ask(name);
    group.report('next', {});
    group.release('last');
    expect(countsOf(group)).toMatchObject({ refuted: 0 });
    expect(group.member().controls.ceiling.slots).toBe(slots);
    group.ask('later', { isById: true });
    group.report('later', refused('a', { retryAfterMs: 5_000 }));
    expect(pausedMs(group)).toBe(5_000);
  });

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
