import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../../../src/contract/config/config.ts';
import { durationMs } from '../../../../src/contract/config/duration.ts';
import { groupSchema } from '../../../../src/contract/config/group.ts';
import { memberIdOf } from '../../../../src/contract/config/members.ts';
import { checkConfig } from '../../../../src/config/check-config.ts';
import { importConfig } from '../../../../src/config/import-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../../src/providers/catalog.ts';
import { aConfig } from '../../routing/fixtures.ts';

type GroupInput = NonNullable<ConfigInput['groups']>[number];

function check(group: Partial<GroupInput>) {
  const config = aConfig({ groups: [{ name: 'g', ...group }] });
  return checkConfig(config, BUILT_IN_UPSTREAMS, { privateUpstreams: false, jurisdiction: null });
}

/** What an import says of a group that the schema refuses. */
function refused(group: unknown): string[] {
  const result = importConfig({ groups: [group] });
  if (result.ok) throw new Error('the configuration was taken');
  return result.errors.map(({ path, message }) => `${path}: ${message}`);
}

const [A, B] = [
  { upstream: 'anthropic', secret: 'UPSTREAM_TEAM_A' },
  { upstream: 'anthropic', secret: 'UPSTREAM_TEAM_B' },
];

test('a group of an older release has no members', () => {
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
      'a secret that is a key',
      { members: [{ ...A, secret: 'sk-ant-api03-xyz' }] },
      'groups[0].members[0].secret: expected the name of a secret that begins with UPSTREAM_, got a text of 16 characters',
    ],
    [
      'a limit that only groups have',
      { members: [{ ...A, limits: { max_weight: 2 } }] },
      'groups[0].members[0].limits.max_weight: unknown field "max_weight"; known here: max_concurrency',
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

test('two members with one id are refused', () => {
  const { errors } = check({ members: [A, B, { ...A, tier: 2 }] });
  expect(errors).toContainEqual({
    path: 'groups[0].members[2].name',
    message: 'is "anthropic:team-a", as members[0] is; give it a name of its own',
  });
});

test('an affinity that outlasts the queue is warned of', () => {
  const warned = (wait: string) =>
    check({ members: [A, B], affinity: { wait }, queue: { timeout_ms: 3_000 } }).warnings.filter(
      (warning) => warning.includes('affinity.wait'),
    );
  expect(warned('3s')).toHaveLength(1);
  expect(warned('2s')).toEqual([]);
});
