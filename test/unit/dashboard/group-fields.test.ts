import { describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { GROUP_SECTIONS, NAME_LABEL } from '../../../dashboard/src/model/group-fields.ts';
import { fieldsOf } from '../../../dashboard/src/model/schema-fields.ts';

const FIELDS = fieldsOf(groupSchema);
const SHOWN = GROUP_SECTIONS.flatMap(({ fields }) => Object.entries(fields));

describe('the form of a group', () => {
  it('has every field of the schema once, and no other', () => {
    const paths = ['name', ...SHOWN.map(([path]) => path)];
    expect(paths.toSorted()).toEqual(FIELDS.map(({ path }) => path).toSorted());
  });

  it('tells every field apart by its label', () => {
    const labels = [NAME_LABEL, ...SHOWN.map(([, label]) => label)];
    expect(labels).toEqual([...new Set(labels)]);
  });

  it('says of every field what it is, and of every number its unit', () => {
    const silent = FIELDS.filter(
      ({ help, unit, kind }) => help === '' || (kind.type === 'number' && unit === undefined),
    );
    expect(silent).toEqual([]);
  });

  it('speaks of what is typed, and not of the document', () => {
    const help = new Map(FIELDS.map((field) => [field.path, field.help]));
    expect(help.get('limits.max_concurrency')).toBe(
      'Slots: concurrent calls. 0 starts no calls. Empty means unlimited.',
    );
    expect(help.get('limits.budget_usd.fallback_price')).toContain(
      'None means that, with a budget',
    );
    expect([...help.values()].filter((text) => /`|\bNull\b/.test(text))).toEqual([]);
  });

  it.each([
    ['limits.max_concurrency', 'number', true, null],
    ['limits.max_weight', 'number', false, 1],
    ['queue.timeout_ms', 'number', false, 240_000],
    ['queue.age_credit_ms', 'number', true, 120_000],
    ['holds.release_cooldown_ms', 'number', false, 'auto'],
    ['match.models', 'list', false, []],
    ['partition_by', 'list', false, []],
    ['queue.lane_default', 'choice', false, 'normal'],
    ['jurisdiction', 'choice', true, null],
    ['fairness.weights', 'pairs', false, {}],
    ['track_usage', 'choice', false, 'auto'],
    ['on_saturated', 'special', false, 'queue'],
    ['limits.budget_usd.fallback_price', 'special', true, null],
    ['name', 'text', false, undefined],
  ])('knows from the schema how %s is entered: %s', (path, type, isNullable, fallback) => {
    const field = FIELDS.find((each) => each.path === path);
    expect(field).toMatchObject({ kind: { type }, isNullable });
    expect(field?.fallback).toEqual(fallback);
  });

  it('knows the bounds of a number, and the words of a list', () => {
    const kindOf = (path: string) => FIELDS.find((each) => each.path === path)?.kind;
    expect(kindOf('queue.max_length')).toEqual({
      type: 'number',
      min: 0,
      max: 5_000,
      isWhole: true,
      takesAuto: false,
    });
    expect(kindOf('holds.cancel_cooldown_ms')).toMatchObject({ max: 60_000, takesAuto: true });
    expect(kindOf('limits.burst')).toMatchObject({ isWhole: false });
    expect(kindOf('partition_by')).toMatchObject({
      words: ['api_key', 'caller', 'model', 'upstream', 'base_url'],
    });
  });
});
