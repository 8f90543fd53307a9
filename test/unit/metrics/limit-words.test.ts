/** The words of warnings about budgets and limits of a day, and the figures behind them. */
import { describe, expect, it } from 'vitest';
import {
  budgetNear,
  budgetRefused,
  budgetSpent,
  dayNear,
  daySpent,
} from '../../../src/group/observe/limit-warnings.ts';
import { IMPLICIT, instant, memberId } from '../../../src/core/words/ids.ts';

const until = instant(Date.UTC(2026, 10, 25));
const budget = {
  member: IMPLICIT,
  period: 'day',
  spentUsd: 16.2,
  ofUsd: 20,
  endsAt: until,
} as const;
const requests = {
  member: IMPLICIT,
  of: 'requests',
  used: 1_612,
  limit: 2_000,
  leavesAt: until,
} as const;

describe('a budget', () => {
  it('says how much of what, until when', () => {
    expect(budgetNear(budget, 80)).toEqual({
      kind: 'budget_near',
      message:
        '80 % of the budget for this day is spent ($16.20 of $20). It resets at 2026-11-25 00:00 UTC.',
      figures: { percent: 80, spent_usd: 16.2, budget_usd: 20, until_ms: until },
    });
  });

  it('of a member names it', () => {
    const raised = budgetNear({ ...budget, member: memberId('openai:b') }, 50);
    expect(raised.member).toBe('openai:b');
    expect(raised.message).toContain('the budget for this day of member `openai:b` is spent');
  });

  it('that is spent refuses, and in a dry run would', () => {
    expect(budgetSpent(budget, false).message).toContain('Calls are rejected until 2026');
    expect(budgetSpent(budget, true).message).toContain('Calls would be rejected until 2026');
  });

  it('that refuses says what is set aside, and small amounts as they are', () => {
    const small = { ...budget, spentUsd: 0.009_82, ofUsd: 0.02 };
    const { message, figures } = budgetRefused(small, 0.001_25);
    expect(message).toContain('$0.00982 of $0.02 is spent, and $0.00125 is reserved');
    expect(figures).toMatchObject({ percent: 49, reserved_usd: 0.001_25 });
    expect(budgetRefused({ ...budget, spentUsd: 0, ofUsd: 0 }, 0).figures).toMatchObject({
      percent: 100,
    });
  });
});

describe('a limit of a day', () => {
  it('says when what was used counts no longer', () => {
    expect(dayNear(requests, 80)).toEqual({
      kind: 'day_limit_near',
      message:
        '80 % of the 24-hour limit of requests is used (1,612 of 2,000). The oldest requests stop counting at 2026-11-25 00:00 UTC.',
      figures: { percent: 80, used: 1_612, limit: 2_000, until_ms: until },
    });
    expect(daySpent({ ...requests, of: 'tokens' }).message).toBe(
      'All of the 24-hour limit of tokens is used (1,612 of 2,000). Calls are queued until the oldest tokens stop counting, from 2026-11-25 00:00 UTC on.',
    );
  });
});
