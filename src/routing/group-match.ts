import type { GroupConfig } from '../contract/config/config.ts';
import { countsTokens } from './metered.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { Lane } from '../core/words/ticket.ts';
import { compileGlobs } from './glob.ts';
import { hasMembers } from './members.ts';
import { compilePaths, type PathTest } from './path-match.ts';
import { PatternIndex } from './pattern-index.ts';

/**
 * Degrees of how narrow a group is. Only the group itself counts, never the rest of the configuration, because the rank
 * of a group may not change while the group exists.
 */
const RANKS = ['tenant', 'model', 'upstream', 'upstreams', 'global'] as const;

export type Rank = (typeof RANKS)[number];

/** Names by which the model of a call may be matched, in lower case. */
export interface ModelNames {
  readonly upstream: string;
  /** The name in the request, and the model that the upstream's aliases map it to. */
  readonly names: readonly string[];
}

/**
 * How a group uses the model of a call. `place`: to decide whether a call belongs to it or in which pool, so the model
 * must be found first. `counts`: also for prices and token counts, or for calls that may spill to where the operator's
 * key pays.
 */
export type ModelUse = 'none' | 'place' | 'counts';

/** A group with its patterns compiled. A field without patterns matches everything. */
export interface CompiledGroup {
  readonly config: GroupConfig;
  readonly rank: number;
  /**
   * Whether it matches by models, upstreams or base URLs, or has members. Such a group replaces the automatic group.
   */
  readonly isTargeted: boolean;
  matchesUpstream(upstream: Upstream): boolean;
  matchesOperation(operation: string): boolean;
  readonly matchesPath: PathTest;
  /** True if one of the ids or fingerprints of the client's keys is listed. */
  matchesCaller(keyIds: readonly string[]): boolean;
  /** null if the group matches any model, also calls without one. */
  readonly matchesModel: ((model: ModelNames) => boolean) | null;
  readonly modelUse: ModelUse;
  /** The first matching rule applies. */
  readonly laneRules: readonly { readonly lane: Lane; matches(model: ModelNames): boolean }[];
}

/** Compiles groups, and sorts them from the narrowest to the widest, whatever their order in the configuration. */
export function compileGroups(groups: readonly GroupConfig[]): CompiledGroup[] {
  return groups.toSorted(narrowFirst).map(compileGroup);
}

/**
 * Compares groups from narrow to wide: tenant, model, upstream, several upstreams, global. Equal ranks sort by name.
 */
export function narrowFirst(a: GroupConfig, b: GroupConfig): number {
  return compareRanked(
    { rank: RANKS.indexOf(rankOf(a)), name: a.name },
    { rank: RANKS.indexOf(rankOf(b)), name: b.name },
  );
}

/**
 * Compares groups in the order in which a call acquires their slots. The order is the same for all calls: no deadlock.
 */
export function compareRanked(
  a: { readonly rank: number; readonly name: string },
  b: { readonly rank: number; readonly name: string },
): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

/** Returns the rank of an automatic group: of some models, or of an upstream. */
export function autoRank(isOfModels: boolean): number {
  return RANKS.indexOf(isOfModels ? 'model' : 'upstream');
}

export function upstreamsOf(
  group: Pick<GroupConfig, 'match'>,
  upstreams: ReadonlyMap<string, Upstream>,
): Upstream[] {
  const matches = compileUpstreams(group);
  return [...upstreams.values()].filter(matches);
}

/** Returns a function that finds the groups that may take calls of an upstream, in their order. */
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

export function inOrder(
  groups: readonly CompiledGroup[],
  found: ReadonlySet<number>,
): CompiledGroup[] {
  return [...found].toSorted((a, b) => a - b).flatMap((entry) => groups[entry] ?? []);
}

/** Whether a group matches by upstream, by id or base URL. */
export function namesUpstreams({ match }: Pick<GroupConfig, 'match'>): boolean {
  return match.upstreams.length + match.base_urls.length > 0;
}

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
 * A call that may spill to another upstream, or that a member may serve, counts from its start. Otherwise it could
 * bypass the counts of the groups of the upstream where it ends.
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
 * Compiles patterns of models. One with a slash matches the upstream and the model, or a model with a slash in its
 * name. One without a slash matches the model alone: `o*` does not match every model of OpenAI.
 */
function compileModels(patterns: readonly string[]): CompiledGroup['matchesModel'] {
  if (patterns.length === 0) return null;
  const bare = compileGlobs(patterns);
  const qualified = compileGlobs(patterns.filter((pattern) => pattern.includes('/')));
  return ({ upstream, names }) =>
    names.some((name) => bare(name) || qualified(`${upstream}/${name}`));
}

/** Returns the URLs that are compared with a group's `base_urls`. Operators paste the base URL of their SDK. */
export function baseUrlsOf(upstream: Upstream): string[] {
  const ends = new Set(['', upstream.openaiAt ?? '', upstream.anthropicAt ?? '']);
  return [...ends].map((end) => upstream.baseUrl + end);
}

/** Returns globs of base URLs. Each matches itself and every path below it. */
export function baseUrlGlobs(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    const base = pattern.replace(/\/+$/, '');
    return [base, `${base}/*`];
  });
}
