import type { RateSettings } from '../../../../src/core/words/settings.ts';
import { describe, expect, test } from 'vitest';
import { nextWakeAt, step } from '../../../../src/core/step.ts';
import { START, type TestGroup } from '../../../support/core-builders.ts';
import { call, metered, used } from './metered.ts';

/** When the group wants to be woken because only time is lacking, and when not. */

const SIZE = { input: 100, output: 100 };

/** A second call waits for what the first one took. */
function waitingGroup(limits: Partial<RateSettings>, settings = {}): TestGroup {
  const group = metered(limits, { timeoutMs: 600_000, ...settings });
  call(group, 'first', SIZE);
  call(group, 'next', SIZE);
  return group;
}

describe('woken exactly when there is room again', () => {
  test.each<[string, Partial<RateSettings>, number]>([
    ['a request of the minute', { rpm: 1 }, 61_856],
    ['a request that fills its minute', { rpm: 1, burstMs: 600_000 }, 61_500],
    ['a start', { startsPerS: 0.2 }, 5_000],
    ['the burst of requests', { rpm: 60, burstMs: 1_000 }, 1_031],
    ['the burst of tokens', { tpm: 12_000, burstMs: 1_000 }, 650],
  ])('after %s', (_, limits, ms) => {
    const group = waitingGroup(limits);
    expect(group.state.roomDueAt - START).toBe(ms);
    let reported: string[] = [];
    while (reported.length === 0) {
      const wakesIn = group.wakesIn();
      expect(wakesIn).toBeGreaterThan(0);
      reported = group.advance(wakesIn).filter((answer) => answer.startsWith('grant'));
    }
    expect(reported).toEqual(['grant next.1']);
    expect(group.now - START).toBe(ms);
  });
});

test('it does not wake for time where a slot is lacking, and has one at the release', () => {
  const group = waitingGroup({ rpm: 1 }, { slotsMax: 1 });
  expect(group.state.roomDueAt).toBe(Infinity);
  group.release('first', 'unused');
  group.lease('next');
});

test('it does not wake for limits of nothing', () => {
  const group = metered({ rpm: 0 });
  call(group, 'a', SIZE);
  expect(group.state.roomDueAt).toBe(Infinity);
  expect(group.wakesIn()).toBe(60_000);
});

test('nobody is woken for once the queue is empty', () => {
  const group = waitingGroup({ startsPerS: 1 });
  const wakesIn = group.wakesIn();
  expect(wakesIn).toBe(1_000);
  group.cancel('next');
  expect(group.wakesIn()).toBeGreaterThan(1_000);
});

test('what a call gives back is granted at once and not at the instant that was foreseen', () => {
  const group = waitingGroup({ tpm: 200 });
  expect(group.state.roomDueAt).toBeGreaterThan(group.now);
  expect(group.release('first', 'success', 1, used({}))).toEqual(['ended first.1', 'grant next.1']);
});

test('a limit that was raised is felt at once', () => {
  const group = waitingGroup({ rpm: 1 });
  const { rates } = group.state.settings;
  expect(group.reconfigure({ rates: { ...rates, rpm: null } })).toEqual(['grant next.1']);
});

describe('a limit that was set at run time', () => {
  /** Calls in flight that nobody counted, and then two requests in a minute. */
  function limitedLate(inFlight: number): TestGroup {
    const group = metered({ tpd: 1e9 }, { slotsMax: 100, timeoutMs: 600_000 });
    for (let index = 0; index < inFlight; index += 1) call(group, `old-${index}`);
    const { rates } = group.state.settings;
    group.reconfigure({ rates: { ...rates, rpm: 2 } });
    return group;
  }

  test('counts what is in flight, which gives back no more than that', () => {
    const group = limitedLate(2);
    call(group, 'a');
    call(group, 'b');
    expect(group.waiting()).toEqual(['a', 'b']);
    expect(group.release('old-0', 'unused')).toContain('grant a.1');
    expect(group.release('old-1', 'success')).toEqual(['ended old-1.1']);
  });

  test('makes nobody owe for what is in flight', () => {
    const group = limitedLate(60);
    call(group, 'a');
    expect(group.advance(61_500)).toContain('grant a.1');
  });

  test('takes nothing from calls that nobody metered', () => {
    const group = metered({}, { isMetered: false, timeoutMs: 100_000 });
    group.ask('old');
    const { rates } = group.state.settings;
    group.reconfigure({ rates: { ...rates, rpm: 1 }, isMetered: true });
    expect(call(group, 'a')).toEqual(['grant a.1']);
    call(group, 'b');
    expect(group.release('old', 'unused')).toEqual(['ended old.1']);
  });
});

test('it wakes once for each grant and a few times more, and never at once again', () => {
  const group = metered(
    { rpm: 30, tpm: 3_000, startsPerS: 2, burstMs: 5_000 },
    { slotsMax: 100, timeoutMs: 3_600_000 },
  );
  for (let index = 0; index < 60; index += 1) call(group, `call-${index}`, { input: 70 });
  const { state } = group;
  let wakes = 0;
  while (state.queue.byTicket.size > 0) {
    const wakeAt = nextWakeAt(state, group.now);
    expect(wakeAt).toBeGreaterThan(group.now);
    group.now = wakeAt;
    for (const effect of step(state, { kind: 'tick' }, group.now)) {
      if (effect.kind === 'grant') group.release(effect.ticketId);
    }
    wakes += 1;
    expect(wakes).toBeLessThan(300);
  }
  expect(state.totals.granted).toBe(60);
});
