import type { GroupConfig } from '../contract/config.ts';
import type { Upstream } from '../contract/upstream.ts';
import { compileGlobs } from './glob.ts';

/**
 * How narrow a group is. Only the group itself counts, never what else is configured, because the
 * rank of a group may not change while it lives.
 */
const RANKS = ['tenant', 'model', 'upstream', 'upstreams', 'global'] as const;

/** The names under which a call's model may be matched, in lower case. */
export interface ModelNames {
  readonly upstream: string;
  /** As the caller sent it, and what the upstream's aliases make of it. */
  readonly names: readonly string[];
}

/** A group with its patterns compiled. A field without patterns matches everything. */
export interface CompiledGroup {
  readonly config: GroupConfig;
  matchesUpstream(upstream: Upstream): boolean;
  matchesOperation(operation: string): boolean;
  /** True if one of the ids or fingerprints of the caller's keys is listed. */
  matchesCaller(keyIds: readonly string[]): boolean;
  /** Null: the group does not look at the model, so that a call without one matches too. */
  readonly matchesModel: ((model: ModelNames) => boolean) | null;
}

/** Compiles the groups of a configuration, the narrowest first, whatever their order in it. */
export function compileGroups(groups: readonly GroupConfig[]): CompiledGroup[] {
  return groups.toSorted(narrowFirst).map(compileGroup);
}

/** Orders groups from narrow to wide: tenant, model, upstream, several upstreams, global; then by name. */
export function narrowFirst(a: GroupConfig, b: GroupConfig): number {
  const difference = rankOf(a) - rankOf(b);
  if (difference !== 0) return difference;
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

function rankOf({ match }: GroupConfig): number {
  const isOne = ([first, ...others]: readonly string[]) =>
    first !== undefined && others.length === 0 && !first.includes('*');
  let rank: (typeof RANKS)[number] = 'global';
  if (match.keys.length > 0) rank = 'tenant';
  else if (match.models.length > 0) rank = 'model';
  else if (isOne(match.upstreams) || isOne(match.base_urls)) rank = 'upstream';
  else if (match.upstreams.length > 0 || match.base_urls.length > 0) rank = 'upstreams';
  return RANKS.indexOf(rank);
}

function compileGroup(config: GroupConfig): CompiledGroup {
  const { match } = config;
  const upstreams = compileField(match.upstreams);
  const baseUrls = compileField(baseUrlGlobs(match.base_urls));
  const operations = compileField(match.operations);
  const keys = compileField(match.keys);
  return {
    config,
    matchesUpstream: (upstream) => upstreams(upstream.id) && baseUrlsOf(upstream).some(baseUrls),
    matchesOperation: operations,
    matchesCaller: (keyIds) => match.keys.length === 0 || keyIds.some(keys),
    matchesModel: compileModels(match.models),
  };
}

function compileField(patterns: readonly string[]): (name: string) => boolean {
  return patterns.length === 0 ? () => true : compileGlobs(patterns);
}

/**
 * A pattern with a slash may mean the upstream and the model, or a model whose own name has a
 * slash. One without a slash means the model alone: `o*` is not every model of OpenAI.
 */
function compileModels(patterns: readonly string[]): CompiledGroup['matchesModel'] {
  if (patterns.length === 0) return null;
  const bare = compileGlobs(patterns);
  const qualified = compileGlobs(patterns.filter((pattern) => pattern.includes('/')));
  return ({ upstream, names }) =>
    names.some((name) => bare(name) || qualified(`${upstream}/${name}`));
}

/** What a group's `base_urls` are compared to: operators paste the URL that their SDK takes. */
export function baseUrlsOf(upstream: Upstream): string[] {
  const ends = new Set(['', upstream.openaiAt ?? '', upstream.anthropicAt ?? '']);
  return [...ends].map((end) => upstream.baseUrl + end);
}

/** A base URL stands for itself and for everything below it. */
export function baseUrlGlobs(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    const base = pattern.replace(/\/+$/, '');
    return [base, `${base}/*`];
  });
}
