import { describe, expect, test } from 'vitest';
import { amountsOf, nothingAhead, setAhead, type Amounts } from '../../../src/core/parts/demand.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { TestGroup, UNMETERED } from '../../support/core-builders.ts';
import { call, leftIn, metered, used } from './limits/metered.ts';

/** Blocks of rates and budgets, set aside in the row of the controls: grants eat them and write nothing. */

/** Slots enough for their bound to be in nobody's way. */
const WIDE = { slotsMax: 10_000, timeoutMs: 600_000 };

/** A pool with these limits that has written what its first call took. */
function written(limits: Parameters<typeof metered>[0], size = {}): TestGroup {
  const group = metered(limits, WIDE);
  // Enough of them that the margin of slots does not matter.
  for (let index = 0; index < 40; index += 1) group.ask(`unmetered-${index}`, {});
  call(group, 'first', size);
  group.write();
  return group;
}

/** The blocks of a group with these limits that nobody has used yet. */
function blocks(
  limits: Partial<typeof UNMETERED.rates & typeof UNMETERED.budgets> | object,
  room: Amounts = { rpd: Infinity, tpd: Infinity },
) {
  const both = { ...UNMETERED.rates, ...UNMETERED.budgets, ...limits };
  const ahead = nothingAhead();
  return setAhead(ahead, { rates: both, budgets: both }, room, false);
}

describe('a block', () => {
  test.each([
    ['of a limit per minute is a second of it', { rpm: 600, tpm: 60_000 }, { rpm: 10, tpm: 1_000 }],
    ['of input and output too', { itpm: 6_000, otpm: 600 }, { itpm: 100, otpm: 10 }],
    ['of a limit per day is a hundredth', { rpd: 500, tpd: 10_000 }, { rpd: 5, tpd: 100 }],
    ['of budgets is a 400th of the least', { perDayUsd: 40, perMonthUsd: 400 }, { usd: 0.1 }],
    ['there is none of starts per second', { startsPerS: 100 }, {}],
    ['there is none where there is no limit', {}, {}],
  ])('%s', (_what, limits, expected) => {
    expect(blocks(limits)).toEqual(expected);
  });

  test('of a limit per day is no larger than what is left of it', () => {
    const room = { rpd: 0, tpd: 30, rpm: 1 };
    expect(blocks({ rpd: 500, tpd: 10_000 }, room)).toEqual({ rpd: 0, tpd: 30 });
    expect(blocks({ rpm: 600 }, room), 'which fills again in a second').toEqual({ rpm: 10 });
  });

  test('is as large as what was taken without one, if that is more', () => {
    const group = written({ tpm: 6_000 }, { input: 500 });
    expect(group.stored.ahead).toEqual({ tpm: 500 });
    expect(written({ tpm: 60_000 }, { input: 500 }).stored.ahead).toEqual({ tpm: 1_000 });
  });

  test('is none in the row of a pool of which nothing is held', () => {
    const group = written({ rpm: 600 });
    for (const { ticketId } of group.state.leases.values()) group.release(ticketId);
    group.advance(10_000);
    group.write();
    expect(group.stored.bound?.mark).toBe(0);
    expect(group.stored.ahead).toEqual({});
    const before = leftIn(group);
    expect(leftIn(group.reset())).toEqual(before);
  });

  test('counts from when it may have been used last, however late the next instance is', () => {
    const group = written({ rpd: 500 });
    const block = group.stored.ahead.rpd ?? 0;
    const before = leftIn(group)['rpd'] ?? 0;
    group.now = instant(group.now + 60_000);
    expect(leftIn(group.reset())).toMatchObject({ rpd: before - block });
    group.now = instant(group.now + 86_400_000 + 1_800_000);
    expect(leftIn(group.reset())).toMatchObject({ rpd: 500 });
  });

  test('is taken of every limit that a use counts for', () => {
    const rates = { ...UNMETERED.rates, rpm: 1, tpd: 1, itpm: 1, otpm: 1, startsPerS: 1 };
    const budgets = { ...UNMETERED.budgets, perHourUsd: 1 };
    const usage = { requests: 1, inputTokens: 20, outputTokens: 3 };
    const amounts = amountsOf({ rates, budgets }, usage, 0.5);
    expect(amounts).toEqual({ rpm: 1, tpd: 23, itpm: 20, otpm: 3, usd: 0.5 });
  });
});

describe('a grant', () => {
  test('within its block asks for no write', () => {
    const group = written({ tpm: 60_000, perDayUsd: 100 }, { input: 10 });
    for (const name of ['a', 'b']) {
      call(group, name, { input: 500 });
      expect(group.asksToWrite()).toBe('no');
    }
  });

  test('beyond its block waits for a write, and so do all until then', () => {
    const group = written({ tpm: 60_000 }, { input: 10 });
    call(group, 'most', { input: 999 });
    expect(group.asksToWrite()).toBe('no');
    call(group, 'large', { input: 2 });
    expect(group.asksToWrite()).toBe('behind');
    call(group, 'small', { input: 1 });
    expect(group.asksToWrite()).toBe('behind');
    group.write();
    call(group, 'next', { input: 999 });
    expect(group.asksToWrite()).toBe('no');
  });

  test('is written together with the controls where it needs a block', () => {
    const group = metered({ rpm: 60 }, WIDE);
    call(group, 'a');
    expect(group.write().kept).not.toBeNull();
    group.ask('next');
    expect(group.write().kept, 'its block was enough').toBeNull();
  });

  test('waits for money as for requests', () => {
    const group = written({ perDayUsd: 400 }, { usd: 0.5 });
    call(group, 'a', { usd: 0.75 });
    expect(group.asksToWrite()).toBe('no');
    call(group, 'b', { usd: 0.75 });
    expect(group.asksToWrite()).toBe('behind');
  });
});

describe('after a reset', () => {
  test('what was set aside counts as taken', () => {
    const group = written({ rpd: 1_000, tpd: 100_000, perDayUsd: 400 }, { input: 100, usd: 1 });
    const { rpd = 0, tpd = 0 } = leftIn(group);
    const { rpd: requests = 0, tpd: tokens = 0, usd = 0 } = group.stored.ahead;
    const { reserved } = group.lease('first');
    expect([requests >= 10, tokens, usd]).toEqual([true, 1_000, 1]);
    const left = { rpd: rpd - requests, tpd: tpd - tokens, reservedUsd: 1 + usd };
    const next = group.reset();
    expect(leftIn(next)).toMatchObject(left);
    next.resume('first', { reserved });
    expect(leftIn(next)).toMatchObject(left);
  });

  test('what was granted of the block is covered by it, and is not lost besides', () => {
    const group = written({ tpd: 100_000 }, { input: 10 });
    call(group, 'unwritten', { input: 1_000 });
    expect(group.asksToWrite()).toBe('no');
    expect(leftIn(group.reset())['tpd']).toBe(leftIn(group)['tpd']);
  });

  test('nothing may start at once: that block is the bucket itself', () => {
    const group = metered({ startsPerS: 20 });
    call(group, 'a');
    expect(leftIn(group)['startsPerS']).toBeGreaterThan(0);
    expect(leftIn(group.restart())['startsPerS']).toBe(0);
  });
});

describe('what is given back', () => {
  test('is not to be had before it is written: an instance to come may hear of it once more', () => {
    const group = written({ tpm: 60_000 }, { input: 10 });
    group.advance(1);
    call(group, 'a', { input: 1_000 });
    group.release('a', 'success', 1, used({ input: 100 }));
    expect(group.asksToWrite()).toBe('no');
    call(group, 'b', { input: 1 });
    expect(group.asksToWrite()).toBe('behind');
  });

  test('of what was taken before the row is written once it is more than the block', () => {
    const group = written({ tpm: 60_000 }, { input: 2_000 });
    expect(group.stored.ahead).toEqual({ tpm: 2_000 });
    group.write();
    for (const name of ['a', 'b']) call(group, name, { input: 1_900 });
    group.state.isControlsDirty = true;
    group.write();
    group.advance(1);
    const { tpm: block = 0 } = group.stored.ahead;
    group.release('first', 'success', 1, used({ input: 2_000 - block }));
    expect(group.asksToWrite(), 'as much as the block').toBe('no');
    group.release('a', 'success', 1, used({ input: 1_899 }));
    expect(group.asksToWrite(), 'one more').toBe('soon');
    expect(group.write().kept).not.toBeNull();
  });

  test('does not refill the block where the row counts it: it would cover another minute', () => {
    const group = written({ tpm: 60_000 }, { input: 900 });
    group.advance(1);
    call(group, 'a', { input: 1_000 });
    group.release('first', 'success', 1, used({ input: 0 }));
    call(group, 'b', { input: 1 });
    expect(group.asksToWrite()).toBe('behind');
  });

  test('by a call that was never made is all of it', () => {
    const group = written({ tpm: 60_000 }, { input: 10 });
    group.advance(1);
    call(group, 'a', { input: 1_000 });
    group.release('a', 'unused');
    group.write();
    call(group, 'b', { input: 1_000 });
    expect(group.asksToWrite()).toBe('behind');
    expect(group.write().kept?.controls.rates.windows.tpm?.bins).toMatchObject([
      [expect.any(Number), 1_010],
    ]);
  });
});

test('what a call used beyond its reservation eats the block, and is written where that is not enough', () => {
  const group = written({ tpm: 60_000 }, { input: 10 });
  group.release('first', 'success', 1, used({ input: 510 }));
  expect(group.asksToWrite()).toBe('no');
  call(group, 'a', { input: 500 });
  expect(group.asksToWrite()).toBe('no');
  group.release('a', 'success', 1, used({ input: 501 }));
  expect(group.asksToWrite()).toBe('soon');
  group.ask('free');
  expect(group.asksToWrite()).toBe('behind');
});

test('where nothing is stored no grant waits for a block', () => {
  const group = new TestGroup({ ...WIDE, isMetered: true, rates: { ...UNMETERED.rates, rpm: 60 } });
  call(group, 'a');
  call(group, 'b');
  expect(group.asksToWrite()).toBe('no');
});

test('what a small group writes when its only call has failed sets nothing aside', () => {
  const group = metered({ rpd: 1_000 }, { slotsMax: 4 });
  call(group, 'a', {});
  group.write();
  group.report('a', { kind: 'requests' });
  group.release('a', 'refused');
  expect(group.asksToWrite()).toBe('soon');
  expect(group.write()).toMatchObject({ bound: { mark: 0 }, kept: { ahead: {} } });
});

test('starts per second are there again at once where nobody held anything', () => {
  const group = metered({ startsPerS: 0.5 }, { slotsMax: 4 });
  call(group, 'a', {});
  group.write();
  group.release('a');
  group.write();
  group.advance(5_000);
  const next = group.restart();
  expect(next.ask('b')).toEqual(['grant b.1']);
});
