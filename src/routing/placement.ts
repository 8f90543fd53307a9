import type { Config, GroupConfig } from '../contract/config.ts';
import type { AssumedLimit } from '../contract/group-rpc.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/upstream.ts';
import { hasModelRows, knownLimitFor, UNKNOWN_LIMIT } from '../upstream/known-limits.ts';
import { compileGroups, type CompiledGroup, type ModelNames } from './group-match.ts';
import { partitionOf } from './partition.ts';

/** What is known of a call before its body is read. */
interface CallBeforeModel {
  readonly upstream: Upstream;
  readonly operation: string;
  /** Id of the caller's gateway key, and the fingerprints of the keys that it brought. */
  readonly keyIds: readonly string[];
}

/** A call that needs a slot. */
export interface RoutedCall extends CallBeforeModel {
  /** The model as the upstream will see it, or null where the call names none. */
  readonly model: string | null;
  /** Who is charged. */
  readonly caller: string;
  /** Fingerprint of the key that the upstream will see; null where there is none. */
  readonly keyFingerprint: string | null;
  header(name: string): string | null;
}

/** The pool that a call gets its slot from. */
export interface Placement {
  readonly group: string;
  readonly partition: string | null;
  /** Limit of an automatic group; null for a configured one. */
  readonly assumed: AssumedLimit | null;
  /** Null for an automatic group. */
  readonly config: GroupConfig | null;
  /** Wider groups that the call matches too, and that do not count it for now. */
  readonly alsoMatched: readonly string[];
}

/** The way of every call at one version of the configuration. */
export interface Routes {
  /** Whether `place` may answer differently by model, so that the model must be found first. */
  needsModel(call: CallBeforeModel): boolean;
  /** Deterministic: the order of groups in the document never matters. */
  place(call: RoutedCall): Placement;
}

/** Compiles the groups of a configuration, once per version. */
export function compileRoutes(config: Config, upstreams: ReadonlyMap<string, Upstream>): Routes {
  const groups = compileGroups(config.groups);
  const compile = (upstream: Upstream) => compileUpstream(upstream, groups);
  const compiled = new Map([...upstreams.values()].map((each) => [each, compile(each)]));
  const of = (upstream: Upstream) => compiled.get(upstream) ?? compile(upstream);
  return {
    needsModel(call) {
      const routes = of(call.upstream);
      const candidates = candidatesFor(routes, call);
      // A candidate that does not look at the model takes the call for certain.
      if (candidates.length === 0) return routes.isAutoSplit;
      return candidates.some(
        ({ matchesModel, config: { partition_by: by } }) =>
          matchesModel !== null || by.includes('model'),
      );
    },
    place(call) {
      const routes = of(call.upstream);
      const model = canonicalModel(routes, call.model);
      const names = modelNames(call.upstream, call.model, model);
      const [winner, ...others] = candidatesFor(routes, call)
        .filter(({ matchesModel }) => matchesModel === null || matchesModel(names))
        .map((group) => group.config);
      if (winner === undefined) return automatic(call, model);
      return {
        group: winner.name,
        partition: partitionOf(winner.partition_by, {
          keyFingerprint: call.keyFingerprint,
          caller: call.caller,
          model,
          upstream: call.upstream,
          header: (name) => call.header(name),
        }),
        assumed: null,
        config: winner,
        alsoMatched: others.map(({ name }) => name),
      };
    },
  };
}

/** What of the routes depends on the upstream alone. */
interface UpstreamRoutes {
  /** Groups that calls to it may match, the narrowest first. */
  readonly groups: readonly CompiledGroup[];
  /** By the alias in lower case. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Whether its automatic group is split by model. */
  readonly isAutoSplit: boolean;
}

function compileUpstream(upstream: Upstream, groups: readonly CompiledGroup[]): UpstreamRoutes {
  return {
    groups: groups.filter((group) => group.matchesUpstream(upstream)),
    aliases: new Map(
      Object.entries(upstream.aliases).map(([alias, model]) => [alias.toLowerCase(), model]),
    ),
    isAutoSplit: hasModelRows(upstream.id),
  };
}

/** The groups that take the call, or will if they like its model. */
function candidatesFor(routes: UpstreamRoutes, call: CallBeforeModel): readonly CompiledGroup[] {
  if (routes.groups.length === 0) return routes.groups;
  return routes.groups.filter(
    (group) => group.matchesOperation(call.operation) && group.matchesCaller(call.keyIds),
  );
}

/** The model that a name stands for, in lower case. */
function canonicalModel(routes: UpstreamRoutes, model: string | null): string | null {
  if (model === null) return null;
  const name = model.toLowerCase();
  return routes.aliases.get(name)?.toLowerCase() ?? name;
}

function modelNames(upstream: Upstream, sent: string | null, canonical: string | null): ModelNames {
  const names = [sent?.toLowerCase() ?? null, canonical].filter((name) => name !== null);
  return { upstream: upstream.id, names: [...new Set(names)] };
}

/** All models of one row of the table share a group; the rest of an upstream's models share one too. */
function automatic({ upstream, keyFingerprint }: RoutedCall, model: string | null): Placement {
  const row = knownLimitFor(upstream.id, model);
  const group = `${AUTO_PREFIX}${upstream.id}`;
  return {
    group: row === null || row.modelPrefix === '' ? group : `${group}/${row.modelPrefix}`,
    partition: upstream.keyNamesAccount ? keyFingerprint : null,
    assumed:
      row === null
        ? { slotsMax: UNKNOWN_LIMIT, source: 'unknown' }
        : { slotsMax: row.maxConcurrency, source: 'built_in' },
    config: null,
    alsoMatched: [],
  };
}
