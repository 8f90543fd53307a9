import type { GroupConfig } from '../contract/config/config.ts';
import { countsTokens } from './metered.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { Lane } from '../core/words/ticket.ts';
import { compileGlobs } from './glob.ts';
import { hasMembers } from './members.ts';
import { compilePaths, type PathTest } from './path-match.ts';
import { PatternIndex } from './pattern-index.ts';

/**
 * Degrees of how narrow a group is. Only the group itself counts, never what else is configured, because the
 * rank of a group may not change while it lives.
 */
const RANKS = ['tenant', 'model', 'upstream', 'upstreams', 'global'] as const;

export type Rank = (typeof RANKS)[number];

/** The names under which a call's model may be matched, in lower case. */
export interface ModelNames {
  readonly upstream: string;
  /** As the caller sent it, and what the upstream's aliases make of it. */
  readonly names: readonly string[];
}

/**
 * Uses that a group makes of a call's model. `place`: whether or where in it a call belongs, so that the model
 * must be found first. `counts`: prices and what is learned of tokens as well, or calls may go on to where the
 * operator's key pays for them.
 */
export type ModelUse = 'none' | 'place' | 'counts';

/** A group with its patterns compiled. A field without patterns matches everything. */
export interface CompiledGroup {
  readonly config: GroupConfig;
  readonly rank: number;
  /** It says which models, upstreams or base URLs it is for, or where its calls run, and so takes the automatic group's place. */
  readonly isTargeted: boolean;
  matchesUpstream(upstream: Upstream): boolean;
  matchesOperation(operation: string): boolean;
  readonly matchesPath: PathTest;
  /** True if one of the ids or fingerprints of the caller's keys is listed. */
  matchesCaller(keyIds: readonly string[]): boolean;
  /** Null: the group does not look at the model, so that a call without one matches too. */
  readonly matchesModel: ((model: ModelNames) => boolean) | null;
  readonly modelUse: ModelUse;
  /** In the order in which they count. */
  readonly laneRules: readonly { readonly lane: Lane; matches(model: ModelNames): boolean }[];
}

/** Compiles the groups of a configuration, the narrowest first, whatever their order in it. */
export function compileGroups(groups: readonly GroupConfig[]): CompiledGroup[] {
  return groups.toSorted(narrowFirst).map(compileGroup);
}

/** Orders groups from narrow to wide: tenant, model, upstream, several upstreams, global; then by name. */
export function narrowFirst(a: GroupConfig, b: GroupConfig): number {
  return compareRanked(
    { rank: RANKS.indexOf(rankOf(a)), name: a.name },
    { rank: RANKS.indexOf(rankOf(b)), name: b.name },
  );
}

/** Compares groups in the order in which slots of several are taken. It is the same for all calls: no deadlock. */
export function compareRanked(
  a: { readonly rank: number; readonly name: string },
  b: { readonly rank: number; readonly name: string },
): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

/** Finds the rank of an automatic group: one of some models, or of an upstream. */
export function autoRank(isOfModels: boolean): number {
  return RANKS.indexOf(isOfModels ? 'model' : 'upstream');
}

/** Lists the upstreams whose calls a group may take. */
export function upstreamsOf(
  group: Pick<GroupConfig, 'match'>,
  upstreams: ReadonlyMap<string, Upstream>,
): Upstream[] {
  const matches = compileUpstreams(group);
  return [...upstreams.values()].filter(matches);
}

/** Makes the search for the groups that may take calls of an upstream, in their order. */
export function groupsByUpstream(
  groups: readonly CompiledGroup[],
): (upstream: Upstream) => CompiledGroup[] {
  const index = new PatternIndex();
  const others: number[] = [];
  for (const [entry, { config }] of groups.entries()) {
    const ids = config.match.upstreams;
    if (PatternIndex.takes(ids)) index.add(ids, entry);
    else others.push(entry);
  }
  return (upstream) => {
    const found = new Set(others);
    index.find(upstream.id, found);
    return inOrder(groups, found).filter((group) => group.matchesUpstream(upstream));
  };
}

/** Picks groups that were found, in their order. */
export function inOrder(
  groups: readonly CompiledGroup[],
  found: ReadonlySet<number>,
): CompiledGroup[] {
  return [...found].toSorted((a, b) => a - b).flatMap((entry) => groups[entry] ?? []);
}

/** Tells whether a group names the upstreams that it is for, one way or the other. */
export function namesUpstreams({ match }: Pick<GroupConfig, 'match'>): boolean {
  return match.upstreams.length + match.base_urls.length > 0;
}

/** Tells how narrow a group is, by what it matches. */
export function rankOf({ match }: Pick<GroupConfig, 'match'>): Rank {
  const isOne = ([first, ...others]: readonly string[]) =>
    first !== undefined && others.length === 0 && !first.includes('*');
  if (match.keys.length > 0) return 'tenant';
  if (match.models.length > 0) return 'model';
  if (isOne(match.upstreams) || isOne(match.base_urls)) return 'upstream';
  return match.upstreams.length > 0 || match.base_urls.length > 0 ? 'upstreams' : 'global';
}

function compileGroup(config: GroupConfig): CompiledGroup {
  const { match } = config;
  const operations = compileField(match.operations);
  const keys = compileField(match.keys);
  return {
    config,
    rank: RANKS.indexOf(rankOf(config)),
    isTargeted: match.models.length > 0 || namesUpstreams(config) || hasMembers(config),
    matchesUpstream: compileUpstreams(config),
    matchesOperation: operations,
    matchesPath: compilePaths(match),
    matchesCaller: (keyIds) => match.keys.length === 0 || keyIds.some(keys),
    matchesModel: compileModels(match.models),
    modelUse: modelUseOf(config),
    laneRules: config.queue.lane_rules.map(({ models, lane }) => ({
      lane,
      matches: compileModels(models) ?? (() => false),
    })),
  };
}

/**
 * Tells what use a group makes of the model. A call must not slip past the groups of the upstream that it goes
 * on to because it began where nobody asked: so one that may go on counts, to another upstream or to a member.
 */
function modelUseOf(config: GroupConfig): ModelUse {
  if (countsTokens(config) || typeof config.on_saturated === 'object') return 'counts';
  if (hasMembers(config)) return 'counts';
  const { match, partition_by: by, queue } = config;
  const isPlaced = match.models.length > 0 || by.includes('model') || queue.lane_rules.length > 0;
  return isPlaced ? 'place' : 'none';
}

function compileUpstreams({ match }: Pick<GroupConfig, 'match'>): (upstream: Upstream) => boolean {
  const ids = compileField(match.upstreams);
  const baseUrls = compileField(baseUrlGlobs(match.base_urls));
  return (upstream) => ids(upstream.id) && baseUrlsOf(upstream).some(baseUrls);
}

function compileField(patterns: readonly string[]): (name: string) => boolean {
  return patterns.length === 0 ? () => true : compileGlobs(patterns);
}

/**
 * Compiles patterns of models. One with a slash may mean the upstream and the model, or a model whose own name
 * has a slash. One without a slash means the model alone: `o*` is not every model of OpenAI.
 */
function compileModels(patterns: readonly string[]): CompiledGroup['matchesModel'] {
  if (patterns.length === 0) return null;
  const bare = compileGlobs(patterns);
  const qualified = compileGlobs(patterns.filter((pattern) => pattern.includes('/')));
  return ({ upstream, names }) =>
    names.some((name) => bare(name) || qualified(`${upstream}/${name}`));
}

/** Lists what a group's `base_urls` are compared to: operators paste the URL that their SDK takes. */
export function baseUrlsOf(upstream: Upstream): string[] {
  const ends = new Set(['', upstream.openaiAt ?? '', upstream.anthropicAt ?? '']);
  return [...ends].map((end) => upstream.baseUrl + end);
}

/** Makes globs of base URLs: each stands for itself and for everything below it. */
export function baseUrlGlobs(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    const base = pattern.replace(/\/+$/, '');
    return [base, `${base}/*`];
  });
}
