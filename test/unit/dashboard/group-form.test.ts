import { describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { withValue, type EditedDocument } from '../../../dashboard/src/model/document.ts';
import { check, elsewhere, messagesAt } from '../../../dashboard/src/model/field-errors.ts';
import * as text from '../../../dashboard/src/model/field-text.ts';
import { isNested, isSpecial } from '../../../dashboard/src/model/field-words.ts';
import { newGroupFor } from '../../../dashboard/src/model/new-group.ts';
import { fieldsOf } from '../../../dashboard/src/model/schema-fields.ts';

const FIELDS = fieldsOf(groupSchema);
const GROUP: EditedDocument = groupSchema.parse({ name: 'openai-shared' });

function fieldAt(path: string) {
  const field = FIELDS.find((each) => each.path === path);
  if (field === undefined) throw new Error(`There is no field ${path}.`);
  return field;
}

function wrongAt(path: string, value: unknown): string[] {
  const checked = check(groupSchema, withValue(GROUP, path, value));
  return checked.ok ? [] : messagesAt(checked.errors, path);
}

/** Reads the field's message when this is typed. */
function typed(path: string, given: string): string[] {
  return wrongAt(path, text.valueFrom(given, fieldAt(path)));
}

describe('what is typed into a number', () => {
  it.each([
    ['limits.max_concurrency', '8', 8],
    ['limits.max_concurrency', ' 1,000 ', 1_000],
    ['limits.tpm', '2_000_000', 2_000_000],
    ['limits.burst', '0.5', 0.5],
    ['limits.max_concurrency', '', null],
    ['queue.age_credit_ms', '', null],
    ['queue.timeout_ms', '', undefined],
    ['holds.release_cooldown_ms', 'auto', 'auto'],
    ['holds.release_cooldown_ms', '', undefined],
  ])('means, at %s, %j: %j', (path, given, value) => {
    expect(text.valueFrom(given, fieldAt(path))).toEqual(value);
    expect(typed(path, given)).toEqual([]);
  });

  it.each([
    ['limits.max_concurrency', '5x', 'expected a whole number, got a text of 2 characters'],
    ['limits.max_concurrency', '2.5', 'expected a whole number, got 2.5'],
    ['limits.max_concurrency', '-1', 'expected at least 0, got -1'],
    ['limits.max_concurrency', '100001', 'expected at most 100000, got 100001'],
    ['limits.burst', '1.5', 'expected at most 1, got 1.5'],
    ['limits.burst', 'half', 'expected a number, got a text of 4 characters'],
    ['limits.budget_usd.per_day', '$5', 'expected a number, got a text of 2 characters'],
    ['queue.timeout_ms', '4 min', 'expected a whole number, got a text of 5 characters'],
    ['queue.lane_shares.low', '0.6', 'expected at most 0.5, got 0.6'],
    [
      'holds.cancel_cooldown_ms',
      'soon',
      'expected "auto" or a whole number, got a text of 4 characters',
    ],
    ['holds.cancel_cooldown_ms', '70000', 'expected at most 60000, got 70000'],
    ['warn_at', '0', 'expected at least 0.01, got 0'],
  ])('is wrong, at %s, %j: %s', (path, given, message) => {
    expect(typed(path, given)).toEqual([message]);
  });
});

describe('a number of any field', () => {
  const numbers = FIELDS.flatMap(({ path, kind }) =>
    kind.type === 'number' ? [{ path, kind }] : [],
  );
  it.each(numbers)('is refused beyond its bounds and taken at them: $path', ({ path, kind }) => {
    for (const bound of [kind.min, kind.max]) expect(typed(path, String(bound))).toEqual([]);
    const [below] = typed(path, String(kind.min - 1));
    const [above] = typed(path, String(kind.max + 1));
    expect(below).toBe(`expected at least ${kind.min}, got ${kind.min - 1}`);
    expect(above).toBe(`expected at most ${kind.max}, got ${kind.max + 1}`);
    expect(typed(path, 'x')[0]).toContain(kind.isWhole ? 'a whole number' : 'a number');
  });
});

describe('what is typed into a list', () => {
  it('is one entry per line, or with commas', () => {
    expect(text.listFrom(' gpt-4o, o1-*\n\nopenai/gpt-5 ')).toEqual([
      'gpt-4o',
      'o1-*',
      'openai/gpt-5',
    ]);
    expect(text.listText(['a', 'b'])).toBe('a\nb');
    expect(text.listFrom('')).toEqual([]);
  });

  it.each([
    [
      'match.models',
      ['a'.repeat(201)],
      'entry 1: expected at most 200 characters, got a text of 201 characters',
    ],
    [
      'match.models',
      Array.from({ length: 201 }, () => 'a'),
      'expected at most 200 entries, got a list of 201',
    ],
    [
      'partition_by',
      ['api_key', 'region'],
      'entry 2: expected api_key, caller, model, upstream, base_url or header:<name>, got the text "region"',
    ],
    [
      'partition_by',
      ['model', 'caller', 'api_key', 'upstream'],
      'expected at most 3 entries, got a list of 4',
    ],
  ])('is wrong at %s: %j', (path, value, message) => {
    expect(wrongAt(path, value)).toEqual([message]);
  });
});

describe('what is typed into rows', () => {
  it('become weights by tenant; a row without anything is none', () => {
    const rows = [
      ['team-a', '2'],
      ['', ''],
      [' team-b ', '0.5'],
    ];
    expect(text.pairsFrom(rows)).toEqual({ 'team-a': 2, 'team-b': 0.5 });
    expect(text.pairRows({ 'team-a': 2 })).toEqual([['team-a', '2']]);
    expect(text.repeatedNames([...rows, ['team-a', '3']])).toEqual(['team-a']);
  });

  it.each([
    ['fairness.weights', [['team-a', '']], 'team-a: expected a number, got a text of 0 characters'],
    ['fairness.weights', [['team-a', '0']], 'team-a: expected at least 0.01, got 0'],
    ['fairness.weights', [['', '2']], ': "" cannot be a name here: expected at least 1 character'],
    ['fairness.reserved', [['lane:high', '1.5']], 'lane:high: expected a whole number, got 1.5'],
  ])('are wrong at %s: %j', (path, rows, message) => {
    expect(
      wrongAt(path, text.pairsFrom(rows))[0]?.replaceAll('"lane:high"', 'lane:high'),
    ).toContain(message.replace(/^: /, ''));
  });

  it('become rules of lanes', () => {
    const rules = [{ models: ['*haiku*', 'o1-*'], lane: 'low' }];
    expect(
      text.laneRulesFrom([
        ['*haiku*, o1-*', 'low'],
        ['', 'high'],
      ]),
    ).toEqual(rules);
    expect(text.laneRuleRows(rules)).toEqual([['*haiku*, o1-*', 'low']]);
    expect(wrongAt('queue.lane_rules', text.laneRulesFrom([[',', 'low']]))).toEqual([
      'entry 1, models: expected at least 1 entry, got a list of 0',
    ]);
  });

  it('become upstreams to spill to, each with its model', () => {
    const to = ['backup', { upstream: 'azure', model: 'prod-7' }];
    expect(
      text.spillFrom([
        ['backup', ''],
        ['azure', 'prod-7'],
        ['', ''],
      ]),
    ).toEqual(to);
    expect(text.spillRows(to)).toEqual([
      ['backup', ''],
      ['azure', 'prod-7'],
    ]);
    expect(wrongAt('on_saturated', { spill_to: [] })).toEqual([
      'spill_to: expected at least 1 entry, got a list of 0',
    ]);
    expect(wrongAt('on_saturated', { spill_to: text.spillFrom([['', 'gpt-4o']]) })).toEqual([
      'spill_to, entry 1, upstream: expected at least 1 character, got a text of 0 characters',
    ]);
  });
});

describe('what has a control of its own', () => {
  it('has one for every shape that is none of the common ones', () => {
    const special = FIELDS.filter(({ kind }) => kind.type === 'special').map(({ path }) => path);
    expect(special.filter((path) => !isSpecial(path) && !isNested(path))).toEqual([]);
  });

  it.each([
    [
      'fairness.by',
      ['header:'],
      'entry 1: expected caller or header:<name>, got a text of 7 characters',
    ],
    [
      'fairness.by',
      ['header:X Team', 'agent'],
      'entry 1: expected caller or header:<name>, got a text of 13 characters',
    ],
    ['limits.budget_usd.fallback_price', {}, 'input: is missing: expected a number'],
    [
      'limits.budget_usd.fallback_price',
      { input: -1, output: 1 },
      'input: expected at least 0, got -1',
    ],
    [
      'on_unavailable',
      { pass_with_limit_each: '' },
      'pass_with_limit_each: expected a whole number, got a text of 0 characters',
    ],
    [
      'on_saturated',
      { spill_to: ['b'], after_ms: 'x' },
      'after_ms: expected a whole number, got a text of 1 character',
    ],
    [
      'location',
      'moon',
      'expected one of "wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me", got the text "moon"',
    ],
  ])('says what is wrong at %s: %j', (path, value, message) => {
    expect(wrongAt(path, value)[0]).toBe(message);
  });
});

describe('the name of a new group', () => {
  it.each(['', 'Open AI', '-x', 'a'.repeat(65)])('is refused: %j', (name) => {
    expect(wrongAt('name', name)[0]).toMatch(
      /^expected 1 to 64 of a-z, 0-9, dot, dash, underscore, got/,
    );
  });

  it('comes from the automatic group that it takes the place of', () => {
    expect(newGroupFor('auto:zai/GLM-5.1', GROUP)).toMatchObject({
      name: 'zai-glm-5.1',
      match: { upstreams: ['zai'], models: ['GLM-5.1*'] },
    });
    expect(newGroupFor('auto:openai', GROUP)).toMatchObject({
      name: 'openai',
      match: { upstreams: ['openai'], models: [] },
    });
    expect(newGroupFor(null, GROUP)).toBe(GROUP);
  });
});

describe('errors', () => {
  it('that no field shows are told apart', () => {
    const errors = [
      { path: 'limits.rpm', message: 'x' },
      { path: 'matches', message: 'y' },
      { path: 'match', message: 'z' },
    ];
    expect(elsewhere(errors, ['limits.rpm', 'match.models'])).toEqual(errors.slice(1));
  });

  it('say which field of a pasted document nobody knows', () => {
    const checked = check(groupSchema, { name: 'a', limit: {} });
    expect(checked).toEqual({
      ok: false,
      errors: [{ path: 'limit', message: 'unknown field `limit`; did you mean `limits`?' }],
    });
  });
});

describe('an instant', () => {
  it('goes to the minute and back, whatever the time zone of the reader', () => {
    const at = '2027-01-01T10:30:00.000Z';
    expect(text.instantFrom(text.localFrom(at))).toBe(at);
    expect(text.localFrom(null)).toBe('');
    expect(text.instantFrom('')).toBeNull();
  });
});

describe('the help of a field', () => {
  it.each([
    ['queue.timeout_ms', '0 to 3,600,000. Default: 240,000 ms.'],
    ['limits.rpm', 'Default: none.'],
    ['holds.cancel_cooldown_ms', 'auto, or 0 to 60,000. Default: auto.'],
    ['track_usage', 'Default: auto.'],
    ['queue.lane_default', 'Default: normal.'],
    ['name', 'Required.'],
    ['match.models', 'One per line.'],
  ])('tells bounds and default of %s', (path, said) => {
    expect(text.boundsText(fieldAt(path))).toBe(said);
  });
});
