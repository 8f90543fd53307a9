// The groups that the limits of keys make, and what the weights of keys do to configured ones.
import { describe, expect, it } from 'vitest';
import { configSchema, type ConfigInput } from '../../../src/contract/config/config.ts';
import { definedGroup, limitGroups } from '../../../src/routing/implied-groups.ts';
import { takesCalls } from '../../../src/routing/pool.ts';
import { changeBetween, ownPoolsToPush } from '../../../src/directory/changes.ts';
import { compileRoutes } from '../../../src/routing/placement.ts';
import { byId, aCall, anUpstream } from './fixtures.ts';

type GroupsKey = NonNullable<ConfigInput['keys']>[number];

const hash = (digit: number) => `sha256:${String(digit).repeat(64)}`;

function configOf(keys: Omit<GroupsKey, 'hash'>[], groups: ConfigInput['groups'] = []) {
  const hashed = keys.map((key, at) => ({ ...key, hash: hash(at) }));
  return configSchema.parse({ keys: hashed, groups });
}

const limited = configOf([
  { id: 'free' },
  { id: 'slots', limits: { max_concurrency: 2 } },
  { id: 'poor', limits: { budget_usd: { per_month: 10 } } },
]);

describe('limits of keys', () => {
  it('make groups of those that have any', () => {
    expect(limitGroups(limited).map(({ name }) => name)).toEqual(['key:slots', 'key:poor']);
    const slots = definedGroup(limited, 'key:slots');
    expect(slots).toMatchObject({
      match: { keys: ['slots'], models: [] },
      limits: { max_concurrency: 2, max_weight: 1 },
      adaptive: 'off',
    });
    expect(definedGroup(limited, 'key:free')).toBeUndefined();
    expect(definedGroup(limited, 'key:nobody')).toBeUndefined();
  });

  it('come on top of whatever else a call belongs to, and for no other key', () => {
    const openai = anUpstream('openai');
    const routes = compileRoutes(limited, byId());
    const groupsOf = (...keyIds: string[]) =>
      routes.place(aCall(openai, { keyIds })).map(({ group }) => group);
    expect(groupsOf('slots')).toEqual(['key:slots', 'auto:openai']);
    expect(groupsOf('free')).toEqual(['auto:openai']);
    expect(groupsOf()).toEqual(['auto:openai']);
    expect(
      routes.useOfModel({
        upstream: openai,
        operation: 'chat',
        method: 'POST',
        path: null,
        keyIds: ['slots'],
      }),
    ).toBe(
      routes.useOfModel({
        upstream: openai,
        operation: 'chat',
        method: 'POST',
        path: null,
        keyIds: [],
      }),
    );
  });

  it('have pools that are told of a change and retire with the limits', () => {
    const none = configOf([{ id: 'free' }, { id: 'slots' }, { id: 'poor' }]);
    const pool = { group: 'key:slots', partition: null, jurisdiction: null };
    expect([takesCalls(pool, limited), takesCalls(pool, none)]).toEqual([true, false]);
    const raised = structuredClone(limited);
    if (raised.keys[1] !== undefined) raised.keys[1].limits.max_concurrency = 3;
    const change = changeBetween(limited, raised);
    expect([...change.groups]).toEqual(['key:slots']);
    expect(change.routingMoved).toBe(false);
    expect(ownPoolsToPush(change, limited, raised, [])).toEqual([pool]);
    const gone = changeBetween(limited, none);
    expect(gone.retired.map(({ group }) => group)).toEqual(['key:slots', 'key:poor']);
    // Calls that wait there go another way.
    expect(gone.routingMoved).toBe(true);
  });
});

describe('limits of teams', () => {
  const teams = (...ids: string[]) => ids.map((id) => ({ id, limits: { rpm: 5 } }));
  const keys = [
    { id: 'one', team: 'apps', limits: { rpm: 1 }, hash: hash(1) },
    { id: 'two', team: 'apps', hash: hash(2) },
    { id: 'three', hash: hash(3) },
  ];
  const config = configSchema.parse({ keys, teams: [...teams('apps', 'empty'), { id: 'free' }] });

  it('make groups over the keys that name them', () => {
    expect(limitGroups(config).map(({ name }) => name)).toEqual(['key:one', 'team:apps']);
    expect(definedGroup(config, 'team:apps')?.match.keys).toEqual(['one', 'two']);
    // A group that named no key would match every call.
    for (const none of ['empty', 'free', 'nobody']) {
      expect(definedGroup(config, `team:${none}`)).toBeUndefined();
    }
  });

  it('come on top of those of the key, and for no other key', () => {
    const openai = anUpstream('openai');
    const groupsOf = (...keyIds: string[]) =>
      compileRoutes(config, byId())
        .place(aCall(openai, { keyIds }))
        .map(({ group }) => group);
    expect(groupsOf('one')).toEqual(['key:one', 'team:apps', 'auto:openai']);
    expect(groupsOf('two')).toEqual(['team:apps', 'auto:openai']);
    expect(groupsOf('three')).toEqual(['auto:openai']);
  });

  it('have pools that retire with the limits, and move calls when a key changes its team', () => {
    const pool = { group: 'team:apps', partition: null, jurisdiction: null };
    const without = configSchema.parse({ keys, teams: [] });
    expect([takesCalls(pool, config), takesCalls(pool, without)]).toEqual([true, false]);
    expect(changeBetween(config, without).retired).toEqual([pool]);
    const moved = structuredClone(config);
    if (moved.keys[1] !== undefined) moved.keys[1].team = null;
    expect(changeBetween(config, moved)).toMatchObject({ routingMoved: true });
    expect([...changeBetween(config, moved).groups]).toEqual(['team:apps']);
  });
});

describe('weights of keys', () => {
  const before = configOf([{ id: 'one' }, { id: 'two' }], [{ name: 'a' }, { name: 'b' }]);
  const after = configOf(
    [{ id: 'one', weight: 4 }, { id: 'two' }],
    [{ name: 'a' }, { name: 'b', fairness: { weights: { one: 2, header: 3 } } }],
  );

  it('hold where a group names none for the key', () => {
    expect(definedGroup(after, 'a')?.fairness.weights).toEqual({ one: 4 });
    expect(definedGroup(after, 'b')?.fairness.weights).toEqual({ one: 2, header: 3 });
  });

  it('are told to all groups when they change', () => {
    const weighed = configOf(
      [{ id: 'one', weight: 4 }, { id: 'two' }],
      [{ name: 'a' }, { name: 'b' }],
    );
    expect([...changeBetween(before, weighed).groups]).toEqual(['a', 'b']);
    expect([...changeBetween(before, before).groups]).toEqual([]);
    expect(changeBetween(before, weighed).routingMoved).toBe(false);
  });
});

it('what becomes of calls that find no room in an automatic group is a change of that group', () => {
  const [before, next] = [{}, { on_saturated: 'reject' as const }].map((does) =>
    configSchema.parse({ auto_groups: [{ name: 'auto:openai' }, { name: 'auto:zai', ...does }] }),
  );
  if (before === undefined || next === undefined) throw new Error('no configurations');
  expect([...changeBetween(before, next).groups]).toEqual(['auto:zai']);
});
