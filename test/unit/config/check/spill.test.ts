// Which lists of other upstreams a configuration may hold, and what is said of budgets without prices.
import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../../../src/contract/config/config.ts';
import { checkConfig } from '../../../../src/config/check-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../../src/providers/catalog.ts';
import { aConfig } from '../../routing/fixtures.ts';

type SpillGroup = NonNullable<ConfigInput['groups']>[number];
type SpillUpstream = NonNullable<ConfigInput['upstreams']>[number];
type SpillTo = Extract<SpillGroup['on_saturated'], object>['spill_to'];

const SECRET = { secret: 'UPSTREAM_OTHER_KEY' };

/** An OpenAI-shaped upstream with a key of the operator's, and what a test needs otherwise. */
function other(id: string, more: Partial<SpillUpstream> = {}): SpillUpstream {
  return { id, base_url: `https://${id}.example.com`, auth: SECRET, ...more };
}

const UPSTREAMS = [
  other('one'),
  other('two'),
  other('keyless', { auth: 'passthrough' }),
  other('free', { auth: 'none' }),
  other('off', { enabled: false }),
  other('claude', { dialect: 'anthropic' }),
  other('claude-too', { dialect: 'anthropic' }),
  other('native', { dialect: 'gemini' }),
  other('native-only', { dialect: 'gemini', openai_at: null }),
  other('unknown', { dialect: 'opaque' }),
];

const KEYS = [{ id: 'team', hash: `sha256:${'0'.repeat(64)}` }];

function check(group: Omit<SpillGroup, 'name'>, upstreams: SpillUpstream[] = UPSTREAMS) {
  const config = aConfig({ upstreams, groups: [{ name: 'a', ...group }], keys: KEYS });
  return checkConfig(config, BUILT_IN_UPSTREAMS, { privateUpstreams: false, jurisdiction: null });
}

function errors(match: SpillGroup['match'], spillTo: SpillTo): string[] {
  const group = { match, on_saturated: { spill_to: spillTo } };
  return check(group).errors.map(({ path, message }) => `${path}: ${message}`);
}

const ONE = { upstreams: ['one'] };

describe('a list of other upstreams is taken', () => {
  test.each<[string, SpillGroup['match'], SpillTo]>([
    ['of one dialect', ONE, ['two']],
    ['that takes no key', ONE, ['free']],
    ['with another model', ONE, [{ upstream: 'two', model: 'm' }]],
    ['of another dialect that has routes of the same shape', ONE, ['native']],
    ['of the same upstream under another model', ONE, [{ upstream: 'one', model: 'smaller' }]],
    [
      'that leads from each of several upstreams to the others',
      { upstreams: ['one', 'two'] },
      ['one', 'two'],
    ],
    ['by base URL', { base_urls: ['https://claude.example.com'] }, ['claude-too']],
    ['for models, wherever they are', { models: ['claude-*'] }, ['claude']],
    ['for everything', {}, ['two']],
  ])('%s', (_, match, spillTo) => {
    expect(errors(match, spillTo)).toEqual([]);
  });

  test('whose built-in upstream was given a key', () => {
    const group = { match: ONE, on_saturated: { spill_to: ['groq'] } };
    const [error] = check(group).errors;
    expect(error?.message).toMatch(/^`groq` has no key of the operator/);
    expect(check(group, [...UPSTREAMS, { id: 'groq', auth: SECRET }]).errors).toEqual([]);
  });
});

describe('a list of other upstreams without a key of theirs is taken', () => {
  const members = (group: Omit<SpillGroup, 'name'>) => ({
    upstreams: UPSTREAMS,
    keys: KEYS,
    groups: [{ name: 'b', ...group }],
  });
  const found = (group: Omit<SpillGroup, 'name'>, entry: SpillTo[number]) => {
    const base = members(group);
    const a = { name: 'a', match: ONE, on_saturated: { spill_to: [entry] } };
    const config = aConfig({ ...base, groups: [...base.groups, a] });
    const options = { privateUpstreams: false, jurisdiction: null };
    return checkConfig(config, BUILT_IN_UPSTREAMS, options).errors;
  };
  const there = { upstreams: ['keyless'] };
  const KEYED = { upstream: 'keyless', secret: 'UPSTREAM_OF_A_MEMBER' };

  test.each<[string, Omit<SpillGroup, 'name'>, SpillTo[number]]>([
    ['where a member has one', { match: there, members: [KEYED] }, 'keyless'],
    [
      'where a member at another upstream has one',
      { match: there, members: [{ upstream: 'two' }] },
      'keyless',
    ],
    ['where a member needs none', { match: there, members: [{ upstream: 'free' }] }, 'keyless'],
    [
      'for the model that members are for',
      { match: { models: ['m'] }, members: [KEYED] },
      { upstream: 'keyless', model: 'm' },
    ],
    ['for what may be that model', { match: { models: ['m'] }, members: [KEYED] }, 'keyless'],
  ])('%s', (_, group, entry) => {
    expect(found(group, entry)).toEqual([]);
  });

  test.each<[string, Omit<SpillGroup, 'name'>, SpillTo[number]]>([
    ['members are elsewhere', { match: { upstreams: ['two'] }, members: [KEYED] }, 'keyless'],
    [
      'members have no such routes',
      { match: { models: ['m'] }, members: [{ upstream: 'native-only', secret: 'UPSTREAM_N' }] },
      { upstream: 'keyless', model: 'm' },
    ],
    [
      'members are for another model',
      { match: { models: ['m'] }, members: [KEYED] },
      { upstream: 'keyless', model: 'x' },
    ],
  ])('but not where %s', (_, group, entry) => {
    expect(found(group, entry)).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/^`keyless` has no key/) }),
    ]);
  });
});

describe('a list of other upstreams is refused, with the path,', () => {
  test.each<[string, SpillGroup['match'], SpillTo, RegExp]>([
    ['that names nothing', ONE, ['two', 'tow'], /spill_to\[1\]: `tow` is not an enabled upstream$/],
    ['that names a disabled upstream', ONE, ['off'], /spill_to\[0\]: `off` is not an enabled/],
    [
      "that would send callers' own keys elsewhere",
      ONE,
      ['keyless'],
      /spill_to\[0\]: `keyless` has no key of the operator, so callers' own keys .* `auth\.secret` .*`auth: none`/,
    ],
    [
      'the same under another model name',
      ONE,
      [{ upstream: 'keyless', model: 'm' }],
      /spill_to\[0\]\.upstream: `keyless` has no key/,
    ],
    ['that leads back', ONE, ['one'], /spill_to\[0\]: `one` is already the upstream of this group/],
    [
      'that leads back by base URL',
      { base_urls: ['https://one.example.com/v1'] },
      ['one'],
      /`one` is/,
    ],
    ['of another dialect', ONE, ['two', 'claude'], /spill_to\[1\]: `claude` .* dialect of `one`,/],
    ['without routes of that shape', ONE, ['native-only'], /`native-only` does not speak/],
    ['of which nothing is known', ONE, ['unknown'], /`unknown` does not speak/],
    [
      'of which one of several upstreams understands nothing',
      { upstreams: ['one', 'claude'] },
      ['two'],
      /`two` does not speak the dialect of `claude`,/,
    ],
    ['that no call to anything fits', {}, ['unknown'], /`unknown` .* dialect of the others,/],
  ])('%s', (_, match, spillTo, expected) => {
    expect(errors(match, spillTo)).toEqual([expect.stringMatching(expected)]);
    expect(errors(match, spillTo)[0]).toMatch(/^groups\[0\]\.on_saturated\.spill_to\[/);
  });
});

describe('of an automatic group', () => {
  const errorsAt = (name: string, spillTo: SpillTo) => {
    const auto_groups = [{ name, on_saturated: { spill_to: spillTo } }];
    const config = aConfig({ upstreams: UPSTREAMS, auto_groups, keys: KEYS });
    const options = { privateUpstreams: false, jurisdiction: null };
    const { errors: found } = checkConfig(config, BUILT_IN_UPSTREAMS, options);
    return found.map(({ path, message }) => `${path}: ${message}`);
  };

  test('a list is taken, and refused with its path, as of a group of its upstream', () => {
    expect(errorsAt('auto:one', ['two', 'free'])).toEqual([]);
    for (const [to, why] of [
      ['one', /`one` is already the upstream of this group/],
      ['keyless', /`keyless` has no key/],
      ['claude', /`claude` does not speak the dialect of `one`/],
      ['tow', /`tow` is not an enabled upstream/],
    ] as const) {
      const [error] = errorsAt('auto:one', ['two', to]);
      expect(error).toMatch(/^auto_groups\[0\]\.on_saturated\.spill_to\[1\]: /);
      expect(error).toMatch(why);
    }
  });
});

describe('a budget without prices is warned of', () => {
  const limits = { budget_usd: { per_day: 1 } };

  test('at the upstreams that the group names', () => {
    const { warnings } = check({ match: { upstreams: ['one', 'tw*', 'openai'] }, limits });
    expect(warnings).toEqual([
      expect.stringMatching(/^Group `a`: no prices are known for `one`, `two`, /),
    ]);
  });

  test('at the configured upstreams, where it names none', () => {
    const { warnings } = check({ limits }, [other('one')]);
    expect(warnings).toEqual([
      expect.stringMatching(/^Group `a`: no prices are known for `one`, /),
    ]);
  });

  test.each<[string, SpillGroup, SpillUpstream[]]>([
    [
      'where prices are configured',
      { name: 'a', match: ONE, limits },
      [other('one', { prices: { 'm*': { input: 1, output: 2 } } })],
    ],
    ['where prices are listed', { name: 'a', match: { upstreams: ['openai'] }, limits }, []],
    [
      'where a host of any name has listed prices',
      { name: 'a', match: ONE, limits },
      [other('one', { dialect: 'azure' })],
    ],
    [
      'where the group has a price for all',
      {
        name: 'a',
        match: ONE,
        limits: { budget_usd: { per_day: 1, fallback_price: { input: 1, output: 2 } } },
      },
      [other('one')],
    ],
    ['where there is no budget', { name: 'a', match: ONE }, [other('one')]],
    [
      'where only models are named, wherever they are',
      { name: 'a', match: { models: ['gpt-*'] }, limits },
      [other('one')],
    ],
  ])('not %s', (_, group, upstreams) => {
    expect(check(group, upstreams)).toEqual({ errors: [], warnings: [] });
  });
});

test('limits of requests and tokens are kept, so nothing is said of them', () => {
  const limits = { rpm: 5, tpm: 9, itpm: 9, otpm: 9, rpd: 9, tpd: 9 };
  expect(check({ match: ONE, limits })).toEqual({ errors: [], warnings: [] });
});
