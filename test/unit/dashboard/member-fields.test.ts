import { describe, expect, it } from 'vitest';
import { affinitySchema, memberSchema } from '../../../src/contract/config/members.ts';
import { reportedOf } from '../../../dashboard/src/model/change-list.ts';
import { boundsText, textPairsFrom } from '../../../dashboard/src/model/field-text.ts';
import * as fields from '../../../dashboard/src/model/member-fields.ts';
import { fieldsOf } from '../../../dashboard/src/model/schema-fields.ts';

const sorted = (labels: object) => Object.keys(labels).toSorted();
const pathsOf = (schema: Parameters<typeof fieldsOf>[0]) =>
  fieldsOf(schema)
    .map(({ path }) => path)
    .toSorted();

describe('the form of a member', () => {
  const shown = { ...fields.MEMBER_FIELDS, ...fields.MORE_MEMBER_FIELDS };

  it('has every field of the schema once, each with a label of its own', () => {
    expect(sorted(shown)).toEqual(pathsOf(memberSchema));
    expect(sorted(fields.AFFINITY_FIELDS)).toEqual(pathsOf(affinitySchema));
    const labels = [...Object.values(shown), ...Object.values(fields.AFFINITY_FIELDS)];
    expect(labels).toEqual([...new Set(labels)]);
  });

  it('says what is required, and what may be left out', () => {
    const bounds = (path: string) => {
      const field = fields.FIELDS_OF_MEMBER.get(path);
      return field === undefined ? null : boundsText(field);
    };
    expect(bounds('upstream')).toBe('Required.');
    expect(bounds('secret')).toBe('');
    expect(fields.FIELDS_OF_MEMBER.get('secret')?.help).toContain(
      'Empty means that of the upstream',
    );
  });

  it('takes names of models as texts, whatever they look like', () => {
    expect(fields.FIELDS_OF_MEMBER.get('models')?.kind).toMatchObject({ isOfTexts: true });
    expect(
      textPairsFrom([
        [' gpt-4o ', ' 7 '],
        ['', ''],
      ]),
    ).toEqual({ 'gpt-4o': '7' });
  });
});

describe('members in a draft', () => {
  const member = (upstream: string) => memberSchema.parse({ upstream });

  it('begin where the last one is, or at the first upstream', () => {
    expect(fields.newMember([], ['east', 'west'])).toEqual(member('east'));
    expect(fields.newMember([member('west')], ['east'])).toEqual(member('west'));
    expect(fields.newMember([], [])).toEqual({ ...member('-'), upstream: '' });
  });

  it('go to another place', () => {
    expect(fields.moved(['a', 'b', 'c'], 0, 1)).toEqual(['b', 'a', 'c']);
    expect(fields.moved(['a', 'b', 'c'], 2, 0)).toEqual(['c', 'a', 'b']);
  });

  it('may be anything that somebody typed', () => {
    expect(fields.membersIn('none')).toEqual([]);
    expect(fields.membersIn(['x', null])).toHaveLength(2);
  });

  it('know what is wrong with them, by the paths of their fields', () => {
    const errors = [
      { path: 'members[1].tier', message: 'a' },
      { path: 'members[10].tier', message: 'b' },
      { path: 'members[1]', message: 'c' },
    ];
    expect(fields.errorsWithin(errors, 'members[1]')).toEqual([{ path: 'tier', message: 'a' }]);
  });
});

it('an affinity as it is by default is none', () => {
  expect(fields.affinityIn(null)).toEqual({ by: 'agent', for: '5m', wait: '2s' });
  expect(fields.affinityFrom(fields.affinityIn(null))).toBeNull();
  const typed = { ...fields.affinityIn(null), wait: '5s' };
  expect(fields.affinityFrom(typed)).toEqual(typed);
});

describe('a change of members is told', () => {
  const whole = memberSchema.parse({ upstream: 'east', tier: 2, limits: { rpm: 5 } });
  const chosen = { upstream: 'east', tier: 2, limits: { rpm: 5 } };

  it.each([
    ['members[east]', whole, chosen],
    ['groups[g].members[east]', whole, chosen],
    ['members', [whole], [chosen]],
    ['members[east].tier', 2, 2],
    ['limits', { rpm: null }, { rpm: null }],
  ])('at %s by what somebody chose', (path, value, reported) => {
    expect(reportedOf(path, value)).toEqual(reported);
  });
});
