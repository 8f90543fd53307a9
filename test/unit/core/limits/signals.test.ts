import { describe, expect, test } from 'vitest';
import { blockOf, slotsLearned } from '../../../../src/core/capacity.ts';
import type { RefusalKind, UpstreamSignal } from '../../../../src/core/words/signal.ts';
import { wantsServed } from '../../../../src/core/upstream-signals.ts';
import { TestGroup } from '../../../support/core-builders.ts';
import { call, leftIn, metered } from './metered.ts';

/** Answers of the upstream: different causes, different medicine. */

/** Ten calls in flight. */
function busyGroup(): TestGroup {
  const group = metered({ rpm: 6_000, tpm: 600_000 });
  for (let index = 0; index < 10; index += 1) call(group, `call-${index}`);
  return group;
}

/** Shows what has changed after an answer. */
function medicine(group: TestGroup): Record<string, unknown> {
  const { rpm = 0, tpm = 0 } = leftIn(group);
  return {
    slots: slotsLearned(group.state),
    pausedMs: Math.max(0, group.state.controls.pause.until - group.now),
    isDrained: rpm <= 0 || tpm <= 0,
    failures: group.state.controls.breaker.results.filter(({ failed }) => failed).length,
  };
}

const NOTHING = { slots: 10, pausedMs: 0, isDrained: false, failures: 0 };

describe('the first answer to one of ten calls', () => {
  test.each<[Partial<UpstreamSignal> & { kind: UpstreamSignal['kind'] }, object]>([
    [{ kind: 'served' }, {}],
    [{ kind: 'served', retryAfterMs: 2_000 }, { pausedMs: 2_000 }],
    [{ kind: 'egress', retryAfterMs: 9_000 }, {}],
    [{ kind: 'quota' }, {}],
    [{ kind: 'quota', retryAfterMs: 9_000 }, {}],
    [{ kind: 'never_fits', retryAfterMs: 9_000 }, {}],
    [{ kind: 'long_window' }, {}],
    [{ kind: 'long_window', retryAfterMs: 7_200_000 }, { pausedMs: 7_200_000 }],
    [{ kind: 'concurrency' }, { slots: 9 }],
    [{ kind: 'concurrency', retryAfterMs: 9_000 }, { slots: 9 }],
    [{ kind: 'concurrency', slotsMax: 4 }, { slots: 4 }],
    [{ kind: 'overload' }, { slots: 7, failures: 1 }],
    [
      { kind: 'overload', retryAfterMs: 3_000 },
      { slots: 7, failures: 1, pausedMs: 3_000 },
    ],
    [{ kind: 'error' }, { failures: 1 }],
    [
      { kind: 'requests', retryAfterMs: 3_000 },
      { pausedMs: 3_000, isDrained: true },
    ],
    [
      { kind: 'tokens', retryAfterMs: 3_000 },
      { pausedMs: 3_000, isDrained: true },
    ],
    [{ kind: 'requests' }, { pausedMs: 1_000, isDrained: true }],
    [
      { kind: 'ramp', retryAfterMs: 3_000 },
      { slots: 7, pausedMs: 3_000 },
    ],
    [{ kind: 'unknown', retryAfterMs: 3_000 }, { pausedMs: 3_000 }],
    [{ kind: 'unknown' }, { pausedMs: 1_000 }],
  ])('%j', (signal, changes) => {
    const group = busyGroup();
    group.report('call-9', signal);
    expect(medicine(group)).toEqual({ ...NOTHING, ...changes });
    expect(group.inUse()).toBe(10);
    // Most calls are taken, and that changes nothing that is kept.
    const saysNothing = signal.kind === 'egress' || signal.kind === 'never_fits';
    const isLearned = signal.kind !== 'served' || signal.retryAfterMs !== undefined;
    expect(group.effects.map(({ kind }) => kind)).toEqual(
      isLearned && !saysNothing ? ['write'] : [],
    );
  });
});

describe('said to one call again', () => {
  test.each<[RefusalKind, object]>([
    ['requests', {}],
    ['tokens', {}],
    ['unknown', {}],
    ['long_window', {}],
    ['overload', { slots: 7, failures: 1 }],
    ['ramp', { slots: 7 }],
    ['concurrency', { slots: 9 }],
  ])('%s pauses nobody and empties nothing', (kind, changes) => {
    const group = busyGroup();
    group.report('call-9', { kind, retryAfterMs: 3_000 }, true);
    expect(medicine(group)).toEqual({ ...NOTHING, ...changes });
  });

  test('it is counted each time', () => {
    const group = busyGroup();
    group.report('call-9', { kind: 'requests', retryAfterMs: 3_000 });
    group.report('call-9', { kind: 'requests', retryAfterMs: 3_000 }, true);
    group.report('call-8', { kind: 'quota' });
    expect(group.state.totals.refusals).toEqual({ requests: 2, quota: 1 });
  });
});

describe('overload', () => {
  test('cuts once for all calls that were granted before the cut', () => {
    const group = busyGroup();
    group.advance(100);
    for (const name of ['call-0', 'call-1', 'call-2']) group.report(name, { kind: 'overload' });
    expect(slotsLearned(group.state)).toBe(7);
  });

  test('cuts again for a call that was granted after the cut', () => {
    const group = busyGroup();
    group.report('call-0', { kind: 'overload' });
    for (let index = 0; index < 10; index += 1) group.release(`call-${index}`, 'failed');
    group.advance(1);
    call(group, 'later');
    group.report('later', { kind: 'overload' });
    expect(slotsLearned(group.state)).toBe(4);
  });
});

test('a call that waited in another group tells of the jam that it met', () => {
  const group = busyGroup();
  group.release('call-9', 'unused');
  call(group, 'late', {}, { waitsElsewhere: true });
  group.report('call-0', { kind: 'overload' });
  group.advance(10_000);
  group.confirm('late');
  group.report('late', { kind: 'overload' });
  expect(slotsLearned(group.state)).toBe(4);
});

describe('too many at once', () => {
  test('a burst of refusals ends at what was accepted', () => {
    const group = busyGroup();
    for (const name of ['call-4', 'call-5', 'call-6', 'call-7', 'call-8', 'call-9']) {
      group.report(name, { kind: 'concurrency' });
      group.release(name, 'failed');
    }
    expect(slotsLearned(group.state)).toBe(4);
    expect(call(group, 'next')).toEqual([]);
    expect(group.release('call-0')).toEqual(['ended call-0.1', 'grant next.1']);
  });

  test('slots that cool down, and calls that wait elsewhere, are not at the upstream', () => {
    const group = new TestGroup({ slotsMax: 10, cancelCooldownMs: 5_000 });
    group.askAll('a', 'b', 'c', 'd');
    group.ask('elsewhere', { waitsElsewhere: true });
    for (const name of ['b', 'c']) group.release(name, 'cancelled');
    group.report('a', { kind: 'concurrency' });
    expect(slotsLearned(group.state)).toBe(1);
  });

  test('never leaves less than one slot', () => {
    const group = new TestGroup();
    group.askAll('a', 'c');
    for (const name of ['a', 'c']) group.report(name, { kind: 'concurrency' });
    for (const name of ['a', 'c']) group.release(name, 'failed');
    expect(slotsLearned(group.state)).toBe(1);
    expect(group.ask('b')).toEqual(['grant b.1']);
  });

  test('a wide call above what was learned goes alone', () => {
    const group = new TestGroup({ slotsMax: 8 });
    group.askAll('a', 'b', 'c');
    group.report('c', { kind: 'concurrency' });
    group.release('c', 'failed');
    expect(group.ask('wide', { slots: 4 })).toEqual([]);
    expect(group.ask('narrow')).toEqual([]);
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.release('b')).toEqual(['ended b.1', 'grant wide.1']);
    expect(group.inUse()).toBe(4);
    expect(group.release('wide')).toEqual(['ended wide.1', 'grant narrow.1']);
  });

  test('nothing is learned where the group is told not to', () => {
    const group = new TestGroup({ slotsMax: 8, isAdaptive: false });
    group.askAll('a', 'b', 'c');
    group.report('c', { kind: 'concurrency' });
    group.report('b', { kind: 'overload' });
    expect(slotsLearned(group.state)).toBe(8);
  });
});

describe('an assumed limit', () => {
  test('grows while it is full and nothing is refused, and a configured one never does', () => {
    const grown = [false, true].map((isHard) => {
      const group = new TestGroup({ slotsMax: 2, isHard });
      for (let index = 0; index < 100; index += 1) {
        group.ask(`call-${index}`);
        group.report(`call-${index}`, { kind: 'served' });
        if (index > 0) group.release(`call-${index - 1}`);
        group.advance(1_000);
      }
      return slotsLearned(group.state);
    });
    expect(grown[0]).toBeGreaterThan(2);
    expect(grown[1]).toBe(2);
  });
});

test('an answer to a call that has ended changes nothing', () => {
  const group = new TestGroup({ releaseCooldownMs: 1_000 });
  group.ask('a');
  group.release('a');
  const before = structuredClone(group.state.controls);
  for (const name of ['a', 'stranger']) {
    group.report(name, { kind: 'requests', retryAfterMs: 60_000 });
  }
  expect(group.state.controls).toEqual(before);
  expect(group.effects).toEqual([]);
});

describe('word of a call that was served', () => {
  const roomy = { slotsMax: 100 };

  test.each<[string, boolean, (group: TestGroup) => void, object]>([
    ['in a configured group that learned nothing', false, () => {}, { slotsMax: 1 }],
    ['in an assumed group that is not full', false, () => {}, { slotsMax: 10, isHard: false }],
    ['in an assumed group that is full', true, () => {}, { slotsMax: 1, isHard: false }],
    [
      'in a full group that is not to learn',
      false,
      () => {},
      { slotsMax: 1, isHard: false, isAdaptive: false },
    ],
    [
      'in a full group that has learned',
      true,
      (group) => group.report('a', { kind: 'concurrency', slotsMax: 1 }),
      roomy,
    ],
    ['after a failure', true, (group) => group.report('a', { kind: 'error' }), roomy],
    [
      'after a pause without an end',
      true,
      (group) => group.report('a', { kind: 'unknown' }),
      roomy,
    ],
    [
      'after a pause with an end',
      false,
      (group) => group.report('a', { kind: 'unknown', retryAfterMs: 5 }),
      roomy,
    ],
    ['after success', false, (group) => group.report('a', { kind: 'served' }), roomy],
  ])('%s is wanted: %s', (_, expected, work, settings) => {
    const group = new TestGroup(settings);
    group.ask('a');
    work(group);
    expect(wantsServed(group.member(), group.now)).toBe(expected);
  });

  test('is wanted until the failure counts no more', () => {
    const group = new TestGroup({ slotsMax: 100 });
    group.ask('bad');
    group.report('bad', { kind: 'error' });
    for (let index = 0; index < 20; index += 1) {
      expect(wantsServed(group.member(), group.now)).toBe(true);
      group.ask(`good-${index}`);
      group.report(`good-${index}`, { kind: 'served' });
    }
    expect(wantsServed(group.member(), group.now)).toBe(false);
  });

  test('ends a series of pauses without an end', () => {
    const group = new TestGroup();
    group.ask('a');
    group.report('a', { kind: 'unknown' });
    group.release('a', 'failed');
    group.advance(1_000);
    group.ask('b');
    group.report('b', { kind: 'served' });
    expect(group.state.controls.pause.openMs).toBe(0);
    expect(blockOf(group.state.serving, group.now)).toBeNull();
    expect(wantsServed(group.member(), group.now)).toBe(false);
  });
});
