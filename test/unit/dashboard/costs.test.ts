// What the pages of costs and teams show, and in which words.
import { describe, expect, it } from 'vitest';
import {
  budgetWords,
  choiceOf,
  costWords,
  csvAddress,
  PERIODS,
  rangeWords,
  roughUsd,
  rowName,
  usedPart,
  type CostRowView,
} from '../../../dashboard/src/model/costs.ts';
import { isSpecial } from '../../../dashboard/src/model/field-words.ts';
import { fieldsOf } from '../../../dashboard/src/model/schema-fields.ts';
import { budgetOf, spentByName, TEAM_SECTIONS } from '../../../dashboard/src/model/teams.ts';
import { teamSchema } from '../../../src/contract/config/keys.ts';

const row = (name: string | null, usd: number, fields: Partial<CostRowView> = {}): CostRowView => ({
  name,
  is_rest: false,
  usd,
  input_tokens: 1,
  cached_tokens: 0,
  output_tokens: 1,
  calls: 1,
  unpriced_calls: 0,
  unreported_calls: 0,
  waited_calls: 0,
  budget: null,
  ...fields,
});

const budget = (limit: number, left: number) => ({
  limit_usd: limit,
  spent_usd: limit - left,
  reserved_usd: 0,
  left_usd: left,
});

describe('a link of the page', () => {
  it('says which period and what it is by; anything else is this month by key', () => {
    expect(choiceOf({ period: 'last-day', by: 'team' })).toEqual({
      period: PERIODS[3],
      by: 'team',
    });
    expect(choiceOf({ period: 'never', by: 'x' })).toEqual({ period: PERIODS[0], by: 'key' });
    expect(csvAddress(PERIODS[1], 'model')).toBe(
      '/admin/api/costs?period=month&which=last&by=model&format=csv',
    );
  });
});

describe('words', () => {
  it('name what has no name', () => {
    expect(rowName(row('ci', 1), 'key')).toBe('ci');
    expect(rowName(row(null, 1), 'team')).toBe('no team');
    expect(rowName(row(null, 1, { is_rest: true }), 'model')).toBe('all others');
  });

  it('tell what a budget has left', () => {
    expect(budgetWords(budget(10, 4))).toBe('$4 of $10 left');
    expect(usedPart(budget(10, 4))).toBeCloseTo(0.6);
    expect(usedPart(budget(0, 0))).toBe(1);
    const unheard = { limit_usd: 10, spent_usd: null, reserved_usd: null, left_usd: null };
    expect(budgetWords(unheard)).toBe('$10, remainder unknown');
    expect(usedPart(unheard)).toBeNull();
  });

  it('are not $0 where nobody knows a price', () => {
    expect(costWords(row('a', 0, { calls: 2, unpriced_calls: 2 }))).toBe('unknown');
    expect(costWords(row('a', 0, { calls: 2, unreported_calls: 2 }))).toBe('unknown');
    expect(costWords(row('a', 0, { calls: 2, unpriced_calls: 1, unreported_calls: 1 }))).toBe(
      'unknown',
    );
    expect(costWords(row('a', 0.2, { calls: 2, unpriced_calls: 1 }))).toBe('$0.2');
    expect(costWords(row('a', 0, { calls: 2, unpriced_calls: 0 }))).toBe('$0');
    expect(costWords(row('a', 0, { calls: 0, unpriced_calls: 0 }))).toBe('$0');
  });

  it('tell a range no more exactly than it is known', () => {
    expect(rangeWords({ from: 3, to: 12 })).toBe('3 to 12');
    expect(rangeWords({ from: 3, to: 3 })).toBe('3');
    expect(rangeWords({ from: 1.2345, to: 234.5 }, roughUsd)).toBe('$1.2 to $230');
  });
});

describe('costs of keys and teams', () => {
  it('stand side by side, with the budget of the month before that of the day', () => {
    const spent = spentByName(
      [row('ci', 1, { budget: budget(2, 1) }), row(null, 9)],
      [row('ci', 5, { budget: budget(50, 45) }), row('web', 7)],
    );
    expect([...spent.keys()]).toEqual(['ci', 'web']);
    const ci = spent.get('ci');
    expect([ci?.day?.usd, ci?.month?.usd]).toEqual([1, 5]);
    expect(ci === undefined ? null : budgetOf(ci)?.limit_usd).toBe(50);
    expect(
      budgetOf({ day: row('x', 1, { budget: budget(2, 1) }), month: undefined })?.limit_usd,
    ).toBe(2);
  });
});

describe('the form of a team', () => {
  it('has every field of the schema once, and a control for each', () => {
    const fields = fieldsOf(teamSchema);
    const shown = TEAM_SECTIONS.flatMap((section) => Object.keys(section.fields));
    expect(shown.toSorted()).toEqual(fields.map(({ path }) => path).toSorted());
    const special = fields.filter(({ kind }) => kind.type === 'special');
    expect(special.filter(({ path }) => !isSpecial(path))).toEqual([]);
  });
});
