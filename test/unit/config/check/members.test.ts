import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../../../src/contract/config/config.ts';
import { durationMs, memberIdOf } from '../../../../src/contract/config/members.ts';
import { groupSchema } from '../../../../src/contract/config/group.ts';
import { checkConfig } from '../../../../src/config/check-config.ts';
import { importConfig } from '../../../../packages/import/src/import-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../../src/providers/catalog.ts';
import { aConfig } from '../../routing/fixtures.ts';

type MembersGroupInput = NonNullable<ConfigInput['groups']>[number];

/** Words of an import on a group that the schema refuses. */
function refused(group: unknown): string[] {
  const result = importConfig({ groups: [group] });
  if (result.ok) throw new Error('the configuration was taken');
  return result.errors.map(({ path, message }) => `${path}: ${message}`);
}

const [A, B] = [
  { upstream: 'anthropic', secret: 'UPSTREAM_TEAM_A' },
  { upstream: 'anthropic', secret: 'UPSTREAM_TEAM_B' },
];

test('a group has no members by default', () => {
  expect(groupSchema.parse({ name: 'g' })).toMatchObject({ members: [], affinity: null });
});

test('a member and an affinity have every default', () => {
  const { members, affinity } = groupSchema.parse({ name: 'g', members: [A], affinity: {} });
  expect(members).toMatchObject([
    { ...A, models: {}, limits: { max_concurrency: null }, weight: 1, tier: 1, enabled: true },
  ]);
  expect(affinity).toEqual({ by: 'agent', for: '5m', wait: '2s' });
});

test.each([
  [{ name: 'eu', ...A }, 'eu'],
  [A, 'anthropic:team-a'],
  [{ upstream: 'anthropic' }, 'anthropic'],
])('the id of %j is %s', (member, id) => {
  expect(memberIdOf(member)).toBe(id);
});

test.each([
  ['500ms', 500],
  ['2s', 2_000],
  ['1.5m', 90_000],
  ['1h', 3_600_000],
  ['soon', Number.NaN],
])('the duration %s is %d ms', (written, ms) => {
  expect(durationMs(written)).toBe(ms);
});

describe('the schema refuses, with the path', () => {
  test.each<[string, object, string]>([
    [
      'a member without an upstream',
      { members: [{ secret: 'UPSTREAM_A' }] },
      'groups[0].members[0].upstream: is missing: expected text',
    ],
    [
      'a weight of 0',
      { members: [{ ...A, weight: 0 }] },
      'groups[0].members[0].weight: expected at least 0.01, got 0',
    ],
    [
      'a pattern in place of a model',
      { members: [{ ...A, models: { 'claude-*': 'x' } }] },
      'groups[0].members[0].models["claude-*"]: `claude-*` cannot be a name here: expected the name of a model, not a pattern',
    ],
    [
      'a secret that is a key',
      { members: [{ ...A, secret: 'sk-ant-api03-xyz' }] },
      'groups[0].members[0].secret: expected the name of a secret that begins with UPSTREAM_, got a text of 16 characters',
    ],
    [
      'a limit that only groups have',
      { members: [{ ...A, limits: { max_weight: 2 } }] },
      'groups[0].members[0].limits.max_weight: unknown field `max_weight`; known fields: `max_concurrency`',
    ],
    [
      'a duration that is none',
      { members: [A], affinity: { for: 'soon' } },
      'groups[0].affinity.for: expected a duration like 500ms, 2s, 5m or 1h',
    ],
    [
      'a duration beyond its bounds',
      { members: [A], affinity: { wait: '2h' } },
      'groups[0].affinity.wait: must be between 0s and 1h',
    ],
  ])('%s', (_what, group, message) => {
    expect(refused({ name: 'g', ...group })).toEqual([expect.stringContaining(message)]);
  });
});

const UPSTREAMS: ConfigInput['upstreams'] = [
  { id: 'east', base_url: 'https://east.example.com', auth: { secret: 'UPSTREAM_EAST' } },
  { id: 'west', base_url: 'https://west.example.com', aliases: { ours: 'gpt-4o' } },
  {
    id: 'south',
    base_url: 'https://south.example.com',
    aliases: { ours: 'gpt-4o' },
    auth: { secret: 'UPSTREAM_SOUTH' },
  },
  { id: 'free', base_url: 'https://free.example.com', auth: 'none' },
  { id: 'off', base_url: 'https://off.example.com', enabled: false },
  { id: 'closed', base_url: 'https://closed.example.com', dialect: 'opaque' },
];
const EAST = { upstream: 'east' };
const WEST = { upstream: 'west', secret: 'UPSTREAM_WEST' };

function check(
  group: Partial<MembersGroupInput>,
  { others = [], keys = true }: { others?: MembersGroupInput[]; keys?: boolean } = {},
) {
  const config = aConfig({
    upstreams: UPSTREAMS,
    groups: [{ name: 'g', ...group }, ...others],
    keys: keys ? [{ id: 'team', hash: `sha256:${'0'.repeat(64)}` }] : [],
  });
  return checkConfig(config, BUILT_IN_UPSTREAMS, { privateUpstreams: false, jurisdiction: null });
}

describe('members are refused, with the path', () => {
  test.each<[string, Partial<MembersGroupInput>, string, string]>([
    [
      'at an upstream that there is none of',
      { members: [EAST, { upstream: 'wets' }] },
      'members[1].upstream',
      '`wets` is not an enabled upstream; did you mean `west`',
    ],
    [
      'at an upstream that is switched off',
      { members: [{ upstream: 'off' }] },
      'members[0].upstream',
      '`off` is not an enabled upstream',
    ],
    [
      'of two dialects, at the first that differs',
      { members: [EAST, WEST, A, B] },
      'members[2].upstream',
      'speaks anthropic, and members[0] speaks openai',
    ],
    [
      'with one secret at one upstream',
      { members: [A, B, { ...A, name: 'again' }] },
      'members[2].secret',
      'is the same as members[0], with the secret UPSTREAM_TEAM_A',
    ],
    [
      'with the secret of their upstream, once by its name',
      { members: [EAST, { ...EAST, secret: 'UPSTREAM_EAST' }] },
      'members[1].secret',
      'is the same as members[0]',
    ],
    [
      'without a secret at one upstream',
      { members: [{ upstream: 'free' }, { upstream: 'free', name: 'again' }] },
      'members[1].upstream',
      'without a secret',
    ],
    [
      'with one name',
      {
        members: [
          { ...A, name: 'one' },
          { ...B, name: 'one' },
        ],
      },
      'members[1].name',
      'gives this member the id `one`, which members[0] has',
    ],
    [
      'with a name that another one has from its upstream',
      { members: [EAST, { ...WEST, name: 'east' }] },
      'members[1].name',
      'gives this member the id `east`, which members[0] has',
    ],
    [
      'with a name for a model that the group does not match',
      { match: { models: ['gpt-4o*'] }, members: [{ ...EAST, models: { 'claude-4': 'x' } }] },
      'members[0].models.claude-4',
      'is matched by no pattern of `match.models`',
    ],
    [
      'with two names for one model',
      { members: [{ ...EAST, models: { 'gpt-4o': 'a', 'GPT-4o': 'b' } }] },
      'members[0].models.GPT-4o',
      'is the model `gpt-4o` in another case',
    ],
    [
      'in a group that is for an upstream of another dialect',
      { match: { upstreams: ['east', 'anthropic'] }, members: [EAST, WEST] },
      'match.upstreams[1]',
      'speaks anthropic, and the members speak openai',
    ],
    [
      'in a group that is for a base URL of another dialect',
      { match: { base_urls: ['https://closed.example.com'] }, members: [EAST] },
      'match.base_urls[0]',
      'speaks opaque, and the members speak openai',
    ],
    ...['api_key', 'upstream', 'base_url'].map(
      (by): [string, Partial<MembersGroupInput>, string, string] => [
        `in a group that is split by ${by}`,
        { partition_by: ['caller', by as 'api_key'], members: [A, B] },
        'partition_by[1]',
        `\`${by}\` cannot split a group with members`,
      ],
    ),
    [
      'where calls spill to another dialect',
      {
        match: { models: ['claude-*'] },
        members: [A, B],
        on_saturated: { spill_to: [{ upstream: 'east', model: 'gpt-4o' }] },
      },
      'on_saturated.spill_to[0].upstream',
      'speaks openai, and the members speak anthropic',
    ],
    [
      'where calls spill to one of them',
      {
        match: { models: ['gpt-4o'] },
        members: [EAST, WEST],
        on_saturated: { spill_to: ['east'] },
      },
      'on_saturated.spill_to[0]',
      'is the same as members[0]',
    ],
    ...(
      [
        ['anything', {}, 'east'],
        ['anything, under another model', {}, { upstream: 'south', model: 'x' }],
        ['anything of some keys and headers', { keys: ['team'], operations: ['chat'] }, 'east'],
        ['the upstream', { upstreams: ['e*', 'south'] }, 'east'],
        ['the model', { models: ['gpt-*'] }, { upstream: 'south', model: 'gpt-4o-mini' }],
        ['its alias', { models: ['gpt-4o'] }, { upstream: 'south', model: 'ours' }],
        ['the model, in full', { models: ['south/x'] }, { upstream: 'south', model: 'x' }],
        ["the call's own model", { models: ['gpt-4o'] }, 'east'],
        ["the call's own model, wherever it is", { models: ['gpt-4o', '*/o3'] }, 'east'],
        [
          "the call's own model, which has a slash",
          { upstreams: ['east', 'south'], models: ['openai/gpt-oss'] },
          'east',
        ],
      ] as const
    ).map(([what, match, to]): [string, Partial<MembersGroupInput>, string, string] => [
      `where calls spill to what the group matches: ${what}`,
      { match: structuredClone(match) as never, members: [WEST], on_saturated: { spill_to: [to] } },
      `on_saturated.spill_to[0]${typeof to === 'string' ? '' : '.upstream'}`,
      'there belong to this group too. Add it as a member instead',
    ]),
    ['if there are none to keep', { affinity: {} }, 'affinity', 'has no effect without `members`'],
  ])('%s', (_what, group, path, message) => {
    expect(check(group).errors).toEqual([
      { path: `groups[0].${path}`, message: expect.stringContaining(message) },
    ]);
  });
});

describe('members are taken', () => {
  test.each<[string, Partial<MembersGroupInput>]>([
    ['with two secrets at one upstream', { members: [A, B] }],
    ['of one dialect at several upstreams', { members: [EAST, WEST, { upstream: 'free' }] }],
    [
      'with names for models that are matched by pattern, by upstream and by alias',
      {
        match: { models: ['gpt-4o', 'openai/o3*'] },
        members: [{ ...EAST, models: { 'GPT-4o': 'a', 'o3-mini': 'b', ours: 'c' } }],
      },
    ],
    ['in a group for all models', { members: [{ ...EAST, models: { 'claude-4': 'x' } }] }],
    [
      'in a group that is for their upstreams, or for a pattern that some of them have',
      { match: { upstreams: ['east', '*'] }, members: [EAST, WEST] },
    ],
    ['in a group that is split by callers', { partition_by: ['caller'], members: [A, B] }],
    [
      'in a group that spills to an upstream that it does not match',
      { match: { upstreams: ['west'] }, members: [WEST], on_saturated: { spill_to: ['east'] } },
    ],
    [
      'by base URL',
      {
        match: { base_urls: ['https://west.example.com'] },
        members: [WEST],
        on_saturated: { spill_to: ['east'] },
      },
    ],
    [
      'or to a model',
      {
        match: { models: ['gpt-4o', 'west/*'] },
        members: [WEST],
        on_saturated: { spill_to: [{ upstream: 'east', model: 'gpt-4o-mini' }] },
      },
    ],
    [
      'or to an upstream that its models do not name',
      {
        match: { models: ['west/gpt-4o'] },
        members: [WEST],
        on_saturated: { spill_to: ['east', { upstream: 'east', model: 'gpt-4o' }] },
      },
    ],
    [
      'or to where some of its calls are in the group, and others are not',
      {
        match: { models: ['west/gpt-4o', 'o3'] },
        members: [WEST],
        on_saturated: { spill_to: ['east'] },
      },
    ],
  ])('%s', (_what, group) => {
    expect(check(group).errors).toEqual([]);
  });
});

describe('members are warned of', () => {
  const warnings = (...asked: Parameters<typeof check>) => check(...asked).warnings;

  test('that have nothing to be warned of: not at all', () => {
    const affinity = { wait: '4m' };
    expect(warnings({ members: [A, B], affinity: { by: 'caller' } })).toEqual([]);
    // With one member, or without anybody who keeps one, nobody waits for one.
    expect(warnings({ members: [A], affinity })).toEqual([]);
    expect(warnings({ members: [A, B], affinity: { ...affinity, by: 'none' } })).toEqual([]);
  });

  test.each<[string, Parameters<typeof check>, string]>([
    [
      'when their affinity outlasts the queue',
      [{ members: [A, B], affinity: { wait: '3s' }, queue: { timeout_ms: 3_000 } }],
      '`affinity.wait` is not shorter than `queue.timeout_ms`',
    ],
    [
      'when all are switched off',
      [{ members: [{ ...A, enabled: false }] }],
      'every member is disabled',
    ],
    [
      'when one has no key, and its upstream none either',
      [{ members: [EAST, { upstream: 'west' }, { upstream: 'free' }] }],
      'calls are sent without a key at `west`. Set `secret`',
    ],
    [
      'when a call may match two groups with members',
      [
        { members: [A] },
        { others: [{ name: 'h', match: { models: ['claude-x'] }, members: [B] }] },
      ],
      'One call may match `h` and `g`, which both have members',
    ],
    [
      'when another group is for an upstream of theirs',
      [
        { match: { models: ['gpt-4o'] }, members: [EAST, WEST] },
        { others: [{ name: 'h', match: { upstreams: ['west'] } }] },
      ],
      'Group `h` matches `west`, but does not count calls that members of `g` take there',
    ],
    [
      'when a budget of the group has no prices at their upstreams',
      [{ members: [WEST], limits: { budget_usd: { per_day: 5 } } }],
      'no prices are known for `west`, so the budget rejects all calls there',
    ],
    [
      'when a budget of their own has no prices',
      [{ members: [EAST, { ...WEST, limits: { budget_usd: { per_day: 5 } } }] }],
      'the budget of its member `west:west` rejects all calls',
    ],
    [
      'when models of the group are not known to be there',
      [{ match: { models: ['claude-*', 'gpt-4o', 'mine'] }, members: [A, B] }],
      'the upstream of its members `anthropic:team-a`, `anthropic:team-b` is not known to have `gpt-4o`, `mine`',
    ],
    [
      'at one of them',
      [
        {
          match: { models: ['gpt-4o', 'openai/mine'] },
          members: [
            EAST,
            { upstream: 'openai', secret: 'UPSTREAM_O', models: { 'gpt-4o': 'gpt-4o' } },
          ],
        },
      ],
      'the upstream of its member `openai:o` is not known to have `openai/mine`, so',
    ],
    [
      'when a name of theirs is not',
      [{ members: [{ upstream: 'openai', secret: 'UPSTREAM_O', models: { m: 'gtp-4o' } }] }],
      'the upstream of its member `openai:o` is not known to have `gtp-4o`, so',
    ],
  ])('%s', (_what, asked, message) => {
    expect(warnings(...asked)).toEqual([expect.stringContaining(message)]);
  });

  test('when nobody has a key', () => {
    expect(warnings({ members: [A] }, { keys: false })).toContainEqual(
      expect.stringContaining('Members of `g` with a key get no calls'),
    );
    const free: ConfigInput = {
      upstreams: [{ id: 'free', base_url: 'https://free.example.com', auth: 'none' }],
      groups: [{ name: 'g', members: [{ upstream: 'free' }] }],
    };
    const options = { privateUpstreams: false, jurisdiction: null };
    expect(checkConfig(aConfig(free), BUILT_IN_UPSTREAMS, options).warnings).toEqual([]);
  });

  test.each<[string, Parameters<typeof check>]>([
    [
      'when another group is for the upstream that their calls were sent to',
      [
        { match: { upstreams: ['west'], models: ['gpt-4o'] }, members: [WEST] },
        { others: [{ name: 'h', match: { upstreams: ['west'] } }] },
      ],
    ],
    [
      'when they have names for models, or nobody knows what they have',
      [
        {
          match: { models: ['mine', 'openai/gpt-4o'] },
          members: [
            { upstream: 'openai', secret: 'UPSTREAM_O', models: { mine: 'gpt-4o-2024-08-06' } },
            EAST,
          ],
        },
      ],
    ],
    [
      'when their budgets have prices, or one for all',
      [
        {
          members: [
            { upstream: 'openai', secret: 'UPSTREAM_OURS', limits: { budget_usd: { per_day: 5 } } },
            {
              ...WEST,
              limits: { budget_usd: { per_day: 5, fallback_price: { input: 1, output: 2 } } },
            },
          ],
        },
      ],
    ],
  ])('not %s', (_what, asked) => {
    expect(warnings(...asked)).toEqual([]);
  });
});
