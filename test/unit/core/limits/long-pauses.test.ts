import { describe, expect, test } from 'vitest';
import { wantsServed } from '../../../../src/core/upstream-signals.ts';
import type { UpstreamSignal } from '../../../../src/core/words/signal.ts';
import { someMember, TestGroup } from '../../../support/core-builders.ts';

/** Single calls probe a pause of more than 15 minutes. */

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** An account that says it is used up for so long. */
const usedUp = (retryAfterMs: number): Partial<UpstreamSignal> => ({
  kind: 'long_window',
  retryAfterMs,
  words: 'The usage limit has been reached',
});

/** Eight slots, and one call that was refused. */
function refusedGroup(retryAfterMs = 3 * DAY_MS, settings = {}): TestGroup {
  const group = new TestGroup({ slotsMax: 8, timeoutMs: MINUTE_MS, ...settings });
  group.ask('first');
  group.report('first', usedUp(retryAfterMs));
  group.release('first', 'failed');
  return group;
}

const pauseOf = ({ state }: TestGroup) => state.controls.pause;

/** The call goes out and is refused, as the probe that it is. */
function refuseProbe(group: TestGroup, name: string): void {
  expect(group.ask(name)).toEqual([`grant ${name}.1`]);
  refuse(group, name);
}

function refuse(group: TestGroup, name: string): void {
  group.report(name, usedUp(2 * DAY_MS));
  group.release(name, 'failed');
}

test('one call goes out after 1, 2, 4, 8 and then every 15 minutes', () => {
  const group = refusedGroup();
  for (const [index, minutes] of [1, 2, 4, 8, 15, 15].entries()) {
    group.advance(minutes * MINUTE_MS - 1);
    expect(group.ask(`early-${index}`)).toEqual([`reject early-${index} upstream_limited`]);
    group.advance(1);
    refuseProbe(group, `probe-${index}`);
  }
});

test('ten calls in sequence reach the account once', () => {
  const group = refusedGroup(13_873_000);
  const names = Array.from({ length: 9 }, (_, index) => `call-${index}`);
  for (const name of names) expect(group.ask(name)).toEqual([`reject ${name} upstream_limited`]);
});

test("a call that an operator's pause stops too is rejected for that, whether it can wait or not", () => {
  const group = refusedGroup();
  group.reconfigure({ paused: true });
  expect(group.ask('waits')).toEqual(['reject waits paused']);
  expect(group.rejection('waits')).toMatchObject({ until: null });
  expect(group.ask('at-once', { wait: false })).toEqual(['reject at-once paused']);
  group.reconfigure({ paused: false });
  expect(group.ask('later')).toEqual(['reject later upstream_limited']);
});

test('no other call starts while a probe is in flight', () => {
  const group = refusedGroup();
  group.advance(MINUTE_MS);
  expect(group.ask('probe')).toEqual(['grant probe.1']);
  expect(group.ask('other')).toEqual(['reject other upstream_limited']);
});

test('queued calls that cannot wait for the end of the pause are rejected once one of them probes it', () => {
  const group = new TestGroup({ slotsMax: 2, timeoutMs: MINUTE_MS });
  const pro = { names: { model: 'pro' }, sliceMs: MINUTE_MS };
  const flash = { names: { model: 'flash' }, sliceMs: MINUTE_MS };
  group.ask('flash-1', flash);
  group.ask('refused', pro);
  group.report('refused', { ...usedUp(DAY_MS), scope: 'model' });
  group.release('refused', 'failed');
  group.ask('flash-2', flash);
  for (let half = 0; half < 2; half += 1) {
    group.advance(MINUTE_MS / 2);
    for (const name of ['flash-1', 'flash-2']) group.renew(name);
  }
  for (const name of ['probe', 'other']) expect(group.ask(name, pro)).toEqual([]);
  group.ask('flash-3', flash);
  const reported = group.release('flash-1');
  expect(reported).toContain('grant probe.1');
  expect(reported).toContain('reject other upstream_limited');
  expect(group.waiting()).toEqual(['flash-3']);
});

test('a probe runs next to any number of calls from before the pause', () => {
  const group = new TestGroup({ slotsMax: 3, timeoutMs: MINUTE_MS });
  group.askAll('long', 'refused');
  group.report('refused', usedUp(DAY_MS));
  group.release('refused', 'failed');
  group.advance(MINUTE_MS);
  expect(group.ask('probe')).toEqual(['grant probe.1']);
  expect(group.state.totals.violations.above_limit).toBe(0);
});

test('a served probe ends the pause, and the slots return step by step', () => {
  const group = refusedGroup();
  group.advance(MINUTE_MS);
  group.ask('probe');
  expect(wantsServed(group.member(), group.now)).toBe(true);
  group.report('probe', { kind: 'served' });
  group.release('probe');
  expect(pauseOf(group).until).toBe(group.now);
  expect(group.askAll('a', 'b')).toEqual(['grant a.1', 'grant b.1']);
  expect(group.ask('c', { wait: false })).toEqual(['reject c busy']);
});

test('a probe that is served after an operator has disabled probes ends the pause', () => {
  const group = refusedGroup();
  group.advance(MINUTE_MS);
  group.ask('probe');
  group.reconfigure({ probesPauses: false });
  expect(wantsServed(group.member(), group.now)).toBe(true);
  group.report('probe', { kind: 'served' });
  group.release('probe');
  expect(group.ask('a')).toEqual(['grant a.1']);
});

test.each<[string, (group: TestGroup) => void]>([
  ['ends without an answer', (group) => group.release('probe', 'cancelled')],
  [
    'is its caller’s mistake',
    (group) => {
      group.report('probe', { kind: 'served', isMistake: true });
      group.release('probe');
    },
  ],
  [
    'never fits',
    (group) => {
      group.report('probe', { kind: 'never_fits' });
      group.release('probe', 'failed');
    },
  ],
])('a probe that %s is followed by another one', (_, end) => {
  const group = refusedGroup();
  group.advance(MINUTE_MS);
  group.ask('probe');
  end(group);
  expect(group.ask('next')).toEqual(['grant next.1']);
  expect(group.ask('one-more')).toEqual(['reject one-more upstream_limited']);
});

test.each(['unauthorized', 'quota', 'error', 'overload', 'requests', 'concurrency'] as const)(
  'a probe that is refused as %s counts as one that failed',
  (kind) => {
    const group = refusedGroup();
    group.advance(MINUTE_MS);
    group.ask('probe');
    group.report('probe', { kind });
    group.release('probe', 'failed');
    expect(group.ask('next')).toEqual(['reject next upstream_limited']);
    group.advance(2 * MINUTE_MS);
    expect(group.ask('later')).toEqual(['grant later.1']);
  },
);

test('a call that waits long enough becomes the probe when its time comes', () => {
  const group = refusedGroup(DAY_MS, { timeoutMs: 2 * DAY_MS });
  group.advance(MINUTE_MS - 20_000);
  expect(group.ask('patient', { sliceMs: 30_000 })).toEqual([]);
  expect(group.wakesIn()).toBe(20_000);
  expect(group.advance(20_000)).toEqual(['grant patient.1']);
});

test('one call of a group that waits elsewhere holds a slot of a paused group', () => {
  const group = refusedGroup();
  group.advance(MINUTE_MS);
  expect(group.ask('a', { waitsElsewhere: true })).toEqual(['grant a.1']);
  expect(group.ask('b', { waitsElsewhere: true })).toEqual([]);
});

describe('no probe is sent', () => {
  test('if the group disables probes', () => {
    const group = refusedGroup(3 * DAY_MS, { probesPauses: false });
    group.advance(DAY_MS);
    expect(group.ask('a')).toEqual(['reject a upstream_limited']);
  });

  test('while an operator has disabled probes', () => {
    const group = refusedGroup();
    group.reconfigure({ probesPauses: false });
    group.advance(DAY_MS);
    expect(group.ask('a')).toEqual(['reject a upstream_limited']);
    group.reconfigure({ probesPauses: true });
    group.advance(MINUTE_MS);
    expect(group.ask('b')).toEqual(['grant b.1']);
  });

  test('while one is in flight since before an operator disabled and enabled probes', () => {
    const group = refusedGroup();
    group.advance(MINUTE_MS);
    group.ask('probe');
    group.reconfigure({ probesPauses: false });
    group.reconfigure({ probesPauses: true });
    for (let minute = 0; minute < 3; minute += 1) {
      group.advance(MINUTE_MS / 2);
      group.renew('probe');
      group.advance(MINUTE_MS / 2);
      group.renew('probe');
      expect(group.ask(`other-${minute}`)).toEqual([`reject other-${minute} upstream_limited`]);
    }
    refuse(group, 'probe');
    expect(group.ask('soon')).toEqual(['reject soon upstream_limited']);
    group.advance(2 * MINUTE_MS);
    expect(group.ask('next')).toEqual(['grant next.1']);
  });

  test('in a pause of 15 minutes', () => {
    const group = refusedGroup(15 * MINUTE_MS);
    group.advance(15 * MINUTE_MS - MINUTE_MS - 1);
    expect(group.ask('a')).toEqual(['reject a upstream_limited']);
  });

  test('for a pause that a lease holder reported', () => {
    const group = new TestGroup({ slotsMax: 8, timeoutMs: 1 });
    group.ask('first');
    group.report('first', { ...usedUp(DAY_MS), reportedBy: 'key' });
    expect(pauseOf(group)).toMatchObject({ waitMs: 0, words: null });
  });
});

test('a member that is paused for long is probed, while the others serve', () => {
  const members = [someMember('a', { slotsMax: 1 }), someMember('b', { slotsMax: 1, tier: 2 })];
  const group = new TestGroup({ slotsMax: 8, timeoutMs: MINUTE_MS, members });
  group.ask('first');
  group.report('first', usedUp(DAY_MS));
  group.release('first', 'failed');
  group.ask('second');
  expect(group.lease('second').member).toBe('b');
  group.release('second');
  group.advance(MINUTE_MS);
  group.ask('probe');
  expect(group.lease('probe').member).toBe('a');
  group.ask('third');
  expect(group.lease('third').member).toBe('b');
});

describe('after a reset', () => {
  test('the pause, its message and the time of the next probe are known', () => {
    const group = refusedGroup().restart();
    group.advance(MINUTE_MS - 1);
    expect(group.ask('early')).toEqual(['reject early upstream_limited']);
    expect(pauseOf(group).words).toBe('The usage limit has been reached');
    group.advance(1);
    expect(group.ask('probe')).toEqual(['grant probe.1']);
  });

  test('the probe of the earlier instance is forgotten', () => {
    const group = refusedGroup();
    group.advance(MINUTE_MS);
    group.ask('probe');
    group.state.isControlsDirty = true;
    const next = group.restart();
    next.advance(10_000);
    expect(next.ask('another')).toEqual(['grant another.1']);
  });
});

test('the message of the upstream stays until the next pause, and a pause without one shows none', () => {
  const group = refusedGroup(2 * MINUTE_MS);
  expect(pauseOf(group).words).toBe('The usage limit has been reached');
  group.advance(3 * MINUTE_MS);
  group.ask('again');
  group.report('again', { kind: 'requests', retryAfterMs: 1_000 });
  expect(pauseOf(group).words).toBe(null);
});
