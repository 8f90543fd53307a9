import type { RateSettings } from '../../../../src/core/words/settings.ts';
import { describe, expect, test } from 'vitest';
import type { CallEstimate } from '../../../../src/core/words/ticket.ts';
import { leaseIdOf, ticketId } from '../../../../src/core/words/ids.ts';
import { START, someTicket, type TestGroup } from '../../../support/core-builders.ts';
import { call, metered, used } from './metered.ts';

/** Calls that are large for their group's limits. */

function grantsAmong(reported: readonly string[]): number {
  return reported.filter((answer) => answer.startsWith('grant')).length;
}

/** When what was taken at the start has left its minute: a bin and a margin after it. */
const LEFT_MS = 61_500;

describe('no minute has more than the limit', () => {
  test.each([
    [4_000, 2],
    [8_000, 1],
    [10_000, 1],
  ])('with calls of %i tokens %i pass in it', (input, fitting) => {
    const group = metered({ tpm: 10_000 }, { timeoutMs: 600_000 });
    const granted = ['a', 'b', 'c'].flatMap((name) => call(group, name, { input }));
    while (group.now < START + LEFT_MS - 1) {
      granted.push(...group.advance(Math.min(group.wakesIn(), START + LEFT_MS - 1 - group.now)));
    }
    expect(grantsAmong(granted)).toBe(fitting);
    granted.push(...group.advance(1));
    expect(grantsAmong(granted)).toBeGreaterThan(fitting);
  });
});

describe('what is larger than a limit', () => {
  test.each<[string, Partial<RateSettings>, { input: number; output?: number }, number, number]>([
    ['tpm', { tpm: 10_000 }, { input: 50_000 }, 50_000, 10_000],
    ['tpm', { tpm: 10_000 }, { input: 6_000, output: 4_001 }, 10_001, 10_000],
    ['tpd', { tpm: 10_000, tpd: 5_000 }, { input: 5_001 }, 5_001, 5_000],
    ['itpm', { itpm: 1_000 }, { input: 1_001 }, 1_001, 1_000],
    ['otpm', { otpm: 1_000 }, { input: 1, output: 1_001 }, 1_001, 1_000],
  ])('never fits, and both figures are named: %s', (limit, limits, size, amount, limitAmount) => {
    const group = metered(limits);
    expect(call(group, 'large', size)).toEqual(['reject large never_fits']);
    const exceeded = { limit, amount, limitAmount };
    expect(group.rejection('large')).toMatchObject({ retryAfterMs: null, exceeded });
    expect(call(group, 'next')).toEqual(['grant next.1']);
  });

  test('is not rejected where the limit is 0 for a while, and passes in a dry run', () => {
    const closed = metered({ tpm: 0 });
    expect(call(closed, 'a', { input: 50_000 })).toEqual([]);
    const dry = metered({ tpm: 10_000 }, { isDryRun: true });
    expect(call(dry, 'a', { input: 50_000 })).toEqual(['grant a.1']);
  });

  test('is rejected when the limit falls below it while it waits', () => {
    const group = metered({ tpm: 10_000 });
    call(group, 'a', { input: 9_000 });
    call(group, 'b', { input: 8_000 });
    const { rates } = group.state.settings;
    expect(group.reconfigure({ rates: { ...rates, tpm: 7_999 } })).toEqual(['reject b never_fits']);
  });

  test('is rejected when the group has learned that it is, and bars nobody', () => {
    const group = metered({ tpm: 10_000 }, { slotsMax: 1 });
    const holder = { ...someTicket('a', START).holder, model: 'm' };
    call(group, 'a', { input: 4_000 }, { holder });
    call(group, 'b', { input: 6_000 }, { holder });
    call(group, 'c', { input: 10 });
    const seen = { inputTokens: 8_000, outputTokens: 0 };
    const settlement = { ...used({ input: 4_000 }), seen };
    const reported = group.release('a', 'success', 1, settlement);
    expect(reported).toEqual(['ended a.1', 'reject b never_fits', 'grant c.1']);
  });
});

describe('a guess', () => {
  const guessed = (group: TestGroup, name: string, estimate: Partial<CallEstimate>): string[] => {
    const plain = { inputTokens: 1, maxOutputTokens: null, reserve: 'mean', price: null } as const;
    const ticket = someTicket(name, group.now, { estimate: { ...plain, ...estimate } });
    const leaseId = leaseIdOf(ticketId(name), 1);
    return group.send({ kind: 'acquire', ticket, leaseId, sliceMs: 600_000 });
  };

  test.each<[string, Partial<CallEstimate>, number, number]>([
    ['of the output', {}, 1, 499],
    ['of the output, beside the input', { inputTokens: 450 }, 450, 50],
    ['of the output, where the most is known', { maxOutputTokens: 90_000 }, 1, 499],
    ['of the input', { inputTokens: 16_000, isInputGuess: true }, 500, 0],
    ['of the input that was read', { inputTokens: 16_000, leastInputTokens: 20 }, 500, 0],
    [
      'of the input, beside output that is set aside',
      { inputTokens: 16_000, leastInputTokens: 20, maxOutputTokens: 100, reserve: 'max_tokens' },
      400,
      100,
    ],
  ])('%s is no more than there is, and refuses nobody', (_, estimate, input, output) => {
    const group = metered({ tpm: 500 });
    expect(guessed(group, 'a', estimate)).toEqual(['grant a.1']);
    expect(group.lease('a').reserved?.demand).toMatchObject({
      inputTokens: input,
      outputTokens: output,
    });
  });
});

describe('an estimate', () => {
  const plain = { maxOutputTokens: null, reserve: 'none', price: null } as const;
  const ask = (group: TestGroup, estimate: Partial<CallEstimate>): string[] => {
    const whole = { inputTokens: 1, ...plain, ...estimate };
    const ticket = someTicket('a', group.now, { estimate: whole });
    return group.send({
      kind: 'acquire',
      ticket,
      leaseId: leaseIdOf(ticketId('a'), 1),
      sliceMs: 600_000,
    });
  };

  test('rejects a call whose minimum exceeds the limit, and names that minimum', () => {
    const group = metered({ itpm: 500 });
    expect(ask(group, { inputTokens: 9_000, leastInputTokens: 501 })).toEqual([
      'reject a never_fits',
    ]);
    const exceeded = { limit: 'itpm', limitAmount: 500, amount: 501 };
    expect(group.rejection('a')).toMatchObject({ exceeded });
  });

  test('rejects a call whose reserved output does not fit', () => {
    const output = { maxOutputTokens: 500, reserve: 'max_tokens' } as const;
    const reported = ask(metered({ tpm: 500 }), {
      inputTokens: 9_000,
      leastInputTokens: 1,
      ...output,
    });
    expect(reported).toEqual(['reject a never_fits']);
  });

  test('by length alone fits into a budget of which nothing is spent', () => {
    const price = { input: 0.001, output: 0 };
    const guess = { inputTokens: 16_000, isInputGuess: true, price };
    const group = metered({ perHourUsd: 10, perDayUsd: 30 });
    expect(ask(group, guess)).toEqual(['grant a.1']);
    expect(group.lease('a').reserved?.usd).toBe(10);
    expect(ask(metered({ perHourUsd: 0 }), guess)).toEqual(['reject a budget_exhausted']);
    const read = { inputTokens: 16_000, leastInputTokens: 20, price };
    expect(ask(metered({ perHourUsd: 10 }), read)).toEqual(['reject a budget_exhausted']);
  });
});

describe('a large call that waits for its tokens', () => {
  /** 6,000 tokens are taken, and `large` waits for 5,000 of its 9,000 to leave. */
  function waiting(settings = {}): TestGroup {
    const group = metered({ tpm: 10_000 }, { timeoutMs: 600_000, ...settings });
    call(group, 'a', { input: 6_000 });
    call(group, 'large', { input: 9_000 });
    expect(group.state.roomDueAt).toBe(START + LEFT_MS);
    return group;
  }

  test('lets those go first that do not delay it', () => {
    const group = waiting();
    expect(call(group, 'small', { input: 900 })).toEqual(['grant small.1']);
    expect(call(group, 'least', { input: 100 })).toEqual(['grant least.1']);
    expect(group.state.roomDueAt).toBe(START + LEFT_MS);
  });

  test('is not overtaken by those that would', () => {
    const group = waiting();
    expect(call(group, 'small', { input: 1_001 })).toEqual([]);
    expect(group.advance(LEFT_MS)).toContain('grant large.1');
  });

  test('does not bar small ones behind one that would', () => {
    const group = waiting();
    expect(call(group, 'second', { input: 2_000 })).toEqual([]);
    expect(call(group, 'third', { input: 800 })).toEqual(['grant third.1']);
  });

  test('keeps its slot, and those under its own cap', () => {
    const narrow = waiting({ slotsMax: 2 });
    expect(call(narrow, 'small', { input: 10 })).toEqual([]);
    const capped = waiting({ slotsMaxEach: 2 });
    expect(call(capped, 'small', { input: 10 })).toEqual([]);
    const holder = { ...someTicket('b', START).holder, tenant: 'other', caller: 'other' };
    expect(call(capped, 'other', { input: 10 }, { holder })).toEqual(['grant other.1']);
  });

  test('keeps its part of a budget', () => {
    const group = metered({ tpm: 10_000, perHourUsd: 10 });
    call(group, 'a', { input: 6_000, usd: 1 });
    call(group, 'large', { input: 9_000, usd: 8 });
    expect(call(group, 'small', { input: 10, usd: 2 })).toEqual([]);
    expect(call(group, 'cheap', { input: 10, usd: 1 })).toEqual(['grant cheap.1']);
  });

  test('keeps the slots that come back one by one after a pause', () => {
    const group = metered({ tpm: 10_000 }, { timeoutMs: 600_000, slotsMax: 4 });
    call(group, 'a', { input: 6_000 });
    call(group, 'large', { input: 9_000 }, { slots: 3 });
    for (let at = 0; at < 60_000; at += 30_000) {
      group.renew('a');
      group.advance(30_000);
    }
    group.report('a', { kind: 'requests', retryAfterMs: 1_000 });
    group.release('a', 'success', 1, used({ input: 6_000 }));
    group.advance(1_000);
    expect(call(group, 'small', { input: 10 })).toEqual([]);
    expect(group.advance(LEFT_MS - 61_000)).toEqual(['grant large.1']);
  });

  test('wakes the group for who may overtake it later', () => {
    const group = metered({ tpm: 10_000 }, { timeoutMs: 600_000 });
    call(group, 'a', { input: 1_000 });
    group.advance(10_000);
    call(group, 'b', { input: 8_900 });
    call(group, 'large', { input: 9_500 });
    expect(call(group, 'small', { input: 400 })).toEqual([]);
    group.renew('a');
    group.renew('b');
    expect(group.state.overtakingDueAt).toBe(START + LEFT_MS);
    expect(group.advance(START + LEFT_MS - 1 - group.now)).not.toContain('grant small.1');
    expect(group.advance(1)).toContain('grant small.1');
  });
});
