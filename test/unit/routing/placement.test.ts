import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { OVERFLOW_PARTITION, poolName } from '../../../src/contract/pool-name.ts';
import {
  compileRoutes,
  type Placement,
  type RoutedCall,
  type Routes,
  keepaliveAfterMs,
} from '../../../src/routing/placement.ts';
import { autoGroupNamed } from '../../../src/routing/implied-groups.ts';
import type { ModelUse } from '../../../src/routing/group-match.ts';
import { callersAtOnce, overlaps } from '../../../src/routing/overlaps.ts';
import { aCall, aConfig, anUpstream, byId } from './fixtures.ts';

type PlacementGroup = NonNullable<ConfigInput['groups']>[number];
type PlacementMatch = NonNullable<PlacementGroup['match']>;

const openai = anUpstream('openai', { baseUrl: 'https://api.openai.com' });
const azure = anUpstream('azure', {
  baseUrl: 'https://r.openai.azure.com',
  aliases: { 'Prod-7': 'gpt-4o' },
  keyNamesAccount: false,
});
const openrouter = anUpstream('openrouter', { baseUrl: 'https://openrouter.ai/api' });
const zai = anUpstream('zai');
const gemini = anUpstream('gemini', { dialect: 'gemini' });

function routesOf(...groups: PlacementGroup[]) {
  return compileRoutes(aConfig({ groups }), byId());
}

/** Whether a group with that match takes the call. */
function takes(match: PlacementMatch, call: RoutedCall): boolean {
  return names(routesOf({ name: 'a', match }).place(call)).includes('a');
}

function names(placements: readonly Placement[]): string[] {
  return placements.map(({ group }) => group);
}

/** The one pool of a call that belongs to one group. */
function only(placements: readonly Placement[]): Placement {
  const [first, ...more] = placements;
  if (first === undefined || more.length > 0) {
    throw new Error(`not one: ${names(placements).join()}`);
  }
  return first;
}

describe('an explicit group matches', () => {
  const chat = aCall(openai);
  const deployment = aCall(azure, { model: 'prod-7' });
  const routed = aCall(openrouter, { model: 'openai/gpt-4o' });
  test.each<[string, PlacementMatch, RoutedCall, boolean]>([
    ['everything, without fields', {}, aCall(zai, { model: null }), true],
    ['a model', { models: ['gpt-4o'] }, chat, true],
    ['in any case', { models: ['GPT-4o'] }, aCall(openai, { model: 'gpt-4O' }), true],
    ['by a glob', { models: ['o1-*', 'gpt-*'] }, chat, true],
    ['not by a part of it', { models: ['gpt-4'] }, chat, false],
    ['a model of an upstream', { models: ['openai/gpt-4o'] }, chat, true],
    ['not that of another one', { models: ['azure/gpt-4o'] }, chat, false],
    ['not an upstream by a glob that means models', { models: ['op*'] }, chat, false],
    ['a model whose name has a slash', { models: ['openai/gpt-4o'] }, routed, true],
    ['with its upstream before it', { models: ['openrouter/openai/*'] }, routed, true],
    ['not without the vendor', { models: ['gpt-4o'] }, routed, false],
    ...['models/Gemini-2.5-Pro', 'google/gemini-2.5-pro'].flatMap(
      (model): [string, PlacementMatch, RoutedCall, boolean][] => [
        [`${model} of Google`, { models: ['gemini-2.5-pro'] }, aCall(gemini, { model }), true],
        [`${model} as it is sent`, { models: [model] }, aCall(gemini, { model }), true],
        [`not ${model} elsewhere`, { models: ['gemini-*'] }, aCall(openrouter, { model }), false],
      ],
    ),
    ['what an alias stands for', { models: ['gpt-4o'] }, deployment, true],
    ['with its upstream', { models: ['azure/gpt-4o'] }, deployment, true],
    ['the alias itself', { models: ['prod-*'] }, deployment, true],
    [
      'no alias of another upstream',
      { models: ['gpt-4o'] },
      aCall(openai, { model: 'prod-7' }),
      false,
    ],
    ['no model where one is asked for', { models: ['*'] }, aCall(openai, { model: null }), false],
    ['an upstream', { upstreams: ['azure', 'OpenAI'] }, chat, true],
    ['upstreams by a glob', { upstreams: ['open*'] }, routed, true],
    ['not another upstream', { upstreams: ['azure'] }, chat, false],
    ['a base URL', { base_urls: ['https://API.openai.com/'] }, chat, true],
    ['a base URL as SDKs take it', { base_urls: ['https://api.openai.com/v1'] }, chat, true],
    ['what lies below a base URL', { base_urls: ['https://openrouter.ai'] }, routed, true],
    ['base URLs by a glob', { base_urls: ['https://*.openai.azure.com'] }, deployment, true],
    ['not a host that begins alike', { base_urls: ['https://api.open'] }, chat, false],
    ['a key', { keys: ['team-a'] }, aCall(openai, { keyIds: ['team-a', 'fp-1'] }), true],
    ['any of its ids', { keys: ['fp-*'] }, aCall(openai, { keyIds: ['team-a', 'fp-1'] }), true],
    ['not another key', { keys: ['team-b'] }, chat, false],
    ['not a caller without a key', { keys: ['*'] }, aCall(openai, { keyIds: [] }), false],
    ['an operation', { operations: ['embeddings', 'chat'] }, chat, true],
    ['not another operation', { operations: ['embeddings'] }, chat, false],
    ['all fields at once', { models: ['gpt-*'], upstreams: ['openai'] }, chat, true],
    ['not some of them', { models: ['gpt-*'], upstreams: ['azure'] }, chat, false],
  ])('%s', (_, match, call, expected) => {
    expect(takes(match, call)).toBe(expected);
  });
});

test('a call belongs to every group that matches it, narrow first', () => {
  const widest: PlacementGroup[] = [
    { name: 'a-global' },
    { name: 'b-some', match: { upstreams: ['openai', 'azure'] } },
    { name: 'c-glob', match: { upstreams: ['open*'] } },
    { name: 'd-one', match: { upstreams: ['openai'] } },
    { name: 'e-url', match: { base_urls: ['https://api.openai.com'] } },
    { name: 'f-model', match: { models: ['*'], upstreams: ['*'] } },
    { name: 'g-model', match: { models: ['gpt-4o'] } },
    { name: 'h-tenant', match: { keys: ['*'] } },
  ];
  const placements = routesOf(...widest).place(aCall(openai));
  expect(placements[0]).toMatchObject({ group: 'h-tenant', partition: null, assumed: null });
  expect(placements[0]?.config?.name).toBe('h-tenant');
  expect(names(placements)).toEqual([
    'h-tenant',
    'f-model',
    'g-model',
    'd-one',
    'e-url',
    'b-some',
    'c-glob',
    'a-global',
  ]);
});

test('the same model in two groups takes slots in both', () => {
  const routes = routesOf(
    { name: 'small', match: { models: ['gpt-4o'] } },
    { name: 'big', match: { models: ['gpt-4o', 'o3'] } },
  );
  expect(names(routes.place(aCall(openai)))).toEqual(['big', 'small']);
  expect(names(routes.place(aCall(openai, { model: 'o3' })))).toEqual(['big']);
});

test.each<[string, PlacementMatch, string[]]>([
  ['a model', { models: ['glm-5.1'] }, ['a']],
  ['an upstream', { upstreams: ['zai'] }, ['a']],
  ['a base URL', { base_urls: ['https://api.zai.example'] }, ['a']],
  ['callers come on top', { keys: ['fp-*'] }, ['a', 'auto:zai/glm-5.1']],
  ['an operation comes on top', { operations: ['chat'] }, ['auto:zai/glm-5.1', 'a']],
  ['everything comes on top', {}, ['auto:zai/glm-5.1', 'a']],
])('the automatic group is replaced by one for a model or provider only: %s', (_, match, all) => {
  const placements = routesOf({ name: 'a', match }).place(aCall(zai, { model: 'glm-5.1' }));
  expect(names(placements)).toEqual(all);
  const explicit = placements.find(({ group }) => group === 'a');
  expect(explicit?.isOfProvider).toBe(all.length === 1);
});

test('the first lane rule of a group that matches the model counts', () => {
  const lane_rules: NonNullable<PlacementGroup['queue']>['lane_rules'] = [
    { models: ['*haiku*'], lane: 'low' },
    { models: ['claude-*'], lane: 'high' },
  ];
  const routes = routesOf({
    name: 'a',
    match: { upstreams: ['openrouter'] },
    queue: { lane_rules },
  });
  const lane = (model: string | null) => only(routes.place(aCall(openrouter, { model }))).ruledLane;
  expect([lane('claude-haiku-4'), lane('claude-opus'), lane('gpt-4o'), lane(null)]).toEqual([
    'low',
    'high',
    null,
    null,
  ]);
  expect(
    routes.useOfModel({
      upstream: openrouter,
      operation: 'chat',
      method: 'POST',
      path: null,
      keyIds: [],
    }),
  ).toBe('place');
});

describe('an automatic group', () => {
  test.each([
    ['of an upstream that nothing is known of', openai, 'gpt-4o', 'auto:openai', 64, 'unknown'],
    ['of a call without a model', openai, null, 'auto:openai', 64, 'unknown'],
    ['of a row for one model', zai, 'GLM-5.1', 'auto:zai/glm-5.1', 1, 'built_in'],
    ['of a row for a family', zai, 'glm-4.6', 'auto:zai/glm-4.', 10, 'built_in'],
    ['of another model of it', zai, 'glm-4.7-air', 'auto:zai/glm-4.', 10, 'built_in'],
    ['of a model without a row', zai, 'cogview-4', 'auto:zai', 64, 'unknown'],
    ['of a row for all models', anUpstream('deepinfra'), 'x/y', 'auto:deepinfra', 200, 'built_in'],
  ] as const)('%s', (_, upstream, model, group, slotsMax, source) => {
    const placement = only(routesOf().place(aCall(upstream, { model })));
    expect(placement).toEqual({
      group,
      partition: 'fp-caller',
      assumed: { slotsMax, source },
      config: null,
      isOfProvider: true,
      ruledLane: null,
    });
  });

  test.each([
    ['https://api.z.ai/api/coding/paas/v4', 'GLM-5.1', 'auto:mine/glm-5.1', 1, 'place'],
    ['https://open.bigmodel.cn', 'glm-4.6', 'auto:mine/glm-4.', 10, 'place'],
    ['https://api.kimi.com/coding', 'kimi-for-coding', 'auto:mine', 1, 'none'],
    ['https://gateway.example', 'glm-5.1', 'auto:mine', 64, 'none'],
  ])('of an upstream of any name is that of its host: %s', (baseUrl, model, group, most, use) => {
    const upstream = anUpstream('mine', { baseUrl });
    const routes = compileRoutes(aConfig({}), byId());
    const call = aCall(upstream, { model });
    expect(only(routes.place(call))).toMatchObject({ group, assumed: { slotsMax: most } });
    expect(routes.useOfModel(call)).toBe(use);
    expect(autoGroupNamed(group, byId(upstream))?.assumed.slotsMax).toBe(most);
  });

  test('knows models by their aliases', () => {
    const upstream = anUpstream('zai', { aliases: { Best: 'GLM-5.1' } });
    const routes = compileRoutes(aConfig({}), byId());
    expect(names(routes.place(aCall(upstream, { model: 'best' })))).toEqual(['auto:zai/glm-5.1']);
  });

  test('is not split where keys do not name an account, or where there is none', () => {
    expect(only(routesOf().place(aCall(azure))).partition).toBeNull();
    expect(only(routesOf().place(aCall(openai, { keyFingerprint: null }))).partition).toBeNull();
  });

  test('takes what no explicit group does', () => {
    const routes = routesOf({ name: 'a', match: { models: ['gpt-*'] } });
    expect(names(routes.place(aCall(openai, { model: 'o3' })))).toEqual(['auto:openai']);
  });
});

/** The partition of a call in the one configured group. */
function partitionIn(routes: Routes, call: RoutedCall): string | null {
  const placement = routes.place(call).find(({ config }) => config !== null);
  if (placement === undefined) throw new Error('no configured group matches');
  return placement.partition;
}

describe('partitions', () => {
  const call = aCall(azure, {
    model: 'PROD-7',
    caller: 'team-a',
    keyFingerprint: 'fp-1',
    header: (name) => (name === 'x-project' ? 'a #1,b' : null),
  });
  test.each<[NonNullable<PlacementGroup['partition_by']>, string | null]>([
    [[], null],
    [['api_key'], 'fp-1'],
    [['caller'], 'team-a'],
    [['model'], 'gpt-4o'],
    [['upstream'], 'azure'],
    [['base_url'], 'https%3A%2F%2Fr.openai.azure.com'],
    [['header:x-project'], 'a%20%231%2Cb'],
    [['header:x-other'], 'none'],
    [['caller', 'model', 'header:x-other'], 'team-a,gpt-4o,none'],
  ])('by %j: %s', (partition_by, expected) => {
    expect(partitionIn(routesOf({ name: 'a', partition_by }), call)).toBe(expected);
  });

  test('by key fall back to the caller, and a call without a model has one of its own', () => {
    const routes = routesOf({ name: 'a', partition_by: ['api_key', 'model'] });
    const bare = { ...call, keyFingerprint: null, model: null };
    expect(partitionIn(routes, bare)).toBe('team-a,none');
  });

  test('have names in bounds, whatever callers send', () => {
    const partition_by = ['header:x-a', 'header:x-b', 'model'] as const;
    const routes = routesOf({ name: 'g'.repeat(64), partition_by: [...partition_by] });
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fc.boolean(), (text, half) => {
        const value = half ? `${text}\ud800` : text;
        const partition = partitionIn(routes, { ...call, model: value, header: () => value });
        const group = 'g'.repeat(64);
        expect(partition?.split(',')).toHaveLength(3);
        expect(partition).not.toContain('#');
        expect(partition).not.toBe(OVERFLOW_PARTITION);
        expect(poolName(group, partition).length).toBeLessThanOrEqual(1_024);
        expect(() => decodeURIComponent(partition ?? '')).not.toThrow();
      }),
    );
  });
});

describe('the use of the model', () => {
  const before = {
    method: 'POST',
    path: null,
    upstream: openai,
    operation: 'chat',
    keyIds: ['team-a'],
  };
  test.each<[string, PlacementGroup[], ModelUse]>([
    ['no group', [], 'none'],
    ['a group of the upstream', [{ name: 'a', match: { upstreams: ['openai'] } }], 'none'],
    ['a group of models', [{ name: 'a', match: { models: ['x'] } }], 'place'],
    [
      'one of another upstream',
      [{ name: 'a', match: { models: ['x'], upstreams: ['azure'] } }],
      'none',
    ],
    [
      'one of another operation',
      [{ name: 'a', match: { models: ['x'], operations: ['x'] } }],
      'none',
    ],
    ['one of another caller', [{ name: 'a', match: { models: ['x'], keys: ['team-b'] } }], 'none'],
    ['one of this caller', [{ name: 'a', match: { models: ['x'], keys: ['team-a'] } }], 'place'],
    ['one split by model', [{ name: 'a', partition_by: ['model'] }], 'place'],
    ['one split by caller', [{ name: 'a', partition_by: ['caller'] }], 'none'],
    [
      'one whose calls go elsewhere',
      [{ name: 'a', on_saturated: { spill_to: ['azure'] } }],
      'counts',
    ],
    ['one that counts requests', [{ name: 'a', limits: { rpm: 1, rpd: 1 } }], 'none'],
    ['one that counts tokens', [{ name: 'a', limits: { tpm: 1 } }], 'counts'],
    ['one that counts cost', [{ name: 'a', limits: { budget_usd: { per_day: 1 } } }], 'counts'],
    ['one that counts without a limit', [{ name: 'a', track_usage: 'always' }], 'counts'],
  ])('%s', (_, groups, expected) => {
    const routes = routesOf(...groups);
    expect(routes.useOfModel(before)).toBe(expected);
  });

  test('is the place where the table of known limits has rows by model, until a group takes the calls', () => {
    const call = { ...before, upstream: zai };
    expect(routesOf().useOfModel(call)).toBe('place');
    expect(routesOf({ name: 'a', match: { upstreams: ['zai'] } }).useOfModel(call)).toBe('none');
  });

  test('counts where the automatic group sends calls elsewhere, until a group takes the calls', () => {
    const auto_groups = [{ name: 'auto:zai/glm-5.1', on_saturated: { spill_to: ['azure'] } }];
    const call = { ...before, upstream: zai };
    const routes = compileRoutes(aConfig({ auto_groups }), byId());
    expect([routes.useOfModel(call), routes.spillsSome, routes.countsSome]).toEqual([
      'counts',
      true,
      true,
    ]);
    expect(routes.useOfModel({ ...before, upstream: anUpstream('zai-too') })).toBe('none');
    const groups = [{ name: 'a', match: { upstreams: ['zai'] } }];
    expect(compileRoutes(aConfig({ auto_groups, groups }), byId()).useOfModel(call)).toBe('none');
  });

  test('answers for an upstream that came with another version too', () => {
    const late = anUpstream('zai');
    const routes = routesOf({ name: 'a', match: { models: ['x'] } });
    expect(routes.useOfModel({ ...before, upstream: late })).toBe('place');
    expect(names(routes.place(aCall(late, { model: 'x' })))).toEqual(['a']);
  });
});

describe('comments to streams that wait', () => {
  test.each<[object, number | null]>([
    [{}, null],
    [{ timeout_ms: 240_000 }, null],
    [{ timeout_ms: 240_001 }, 200_000],
    [{ timeout_ms: 900_000, keepalive: { after_ms: 1_000 } }, 1_000],
    [{ keepalive: { after_ms: 0 } }, 0],
    [{ timeout_ms: 1_000, lane_timeouts_ms: { low: 240_001 } }, 200_000],
    [{ lane_timeouts_ms: { high: 1_000 } }, null],
  ])('begin before Node gives up, or as the group says: %j after %j ms', (queue, afterMs) => {
    const [group] = aConfig({ groups: [{ name: 'g', queue }] }).groups;
    if (group === undefined) throw new Error('no group');
    expect(keepaliveAfterMs(group)).toBe(afterMs);
  });
});

describe('whatever is configured and called', () => {
  const some = <T>(...values: T[]) => fc.subarray(values, { maxLength: 2 });
  const match = fc.record({
    models: some('gpt-4o', 'gpt-*', '*', 'openai/gpt-4o', 'open*/*', 'openrouter/openai/*', 'o3'),
    upstreams: some('openai', 'azure', 'open*', 'openrouter'),
    base_urls: some('https://api.openai.com/v1', 'https://*'),
    keys: some('team-a', 'team-*'),
    operations: some('chat', 'embeddings'),
  });
  const partitionBy = some<'caller' | 'model'>('caller', 'model');
  const documents = fc
    .array(fc.tuple(match, partitionBy), { maxLength: 6 })
    .map((all) =>
      all.map(([fields, by], n): PlacementGroup => ({
        name: `g${n}`,
        match: fields,
        partition_by: by,
      })),
    )
    .chain((groups) =>
      fc.tuple(fc.constant(groups), fc.shuffledSubarray(groups, { minLength: groups.length })),
    );
  const calls = fc
    .record({
      upstream: fc.constantFrom(openai, openrouter, zai, anUpstream('azure')),
      model: fc.constantFrom('gpt-4o', 'GPT-4o-mini', 'openai/gpt-4o', 'o3', 'glm-5.1', null),
      operation: fc.constantFrom('chat', 'embeddings', 'images'),
      keyIds: fc.constantFrom(['team-a'], ['team-b'], []),
    })
    .map(({ upstream, ...more }) => aCall(upstream, more));

  test('the order of the groups in the document changes nothing', () => {
    fc.assert(
      fc.property(documents, calls, ([groups, shuffled], call) => {
        const placement = routesOf(...groups).place(call);
        expect(routesOf(...shuffled).place(call)).toEqual(placement);
        expect(overlaps(aConfig({ groups: shuffled }))).toEqual(overlaps(aConfig({ groups })));
      }),
    );
  });

  test('a call that does not need its model is placed alike with any', () => {
    fc.assert(
      fc.property(documents, calls, ([groups], call) => {
        const routes = routesOf(...groups);
        if (routes.useOfModel(call) !== 'none') return;
        expect(routes.place({ ...call, model: null })).toEqual(routes.place(call));
      }),
    );
  });

  test('every pair of groups that a call matches is told as an overlap, narrow first', () => {
    fc.assert(
      fc.property(documents, calls, ([groups], call) => {
        const placements = routesOf(...groups).place(call);
        const matched = names(placements.filter(({ config }) => config !== null));
        const reported = overlaps(aConfig({ groups }));
        for (const [index, narrow] of matched.entries()) {
          for (const wide of matched.slice(index + 1)) {
            expect(reported).toContainEqual([narrow, wide]);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('a call that belongs to too many groups was warned of', () => {
    fc.assert(
      fc.property(documents, calls, fc.integer({ min: 1, max: 5 }), ([groups], call, most) => {
        const placements = routesOf(...groups).place(call);
        const wasWarned = callersAtOnce(aConfig({ groups }), most) !== null;
        expect(wasWarned || placements.length <= most).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a group with members takes calls that one of them has a route for', () => {
  const claude = anUpstream('claude', {
    dialect: 'anthropic',
    openaiAt: '/v1',
    anthropicAt: '/v1',
  });
  const both = anUpstream('both', { anthropicAt: '/anthropic' });
  const upstreams = byId(openai, zai, claude, both);
  const [CHAT, MESSAGES] = ['/v1/chat/completions', '/anthropic/v1/messages'];
  const groupOf = (...ids: string[]): PlacementGroup => ({
    name: 'a',
    members: ids.map((upstream) => ({ upstream, secret: 'UPSTREAM_A' })),
  });

  test.each<[string, PlacementGroup, RoutedCall['upstream'], string | null, boolean]>([
    ['at an upstream of their dialect', groupOf('openai'), zai, CHAT, true],
    ['at their own, by any path', groupOf('both'), both, '/anything', true],
    [
      'by routes that both have',
      groupOf('openai'),
      anUpstream('x', { dialect: 'azure' }),
      CHAT,
      true,
    ],
    ['not by one that none has', groupOf('openai', 'zai'), both, MESSAGES, false],
    ['by one that the second has', groupOf('openai', 'both'), both, MESSAGES, true],
    [
      'not of another dialect',
      groupOf('openai'),
      gemini,
      '/v1beta/models/m:generateContent',
      false,
    ],
    ['by any path, where some is shared', groupOf('openai'), claude, null, true],
    [
      'by any path, where none is',
      groupOf('claude'),
      anUpstream('x', { dialect: 'opaque', openaiAt: null }),
      null,
      false,
    ],
    [
      'where no upstream of theirs is left, so that it is refused',
      groupOf('gone'),
      gemini,
      CHAT,
      true,
    ],
  ])('%s', (_, group, upstream, path, expected) => {
    const routes = compileRoutes(aConfig({ groups: [group] }), upstreams);
    const placed = names(routes.place(aCall(upstream, { path })));
    expect(placed).toEqual([expected ? 'a' : `auto:${upstream.id}`]);
  });

  test('nor does it stand for upstreams of other dialects', () => {
    const routes = compileRoutes(aConfig({ groups: [groupOf('openai')] }), upstreams);
    const opaque = anUpstream('x', { dialect: 'opaque', openaiAt: null });
    expect([openai, opaque].map((each) => routes.groupsOf(each))).toEqual([['a'], []]);
  });
});
