import type { GroupConfig } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { Lane } from '../core/words/ticket.ts';
import { METHODS_WITH_BODY } from '../contract/http.ts';
import { readingsOf } from '../upstream/operation/readings.ts';
import { DIALECT_DEFAULTS } from '../providers/catalog.ts';
import { countsTokens } from './group-limits.ts';
import { compileGlobs, PatternIndex } from './glob.ts';
import { hasMembers } from './members.ts';

/**
 * Which groups a call matches. Each group is compiled once per version of the configuration, and an index finds the
 * groups of a call without comparing each.
 */

/**
 * Degrees of how narrow a group is. Only the group itself counts, never the rest of the configuration, because the rank
 * of a group may not change while the group exists.
 */
const RANKS = ['tenant', 'model', 'upstream', 'upstreams', 'global'] as const;

type Rank = (typeof RANKS)[number];

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

function inOrder(groups: readonly CompiledGroup[], found: ReadonlySet<number>): CompiledGroup[] {
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

/** The part of a call that is known before its body is read. */
interface UnreadCall {
  readonly operation: string;
  readonly keyIds: readonly string[];
  /** null if no group has paths, or for any call of the operation. */
  readonly at: CalledAt | null;
}

/** Joint properties of the groups of a call before its model is known. */
export interface BeforeModel {
  /** The greatest use of the model by any of the groups. */
  readonly modelUse: ModelUse;
  /** Whether one of the groups replaces the automatic group, whatever the model. */
  readonly isReplaced: boolean;
  readonly keepsAlive: boolean;
}

type Facts = (group: CompiledGroup) => BeforeModel;

const NOTHING: BeforeModel = { modelUse: 'none', isReplaced: false, keepsAlive: false };

const USES: readonly ModelUse[] = ['none', 'place', 'counts'];

/**
 * Index of the groups of an upstream by the client's keys, or else by model, so that a call is not compared with every
 * group. It returns the same groups in the same order as a search through all of them.
 */
export class GroupIndex {
  readonly #groups: readonly CompiledGroup[];
  readonly #facts: Facts;
  readonly #byKey = new PatternIndex();
  readonly #byModel = new PatternIndex();
  /** Groups that neither index contains. */
  readonly #others: number[] = [];
  /** Groups for all clients and all paths. Their properties are cached by operation, of which there are few. */
  readonly #forAll: readonly CompiledGroup[];
  readonly #factsByOperation = new Map<string, BeforeModel>();
  /** Groups for some keys that the index by key does not contain, and groups for some paths. */
  readonly #forSome: readonly CompiledGroup[];

  /** @param groups the narrowest first */
  constructor(groups: readonly CompiledGroup[], facts: Facts) {
    this.#groups = groups;
    this.#facts = facts;
    for (const [entry, { config }] of groups.entries()) {
      const { keys, models } = config.match;
      if (PatternIndex.takes(keys)) this.#byKey.add(keys, entry);
      else if (PatternIndex.takes(models)) this.#byModel.add(models, entry);
      else this.#others.push(entry);
    }
    const isForAll = ({ config, matchesPath }: CompiledGroup): boolean =>
      config.match.keys.length === 0 && matchesPath === null;
    this.#forAll = groups.filter(isForAll);
    this.#forSome = groups.filter(
      (group) => !isForAll(group) && !PatternIndex.takes(group.config.match.keys),
    );
  }

  matching(call: UnreadCall, model: ModelNames): CompiledGroup[] {
    const found = new Set(this.#others);
    this.#findByKeys(call.keyIds, found);
    for (const name of model.names) {
      this.#byModel.find(name, found);
      this.#byModel.find(`${model.upstream}/${name}`, found);
    }
    return inOrder(this.#groups, found).filter(
      (group) => takes(group, call) && (group.matchesModel === null || group.matchesModel(model)),
    );
  }

  /** Returns the joint properties of all groups that the call may match with some model, and of its `own` groups. */
  beforeModel(call: UnreadCall, own: readonly CompiledGroup[]): BeforeModel {
    const found = new Set<number>();
    this.#findByKeys(call.keyIds, found);
    const some = [...inOrder(this.#groups, found), ...this.#forSome].filter((group) =>
      takes(group, call),
    );
    return joined([this.#ofAll(call.operation), ...[...own, ...some].map(this.#facts)]);
  }

  #ofAll(operation: string): BeforeModel {
    const known = this.#factsByOperation.get(operation);
    if (known !== undefined) return known;
    const groups = this.#forAll.filter((group) => group.matchesOperation(operation));
    const made = joined(groups.map(this.#facts));
    this.#factsByOperation.set(operation, made);
    return made;
  }

  #findByKeys(keyIds: readonly string[], found: Set<number>): void {
    for (const id of keyIds) this.#byKey.find(id, found);
  }
}

/** Whether a group takes a call, apart from its model. */
export function takes(group: CompiledGroup, { operation, keyIds, at }: UnreadCall): boolean {
  const { matchesPath } = group;
  if (!group.matchesOperation(operation) || !group.matchesCaller(keyIds)) return false;
  return matchesPath === null || (at !== null && matchesPath(at));
}

export function greaterUse(a: ModelUse, b: ModelUse): ModelUse {
  return USES.indexOf(a) > USES.indexOf(b) ? a : b;
}

function joined(all: readonly BeforeModel[]): BeforeModel {
  return all.reduce(
    (a, b) => ({
      modelUse: greaterUse(a.modelUse, b.modelUse),
      isReplaced: a.isReplaced || b.isReplaced,
      keepsAlive: a.keepsAlive || b.keepsAlive,
    }),
    NOTHING,
  );
}

/** Method and path of a call for groups with paths: the path as sent, and as servers may resolve it. */
export interface CalledAt {
  readonly method: string;
  readonly paths: readonly string[];
}

/** Whether some reading of a path matches. null if the group has no paths and takes calls by any. */
type PathTest = ((at: CalledAt) => boolean) | null;

type PathRule = Pick<GroupConfig['match'], 'paths' | 'methods'>;

export function namesPaths({ match }: { readonly match: PathRule }): boolean {
  return match.paths.length > 0;
}

export function calledAt(method: string, path: string): CalledAt {
  const plain = withoutEnd(path);
  return { method, paths: [...new Set([plain, ...readingsOf(plain).map(withoutEnd)])] };
}

/** Compiles the paths of a group with their methods. The default is all methods with a body. */
export function compilePaths({ paths, methods }: PathRule): PathTest {
  if (paths.length === 0) return null;
  const isNamed = compileGlobs(paths);
  const taken = new Set<string>(methods.length === 0 ? METHODS_WITH_BODY : methods);
  return (at) => taken.has(at.method) && at.paths.some(isNamed);
}

/** Removes trailing slashes, which servers ignore. A regular expression would take quadratic time over many of them. */
function withoutEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return end === 0 ? '/' : path.slice(0, end);
}

/** Compiles the mapping of an upstream's model names to their canonical names, in lower case. */
export function compileCanonical(upstream: Upstream): (model: string | null) => string | null {
  const aliases = new Map(
    Object.entries(upstream.aliases).map(([alias, model]) => [alias.toLowerCase(), model]),
  );
  const { modelPrefix } = DIALECT_DEFAULTS[upstream.dialect];
  return (model) => {
    if (model === null) return null;
    const sent = model.toLowerCase();
    const name = modelPrefix === undefined ? sent : sent.replace(modelPrefix, '');
    return (aliases.get(sent) ?? aliases.get(name) ?? name).toLowerCase();
  };
}

/** Returns the names by which a model may be matched: the name in the request, and its canonical name. */
export function modelNames(
  upstream: Upstream,
  sent: string | null,
  canonical: string | null,
): ModelNames {
  const names = [sent?.toLowerCase() ?? null, canonical].filter((name) => name !== null);
  return { upstream: upstream.id, names: [...new Set(names)] };
}
