// The groups of a call are found by what they name, and are those that a look at each of them finds.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { Upstream } from '../../../src/contract/config/upstream.ts';
import {
  GroupIndex,
  compileGroups,
  groupsByUpstream,
  calledAt,
  type BeforeModel,
  type CompiledGroup,
  type ModelNames,
  type ModelUse,
} from '../../../src/routing/group-match.ts';
import { compileRoutes, type RoutedCall } from '../../../src/routing/placement.ts';
import { byId, aCall as aCallOf, aConfig, anUpstream } from './fixtures.ts';

type IndexGroup = NonNullable<ConfigInput['groups']>[number];
type GroupIndexCall = Parameters<GroupIndex['matching']>[0];

const UPSTREAMS = [
  anUpstream('openai', { baseUrl: 'https://api.openai.com' }),
  anUpstream('azure', { baseUrl: 'https://r.openai.azure.com' }),
  anUpstream('openrouter', { baseUrl: 'https://openrouter.ai/api' }),
];
const USES: readonly ModelUse[] = ['none', 'place', 'counts'];

function compiled(groups: readonly IndexGroup[]): CompiledGroup[] {
  return compileGroups(aConfig({ groups: [...groups] }).groups);
}

function factsOf({ config, modelUse, isTargeted, matchesModel }: CompiledGroup): BeforeModel {
  return {
    modelUse,
    isReplaced: isTargeted && matchesModel === null,
    keepsAlive: config.queue.keepalive.after_ms !== null,
  };
}

/** Looks at every group, as was done before there was an index. */
function searched(groups: readonly CompiledGroup[], upstream: Upstream, call: GroupIndexCall) {
  const all = groups.filter(
    (group) =>
      group.matchesUpstream(upstream) &&
      group.matchesOperation(call.operation) &&
      group.matchesCaller(call.keyIds) &&
      (group.matchesPath === null || (call.at !== null && group.matchesPath(call.at))),
  );
  const facts = all.map(factsOf);
  return {
    of: (model: ModelNames) =>
      all.filter(({ matchesModel }) => matchesModel === null || matchesModel(model)),
    before: {
      modelUse: USES.findLast((use) => facts.some(({ modelUse }) => modelUse === use)) ?? 'none',
      isReplaced: facts.some(({ isReplaced }) => isReplaced),
      keepsAlive: facts.some(({ keepsAlive }) => keepsAlive),
    },
  };
}

function indexAt(groups: readonly CompiledGroup[], upstream: Upstream): GroupIndex {
  return new GroupIndex(groupsByUpstream(groups)(upstream), factsOf);
}

const some = (...patterns: string[]) =>
  fc.subarray(patterns, { maxLength: Math.min(3, patterns.length) });
const aGroup = fc.record({
  match: fc.record({
    models: some(
      'gpt-4o',
      'GPT-*',
      'gpt-4o-*',
      '*-mini',
      '*',
      'openai/*',
      'o*',
      'gpt-*-mini',
      'x/y',
    ),
    upstreams: some('openai', 'Azure', 'open*', '*', '*router'),
    base_urls: some('https://api.openai.com', 'https://*.azure.com'),
    keys: some('team-a', 'Team-*', '*-b', 'fp_1'),
    operations: some('chat', 'embeddings', 'c*'),
    paths: some('/v1/*', '/v1/tools/run', '*'),
    methods: fc.subarray<'GET' | 'POST'>(['GET', 'POST']),
  }),
  queue: fc.constantFrom({}, { keepalive: { after_ms: 15_000 } }),
  track_usage: fc.constantFrom('auto', 'always', 'off'),
  partition_by: some('model'),
});
const aCall = fc.record({
  operation: fc.constantFrom('chat', 'embeddings', 'count_tokens'),
  keyIds: some('team-a', 'TEAM-A', 'team-b', 'fp_1', 'fp_2'),
  at: fc.option(
    fc
      .tuple(fc.constantFrom('GET', 'POST'), fc.constantFrom('/v1/tools/run', '/v1%2Fx', '/other'))
      .map(([method, path]) => calledAt(method, path)),
  ),
});
const aModel = some('gpt-4o', 'gpt-4o-mini', 'o3', 'x/y', 'openai/gpt-4o', 'openai/x/y', '');

test('an index finds what a look at each group finds, in the same order', () => {
  const groups = fc.array(aGroup, { maxLength: 14 });
  const property = fc.property(
    groups,
    fc.array(fc.tuple(aCall, aModel, fc.constantFrom(...UPSTREAMS)), { maxLength: 6 }),
    (given, calls) => {
      const all = compiled(given.map((group, at) => ({ ...group, name: `g${at}` })));
      const indexes = new Map(UPSTREAMS.map((upstream) => [upstream, indexAt(all, upstream)]));
      for (const [call, names, upstream] of calls) {
        const index = indexes.get(upstream);
        const expected = searched(all, upstream, call);
        const model = { upstream: upstream.id, names };
        expect(index?.matching(call, model)).toEqual(expected.of(model));
        expect(index?.beforeModel(call, [])).toEqual(expected.before);
      }
    },
  );
  fc.assert(property, { numRuns: 2_000 });
});

describe('of a thousand groups a call looks at those alone that may be its own', () => {
  test.each<[string, (at: number) => Partial<IndexGroup>]>([
    ['by the model', (at) => ({ match: { models: [`m${at}`] } })],
    ['by a model that begins so', (at) => ({ match: { models: [`m${at}-*`, `openai/m${at}`] } })],
    ['by the key', (at) => ({ match: { keys: [`m${at}`], models: ['*'] } })],
  ])('%s', (_, group) => {
    let looks = 0;
    const all = compiled(
      Array.from({ length: 1_000 }, (__, at) => ({ ...group(at), name: `g${at}` })),
    );
    const counted = all.map((each) => ({
      ...each,
      matchesOperation(operation: string) {
        looks += 1;
        return each.matchesOperation(operation);
      },
    }));
    const index = indexAt(counted, anUpstream('openai'));
    const call = { operation: 'chat', keyIds: ['m7'], at: null };
    index.beforeModel(call, []); // what any caller is told of an operation is put together once
    looks = 0;
    index.beforeModel(call, []);
    const found = index.matching(call, { upstream: 'openai', names: ['m7', 'm7-x'] });
    expect(found.map(({ config }) => config.name)).toEqual(['g7']);
    expect(looks).toBeLessThan(5);
  });
});

test('of a thousand groups an upstream looks at those alone that may name it', () => {
  let looks = 0;
  const all = compiled(
    Array.from({ length: 1_000 }, (_, at) => ({
      name: `g${at}`,
      match: { upstreams: [`u${at}`] },
    })),
  ).map((each) => ({
    ...each,
    matchesUpstream(upstream: Upstream) {
      looks += 1;
      return each.matchesUpstream(upstream);
    },
  }));
  expect(groupsByUpstream(all)(anUpstream('u7')).map(({ config }) => config.name)).toEqual(['g7']);
  expect(looks).toBeLessThan(5);
});

/** Texts of few letters, so that many of them meet; the upper-case K is no letter of ASCII, but its lower case is. */
const aText = fc.string({
  unit: fc.constantFrom('a', 'B', 'b', '/', 'ß', '\u212a', 'k', '.'),
  minLength: 1,
  maxLength: 4,
});
const aName = fc.oneof(
  { weight: 5, arbitrary: aText },
  fc.constantFrom('constructor', '__proto__', 'toString', 'a/b', 'OPENAI/b', 'openai/', '/'),
);
const aPattern = fc.oneof(
  aName,
  fc
    .array(fc.oneof(aText, fc.constant('')), { minLength: 2, maxLength: 4 })
    .map((parts) => parts.join('*')),
);
const patterns = fc.array(aPattern, { maxLength: 3 });
const IDS = ['openai', 'constructor', 'a', 'b'] as const;
const anyGroup = fc.record({
  match: fc.record({
    models: patterns,
    upstreams: fc.oneof(
      fc.constant<string[]>([]),
      some('OpenAI', 'constructor', 'a', 'a*', '*', 'b*r', '**'),
    ),
    base_urls: fc.oneof(
      fc.constant<string[]>([]),
      some('https://api.a.example', 'HTTPS://API.*', '*'),
    ),
    keys: fc.oneof(fc.constant<string[]>([]), patterns),
    operations: some('chat', '*', 'constructor'),
    paths: fc.oneof(fc.constant<string[]>([]), some('/a', '/A/b', '*/b', '*')),
  }),
  track_usage: fc.constantFrom('auto', 'always', 'off'),
});
const anyCall = fc.record({
  upstream: fc.constantFrom(...IDS),
  operation: fc.constantFrom('chat', 'constructor', 'files'),
  keyIds: fc.array(aName, { maxLength: 3 }),
  model: fc.option(fc.oneof(aName, fc.constant(''))),
  path: fc.option(fc.constantFrom('/a', '/a/B/', '/c')),
});

/** Matches as the documentation says it: a star is any text, everything else itself, in lower case. */
function globMatches(pattern: string, name: string): boolean {
  const parts = pattern
    .toLowerCase()
    .split('*')
    .map((part) => part.replace(/[.+?^${}()|[\]\\/]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(name.toLowerCase());
}

const anyMatches = (all: readonly string[], name: string) =>
  all.some((pattern) => globMatches(pattern, name));

/** Whether a group is for a call, field by field. */
function isFor({ match }: IndexGroup, call: RoutedCall): boolean {
  const {
    models = [],
    upstreams = [],
    base_urls: baseUrls = [],
    keys = [],
    operations = [],
    paths = [],
  } = match ?? {};
  const urls = baseUrls.flatMap((url) => [url.replace(/\/+$/, ''), `${url.replace(/\/+$/, '')}/*`]);
  const { baseUrl, openaiAt, id } = call.upstream;
  const qualified = models.filter((pattern) => pattern.includes('/'));
  return (
    (upstreams.length === 0 || anyMatches(upstreams, id)) &&
    (urls.length === 0 ||
      [baseUrl, `${baseUrl}${openaiAt}`].some((url) => anyMatches(urls, url))) &&
    (operations.length === 0 || anyMatches(operations, call.operation)) &&
    (paths.length === 0 ||
      (call.path !== null && anyMatches(paths, call.path.replace(/\/$/, '')))) &&
    (keys.length === 0 || call.keyIds.some((key) => anyMatches(keys, key))) &&
    (models.length === 0 ||
      (call.model !== null &&
        (anyMatches(models, call.model) || anyMatches(qualified, `${id}/${call.model}`))))
  );
}

test('a call is placed in the groups whose every field is for it, whatever they are called', () => {
  const property = fc.property(
    fc.array(anyGroup, { maxLength: 10 }),
    fc.array(anyCall, { minLength: 1, maxLength: 6 }),
    (given, calls) => {
      const groups = given.map((group, at) => ({ ...group, name: `g${at}` }));
      const routes = compileRoutes(aConfig({ groups }), byId());
      const upstreams = new Map(IDS.map((id) => [id, anUpstream(id)]));
      for (const { upstream: id, ...rest } of calls) {
        const upstream = upstreams.get(id) ?? anUpstream(id);
        const call = aCallOf(upstream, rest);
        const expected = groups.filter((group) => isFor(group, call)).map(({ name }) => name);
        const placed = routes.place(call).filter(({ config }) => config !== null);
        expect(placed.map(({ group }) => group).toSorted()).toEqual(expected.toSorted());
      }
    },
  );
  fc.assert(property, { numRuns: 2_000 });
});
