import { describe, expect, it } from 'vitest';
import { limitWords } from '../../../dashboard/src/model/limit-words.ts';
import {
  callOf,
  isAsked,
  queryOf,
  testedFormOf,
  wrongIn,
} from '../../../dashboard/src/model/tested-call.ts';
import { limitsSchema } from '../../../src/contract/config/limits.ts';

const USUAL = testedFormOf({});

describe('a call in a link', () => {
  it('is as usual where the link says nothing', () => {
    expect(callOf(USUAL)).toEqual({
      model: null,
      upstream: null,
      key: null,
      operation: 'chat',
      path: null,
      method: 'POST',
      shape: 'openai',
      lane: null,
      headers: {},
    });
    expect(isAsked(USUAL)).toBe(false);
  });

  it('comes back as it was put in', () => {
    const form = {
      model: 'gpt-4o',
      upstream: 'openai',
      operation: 'messages',
      path: '/v1/custom/run',
      method: 'PUT',
      shape: 'anthropic',
      key: 'team-search',
      lane: 'low',
      headers: 'x-team: search\nX-Run : 7',
    };
    const query = queryOf(form);
    expect(testedFormOf(query as Record<string, string>)).toEqual(form);
    expect(isAsked(form)).toBe(true);
    expect(callOf(form)).toEqual({
      ...form,
      headers: { 'x-team': 'search', 'x-run': '7' },
    });
  });

  it('leaves out what is as usual', () => {
    expect(Object.values(queryOf({ ...USUAL, model: 'gpt-4o' })).filter(Boolean)).toEqual([
      'gpt-4o',
    ]);
  });

  it.each(['', 'team-search', 'fp_0f14e09b7944126d75b432d8'])('may have the key "%s"', (key) => {
    expect(wrongIn({ ...USUAL, key }, ['team-search'])).toEqual({});
  });

  it.each([
    'hg_abcdefabcdefabcdefabcdefabcdefab',
    'sk-proj-0123456789',
    '0123456789abcdef0123456789abcdef',
    'team-unknown',
    'fp_0f14',
  ])('may not have the key "%s", which could be one', (key) => {
    expect(wrongIn({ ...USUAL, key }, ['team-search']).key).toContain('fingerprint');
  });

  it.each(['Authorization: Bearer x', 'x-api-key: x', 'a: b\nheadgate-key: hg_x', 'Cookie: a=b'])(
    'may not have a header that holds a key: %s',
    (headers) => {
      expect(wrongIn({ ...USUAL, headers }, []).headers).toContain('contains a key');
    },
  );

  it('has a name, a colon and a value in each line of its headers', () => {
    expect(wrongIn({ ...USUAL, headers: 'x-team search' }, []).headers).toContain('colon');
    expect(wrongIn({ ...USUAL, headers: '\nx-team: search\n' }, [])).toEqual({});
  });
});

it.each([
  [{}, ['any number of slots']],
  [{ max_concurrency: 1 }, ['1 slot']],
  [{ max_concurrency: 0, rpm: 600, tpm: 200_000 }, ['0 slots', '600 rpm', '200K tpm']],
  [{ max_concurrency: 5, starts_per_s: 0.5 }, ['5 slots', '0.5 starts per second']],
  [
    { max_concurrency: 5, budget_usd: { per_day: 20, per_month: 100 } },
    ['5 slots', '$20 per day', '$100 per month'],
  ],
])('limits %o are told in words', (limits, words) => {
  expect(limitWords(limitsSchema.parse(limits))).toEqual(words);
});
