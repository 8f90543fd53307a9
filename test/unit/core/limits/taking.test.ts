import { describe, expect, test } from 'vitest';
import { LEASE_TTL_MS } from '../../../../src/core/words/settings.ts';
import type { TestGroup } from '../../../support/core-builders.ts';
import { call, leftIn, metered, used } from './metered.ts';

/** Slots, requests, tokens and dollars are taken together, given back together, and settled once. */

/** Every limit there is, wide enough for a few calls. */
const ALL = { rpm: 100, rpd: 1_000, tpm: 10_000, tpd: 100_000, itpm: 8_000, otpm: 5_000 };
const SIZE = { input: 300, output: 200, usd: 2 };

function wholeGroup(settings = {}): TestGroup {
  return metered({ ...ALL, startsPerS: 1_000, perDayUsd: 1_000 }, settings);
}

test('a grant takes a slot, a request, its tokens and its dollars in one step', () => {
  const group = wholeGroup();
  call(group, 'first');
  group.release('first', 'unused');
  const before = leftIn(group);
  expect(call(group, 'a', SIZE)).toEqual(['grant a.1']);
  const after = leftIn(group);
  const taken = Object.entries(before).map(([name, left]) => [name, left - (after[name] ?? 0)]);
  expect(Object.fromEntries(taken)).toEqual({
    rpm: 1,
    rpd: 1,
    startsPerS: 1,
    tpm: 500,
    tpd: 500,
    itpm: 300,
    otpm: 200,
    slotsInUse: -1,
    reservedUsd: -2,
    spentUsd: 0,
  });
});

describe('a call that lacks one thing takes none of the others, and has all when it goes', () => {
  test.each<[string, object, object]>([
    ['a slot', {}, { slotsMax: 1 }],
    ['a request of the minute', { rpm: 1 }, { timeoutMs: 100_000 }],
    ['a request of the day', { rpd: 1 }, { timeoutMs: 100_000_000 }],
    ['a start', { startsPerS: 1 }, {}],
    ['tokens of the minute', { tpm: 510 }, {}],
    ['tokens of the day', { tpd: 510 }, {}],
    ['input tokens', { itpm: 310 }, {}],
    ['output tokens', { otpm: 210 }, {}],
  ])('%s', (_, limits, settings) => {
    const group = metered({ ...ALL, startsPerS: 1_000, perDayUsd: 1_000, ...limits }, settings);
    call(group, 'first', SIZE);
    const before = leftIn(group);
    expect(call(group, 'a', SIZE)).toEqual([]);
    expect(leftIn(group)).toEqual(before);
    expect(group.waiting()).toEqual(['a']);
    expect(group.release('first', 'unused')).toContain('grant a.1');
    expect(leftIn(group)).toEqual(before);
  });
});

describe('gives everything back, or never took it:', () => {
  const BUSY = { slotsMax: 1, queueLengthMax: 1 };

  test.each<[string, (group: TestGroup) => string[]]>([
    ['a call that does not want to wait', (group) => call(group, 'a', SIZE, { wait: false })],
    ['a try that is declined', (group) => call(group, 'a', SIZE, { isTry: true })],
    ['a call that waits', (group) => call(group, 'a', SIZE)],
    [
      'a call that finds the queue full',
      (group) => [...call(group, 'a', SIZE), ...call(group, 'b', SIZE)],
    ],
    [
      'a call that is cancelled in the queue',
      (group) => [...call(group, 'a', SIZE), ...group.cancel('a')],
    ],
    [
      'a call whose place is released',
      (group) => [...call(group, 'a', SIZE), ...group.release('a')],
    ],
    ['a call that is too wide', (group) => call(group, 'a', SIZE, { slots: 3 })],
  ])('%s', (_, work) => {
    const group = metered({ ...ALL, perDayUsd: 1_000 }, BUSY);
    call(group, 'holder', SIZE);
    const before = leftIn(group);
    const answers = work(group);
    expect(answers.filter((answer) => answer.startsWith('grant'))).toEqual([]);
    expect(leftIn(group)).toEqual(before);
  });

  test('a call that waits until its deadline', () => {
    const group = metered({ tpm: 501 }, { timeoutMs: 20_000 });
    call(group, 'holder', SIZE);
    call(group, 'a', SIZE);
    group.release('holder', 'success', 1, used(SIZE));
    const tokens = group.state.controls.rates.windows.tpm;
    expect(group.advance(20_000)).toEqual(['reject a queue_timeout']);
    expect(group.state.controls.rates.windows.tpm).toEqual(tokens);
    expect(leftIn(group)).toMatchObject({ slotsInUse: 0, reservedUsd: 0 });
  });

  test.each<[string, (group: TestGroup) => string[]]>([
    ['a lease that was never used', (group) => group.release('a', 'unused')],
    ['a lease that its caller never heard of', (group) => group.cancel('a')],
  ])('%s', (_, work) => {
    const group = wholeGroup();
    call(group, 'first');
    group.release('first', 'unused');
    const before = leftIn(group);
    call(group, 'a', SIZE);
    expect(work(group)).toEqual(['ended a.1']);
    expect(leftIn(group)).toEqual(before);
  });

  test('nothing beyond what was taken, however late', () => {
    const group = metered({ rpm: 60, tpm: 10_000 });
    call(group, 'a', SIZE);
    group.advance(40_000);
    group.renew('a');
    group.advance(40_000);
    const whole = leftIn(group);
    group.release('a', 'unused');
    expect(leftIn(group)).toEqual({ ...whole, slotsInUse: 0, reservedUsd: 0 });
  });
});

describe('keeps its estimate:', () => {
  test.each<[string, (group: TestGroup) => string[]]>([
    ['a call that ended without a word of its usage', (group) => group.release('a')],
    ['a call that was cut short', (group) => group.release('a', 'cancelled')],
    ['a call whose answer was dropped', (group) => group.detach('a', group.lease('a').attachment)],
  ])('%s', (_, work) => {
    const group = wholeGroup();
    call(group, 'a', SIZE);
    const before = leftIn(group);
    expect(work(group)).toEqual(['ended a.1']);
    expect(leftIn(group)).toEqual({ ...before, slotsInUse: 0, reservedUsd: 0, spentUsd: 2 });
  });

  test('a lease that lapsed, whatever comes after it', () => {
    const group = metered({ tpd: 100_000, perMonthUsd: 1_000 });
    call(group, 'a', SIZE);
    const before = leftIn(group);
    expect(group.advance(LEASE_TTL_MS)).toEqual(['ended a.1']);
    const lapsed = { ...before, slotsInUse: 0, reservedUsd: 0, spentUsd: 2 };
    expect(leftIn(group)).toEqual(lapsed);
    group.release('a', 'success', 1, used({ input: 1 }));
    expect(leftIn(group)).toEqual(lapsed);
  });

  test('a lease that lapsed and was taken up again', () => {
    const group = metered({ tpd: 100_000 });
    call(group, 'a', SIZE);
    group.advance(LEASE_TTL_MS);
    group.resume('a');
    const before = leftIn(group);
    group.release('a', 'unused');
    expect(leftIn(group)).toEqual({ ...before, slotsInUse: 0 });
  });
});

describe('a settlement', () => {
  test('refunds what was not used', () => {
    const group = wholeGroup();
    call(group, 'a', SIZE);
    const before = leftIn(group);
    group.release('a', 'success', 1, used({ input: 100, output: 50, usd: 0.5 }));
    expect(leftIn(group)).toEqual({
      ...before,
      tpm: (before['tpm'] ?? 0) + 350,
      tpd: (before['tpd'] ?? 0) + 350,
      itpm: (before['itpm'] ?? 0) + 200,
      otpm: (before['otpm'] ?? 0) + 150,
      slotsInUse: 0,
      reservedUsd: 0,
      spentUsd: 0.5,
    });
  });

  test('debits what was used beyond, as far as into debt', () => {
    const group = metered({ tpm: 1_000 });
    call(group, 'a', { input: 300 });
    group.release('a', 'success', 1, used({ input: 5_000 }));
    expect(leftIn(group)['tpm']).toBe(0.97 * 1_000 - 5_000);
    expect(call(group, 'b', { input: 1 })).toEqual([]);
  });

  test('gives the request back where the upstream does not count what it refused', () => {
    const group = metered({ rpm: 5 });
    call(group, 'a');
    const before = leftIn(group)['rpm'] ?? 0;
    group.release('a', 'failed', 1, used({}, 0));
    expect(leftIn(group)['rpm']).toBe(before + 1);
  });

  test('makes room for who waits for it', () => {
    const group = metered({ tpm: 1_000 });
    call(group, 'a', { input: 900 });
    expect(call(group, 'b', { input: 500 })).toEqual([]);
    expect(group.release('a', 'success', 1, used({ input: 10 }))).toEqual([
      'ended a.1',
      'grant b.1',
    ]);
  });

  test('counts once', () => {
    const group = metered({ tpd: 100_000, perMonthUsd: 1_000 }, { releaseCooldownMs: 500 });
    call(group, 'a', SIZE);
    call(group, 'b', SIZE);
    group.release('a', 'success', 1, used({ input: 100, usd: 1 }));
    const settled = leftIn(group);
    group.release('a', 'success', 1, used({ input: 100, usd: 1 }));
    group.cancel('a');
    expect(leftIn(group)).toEqual(settled);
    group.advance(500);
    group.release('a', 'unused');
    expect(leftIn(group)).toEqual({ ...settled, slotsInUse: 1 });
  });

  test('corrects the estimates of the model', () => {
    const group = metered({ tpd: 100_000 });
    const holder = { tenant: 't', caller: 't', agent: null, upstream: 'openai', model: 'm' };
    const before = leftIn(group)['tpd'] ?? 0;
    call(group, 'a', { input: 1_000 }, { holder });
    const seen = { inputTokens: 1_500, outputTokens: 40 };
    group.release('a', 'success', 1, { ...used({ input: 1_500 }), seen });
    call(group, 'b', { input: 1_000 }, { holder });
    expect(before - (leftIn(group)['tpd'] ?? 0)).toBe(1_500 + 1_500);
  });
});

test('a call that passes on the slot of its parent is counted all the same', () => {
  const group = metered({ rpd: 10, tpd: 10_000 }, { slotsMax: 1, nested: 'pass' });
  call(group, 'parent', SIZE);
  const parents = [group.lease('parent').id];
  expect(call(group, 'child', SIZE, { parents })).toEqual(['grant child.1']);
  expect(leftIn(group)).toMatchObject({ rpd: 8, tpd: 9_000, slotsInUse: 1, reservedUsd: 4 });
});

test('a call that came without an estimate takes one request, and no tokens', () => {
  const group = metered({ rpm: 10, tpm: 10_000 });
  const { rpm = 0, tpm } = leftIn(group);
  group.ask('a');
  expect(leftIn(group)).toMatchObject({ rpm: rpm - 1, tpm });
});

test('without limits nothing is set aside', () => {
  const group = metered({}, { isMetered: false });
  group.ask('a');
  expect(group.lease('a').reserved).toBeNull();
  expect(group.effects.some(({ kind }) => kind === 'write')).toBe(false);
});

test('what was taken is written together with the bound that covers the lease', () => {
  const group = metered({ rpm: 10 });
  call(group, 'a');
  expect(group.asksToWrite()).toBe('behind');
  const { bound, kept } = group.write();
  expect(bound.mark).toBeGreaterThanOrEqual(1);
  expect(kept?.controls).toBe(group.state.controls);
});
