import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { AssumedLimit } from '../contract/rpc/group-rpc.ts';
import type { OnSaturated } from '../contract/config/reactions.ts';
import { limitGroups } from './key-groups.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { Lane } from '../core/words/ticket.ts';
import { providerOf } from '../providers/index.ts';
import { limitsOfModels } from '../providers/published-limits.ts';
import { AUTO_PREFIX, OVERFLOW_PARTITION } from '../contract/pool-name.ts';
import { autoGroupOf } from './auto-groups.ts';
import { inForce } from './everything-paused.ts';
import { isAutomatic, matchingGroups } from './configured-auto-groups.ts';
import { greaterUse, GroupIndex, takes, type BeforeModel } from './group-index.ts';
import {
  autoRank,
  compareRanked,
  compileGroups,
  groupsByUpstream,
  type CompiledGroup,
  type ModelNames,
  type ModelUse,
} from './group-match.ts';
import { byTier, hasMembers, hasRouteIn, membersOf } from './members.ts';
import { compileCanonical, modelNames } from './model-names.ts';
import { isOwnPartition, partitionOf } from './partition.ts';
import { calledAt, namesPaths, type CalledAt } from './path-match.ts';
import { longestTimeoutMs } from './lane-timeouts.ts';

/** A call as it is known before its body is read. */
interface UnreadPlacementCall {
  readonly upstream: Upstream;
  readonly operation: string;
  readonly method: string;
  /** Path behind the upstream's base URL. Null: any of its operation. */
  readonly path: string | null;
  /** Id of the caller's gateway key, and the fingerprints of the keys that it brought. */
  readonly keyIds: readonly string[];
}

/** A call that needs a slot. */
export interface RoutedCall extends UnreadPlacementCall {
  /** The model as the upstream will see it, or null where the call names none. */
  readonly model: string | null;
  /** The one who is charged. */
  readonly caller: string;
  /** Fingerprint of the key that the upstream will see; null where there is none. */
  readonly keyFingerprint: string | null;
  /** Whether that is the caller's own key. */
  readonly isOwnKey: boolean;
  /** Whether the upstream may read another key of the caller. Absent means no. */
  readonly isAmbiguousKey?: boolean;
  /** Fingerprint of the fields that may hold a key in an unknown place. Absent if there are none. */
  readonly hiddenKey?: string;
  /** Null: the key stands for itself. */
  readonly account: KeyAccount | null;
  header(name: string): string | null;
}

/** The account of a key that does not last. */
export type KeyAccount =
  /** Named by a keyed hash. `isProved`: the upstream has taken this very key for it. */
  | { readonly kind: 'known'; readonly name: string; readonly isProved: boolean }
  /** The upstream has not taken the key yet, as far as is known. `claimed`: the account that it claims, if it does. */
  | { readonly kind: 'unproved'; readonly claimed: string | null };

/** One pool that a call needs a slot of. */
export interface Placement {
  readonly group: string;
  readonly partition: string | null;
  /** Limit of an automatic group, where nobody configured one; null for others. */
  readonly assumed: AssumedLimit | null;
  /** Null for an automatic group of which nobody says anything. */
  readonly config: GroupConfig | null;
  /** Way of calls that find no room in an automatic group. Absent: nobody says. */
  readonly onSaturated?: OnSaturated;
  /** It stands for something of a provider, so what the provider says is about it. */
  readonly isOfProvider: boolean;
  /** It is the pool of a key whose account is to be found out, by one call at a time. Absent: no. */
  readonly isUnproved?: true;
  /** Lane that the group puts the call's model into, if it has a rule for it. */
  readonly ruledLane: Lane | null;
}

/** Maximum groups of a call: one that matches more is refused. */
export const GROUPS_PER_CALL_MAX = 4;

/** How the groups of a call name its path: not at all, as one of the readings that servers have of it, or in all of them. */
type NamedPath = 'no' | 'in a reading' | 'in all readings';

/** The way of every call at one version of the configuration. */
export interface Routes {
  /** How groups that a call may belong to name its path, so that it takes a slot whatever it asks for. */
  namedPath(call: UnreadPlacementCall): NamedPath;
  /** Uses of the call's model, in any group that it may belong to. */
  useOfModel(call: UnreadPlacementCall): ModelUse;
  /**
   * Whether all groups of a call that depend on its model allow bodies that name it by reference. `model`: the model that the
   * call's header names, if any.
   */
  allowsReferences(call: UnreadPlacementCall, model: string | null): boolean;
  /** Whether any group counts tokens or cost, or sends calls on to where the operator's key pays. */
  readonly countsSome: boolean;
  /** Whether two names are of one model at an upstream, however they are written. */
  isSameModel(upstream: Upstream, one: string, other: string): boolean;
  /** Whether some group may send comments to the call's stream while it waits. */
  mayKeepAlive(call: UnreadPlacementCall): boolean;
  /** Whether any group of the configuration does. */
  readonly keepsSomeAlive: boolean;
  /** Whether any group that is split is in a jurisdiction of its own, so that names of partitions are hashed there. */
  readonly splitsInJurisdiction: boolean;
  /** Whether any group sends calls elsewhere that find no room. */
  readonly spillsSome: boolean;
  /** Whether any group names members. */
  readonly hasMembers: boolean;
  /** Names that a model has at an upstream, in lower case: as callers write it, and what its aliases make of that. */
  namesOf(upstream: Upstream, model: string | null): readonly string[];
  /**
   * The upstream that a call of a model goes to which a group with members takes, where nothing else names one: that of
   * the member which comes first, among those that serve the call. Null: no such group takes it.
   */
  upstreamOfMember(call: CallToMember): Upstream | null;
  /**
   * Name of the secret that a member has of its own at the upstream of a call, the first one that is switched on of a group
   * that takes such calls and may be used. A call that names no model is one of any. Null: none has one.
   */
  secretOfMember(
    call: Pick<RoutedCall, 'upstream' | 'model' | 'keyIds'>,
    mayUse: (group: string) => boolean,
  ): string | null;
  /** Configured groups that stand for the upstream, or for something of it. */
  groupsOf(upstream: Upstream): readonly string[];
  /**
   * The pools of a call, narrow first: every configured group that matches, and the automatic one unless
   * a configured group is for its model, upstream or base URL. Deterministic: the order of groups in the
   * document never matters. Partitions are named by their values: `hashedPlacements` gives those in a jurisdiction
   * their pools' names.
   */
  place(call: RoutedCall): readonly Placement[];
  /**
   * The pools of a caller that names its group: that one, and those of the limits of its key and team. Null: no such group, or
   * it is not for that caller's keys.
   */
  placeIn(group: string, call: RoutedCall): readonly Placement[] | null;
}

/** A call by a model alone, whose upstream is looked for. */
interface CallToMember {
  readonly model: string;
  readonly keyIds: readonly string[];
  readonly isServedBy: (upstream: Upstream) => boolean;
}

/** Compiles the groups of a configuration, once per version. */
export function compileRoutes(config: Config, upstreams: ReadonlyMap<string, Upstream>): Routes {
  const inForceNow = config.groups.map((group) => inForce(group, config));
  const groups = compileGroups(matchingGroups(inForceNow));
  const automatic = autoGroupSettings({ ...config, groups: inForceNow });
  const groupsAt = groupsByUpstream(groups);
  const withMembers = groups.filter(({ config: group }) => hasMembers(group));
  const routesIn = new Map(
    withMembers.map((group) => [group, hasRouteIn(group.config, upstreams)] as const),
  );
  // Nothing is translated, so a call that none of its members has a route for is none of a group's.
  const hasRoute = (group: CompiledGroup, at: Upstream, path: string | null): boolean =>
    routesIn.get(group)?.(at, path) ?? true;
  const byPath = groups.filter(({ config: group }) => namesPaths(group));
  // Where nobody names any, no path is read for that.
  const atOf = ({ method, path }: UnreadPlacementCall): CalledAt | null =>
    byPath.length === 0 || path === null ? null : calledAt(method, path);
  const asked = (call: UnreadPlacementCall) => {
    const { operation, keyIds } = call;
    return { operation, keyIds, at: atOf(call) };
  };
  const compiled = new WeakMap<Upstream, UpstreamRoutes>();
  // At its first call: most isolates see few of two hundred upstreams before the next version.
  const of = (upstream: Upstream): UpstreamRoutes => {
    const known = compiled.get(upstream);
    if (known !== undefined) return known;
    const possible = groupsAt(upstream).filter((group) => hasRoute(group, upstream, null));
    const made = compileUpstream(upstream, possible, automatic);
    compiled.set(upstream, made);
    return made;
  };
  // One call has one key, so of these many only that one's is looked at.
  const ofLimits = compileGroups(limitGroups(config));
  const ofKeys = Map.groupBy(
    ofLimits.flatMap((group) => group.config.match.keys.map((id) => ({ id, group }))),
    ({ id }) => id,
  );
  const ownOf = (call: UnreadPlacementCall) =>
    ofKeys.size === 0
      ? []
      : call.keyIds.flatMap((id) => ofKeys.get(id)?.map(({ group }) => group) ?? []);
  const namesOf = (upstream: Upstream, model: string | null): ModelNames =>
    modelNames(upstream, model, of(upstream).canonical(model));
  const beforeModel = (call: UnreadPlacementCall) =>
    of(call.upstream).index.beforeModel(asked(call), ownOf(call));
  return {
    namedPath(call) {
      const at = atOf(call);
      const own = byPath.filter(
        (group) =>
          group.matchesUpstream(call.upstream) && hasRoute(group, call.upstream, call.path),
      );
      if (at === null || own.length === 0) return 'no';
      const { operation, keyIds } = call;
      const isNamed = (path: string): boolean =>
        own.some((group) => takes(group, { operation, keyIds, at: { ...at, paths: [path] } }));
      if (at.paths.every(isNamed)) return 'in all readings';
      return at.paths.some(isNamed) ? 'in a reading' : 'no';
    },
    groupsOf: (upstream) =>
      of(upstream).groups.flatMap((group) => (group.isTargeted ? [group.config.name] : [])),
    countsSome:
      [...groups, ...ofLimits, ...automatic.configured.values()].some(
        ({ modelUse }) => modelUse === 'counts',
      ) || [...automatic.saturated.values()].some(spills),
    splitsInJurisdiction: config.groups.some(
      (group) => group.jurisdiction !== null && group.partition_by.length > 0,
    ),
    spillsSome:
      config.groups.some((group) => spills(group.on_saturated)) ||
      [...automatic.saturated.values()].some(spills),
    hasMembers: withMembers.length > 0,
    namesOf: (upstream, model) => namesOf(upstream, model).names,
    upstreamOfMember({ model, keyIds, isServedBy }) {
      const possible = withMembers
        .filter((group) => group.matchesCaller(keyIds))
        .flatMap((group) =>
          membersAt(group, upstreams).filter(
            (at) => group.matchesUpstream(at) && group.matchesModel?.(namesOf(at, model)) === true,
          ),
        );
      return possible.find(isServedBy) ?? null;
    },
    secretOfMember({ upstream, model, keyIds }, mayUse) {
      const names = namesOf(upstream, model);
      for (const one of withMembers) {
        const { config: group } = one;
        if (!one.matchesUpstream(upstream) || !one.matchesCaller(keyIds)) continue;
        if (model !== null && one.matchesModel?.(names) === false) continue;
        if (!mayUse(group.name)) continue;
        const own = membersOf(group).find(
          ({ config: { upstream: id, secret, enabled } }) =>
            enabled && secret !== undefined && id === upstream.id,
        );
        if (own?.config.secret !== undefined) return own.config.secret;
      }
      return null;
    },
    keepsSomeAlive: config.groups.some((group) => keepaliveAfterMs(group) !== null),
    mayKeepAlive(call) {
      const { keepsAlive, isReplaced } = beforeModel(call);
      return keepsAlive || (!isReplaced && of(call.upstream).ofAuto.keepsAlive);
    },
    useOfModel(call) {
      const { modelUse, isReplaced } = beforeModel(call);
      return isReplaced ? modelUse : greaterUse(modelUse, of(call.upstream).ofAuto.modelUse);
    },
    allowsReferences(call, model) {
      const names = namesOf(call.upstream, model);
      const bound = of(call.upstream).groups.filter(
        (group) =>
          group.modelUse !== 'none' &&
          takes(group, asked(call)) &&
          group.matchesModel?.(names) !== false,
      );
      return (
        bound.length > 0 && bound.every(({ config: { match } }) => match.references === 'allow')
      );
    },
    isSameModel(upstream, one, other) {
      const routes = of(upstream);
      const prefix = `${upstream.id}/`;
      const [first, second] = [one, other].map((name) => {
        const isPrefixed = name.toLowerCase().startsWith(prefix);
        return routes.canonical(isPrefixed ? name.slice(prefix.length) : name);
      });
      return first === second;
    },
    placeIn(name, call) {
      const named = groups.find(({ config: group }) => group.name === name);
      if (named?.matchesCaller(call.keyIds) !== true) return null;
      const model = of(call.upstream).canonical(call.model);
      const names = modelNames(call.upstream, call.model, model);
      return [...ownOf(call), named]
        .map((group) => ({
          rank: group.rank,
          name: group.config.name,
          placement: configuredPlacement(group, call, names, model),
        }))
        .toSorted(compareRanked)
        .map(({ placement }) => placement);
    },
    place(call) {
      const routes = of(call.upstream);
      const model = routes.canonical(call.model);
      const names = modelNames(call.upstream, call.model, model);
      const ofAll = routes.index
        .matching(asked(call), names)
        .filter((group) => hasRoute(group, call.upstream, call.path));
      const matched = [...ownOf(call), ...ofAll];
      const ranked = matched.map((group) => ({
        rank: group.rank,
        name: group.config.name,
        placement: configuredPlacement(group, call, names, model),
      }));
      const isReplaced = matched.some(({ isTargeted }) => isTargeted);
      if (!isReplaced) ranked.push(automaticPlacement(call, names, model, automatic));
      return ranked.toSorted(compareRanked).map(({ placement }) => placement);
    },
  };
}

/** Lists the upstreams of a group's members that are switched on, the lowest tier first. */
function membersAt(
  { config }: CompiledGroup,
  upstreams: ReadonlyMap<string, Upstream>,
): Upstream[] {
  return byTier(membersOf(config)).flatMap(({ config: { upstream, enabled } }) =>
    enabled ? (upstreams.get(upstream) ?? []) : [],
  );
}

/** Maximum wait without a byte: Node's fetch gives up after 300 silent seconds. */
const SILENT_WAIT_MAX_MS = 240_000;
const SILENCE_ENDS_MS = 200_000;

/** Tells from when on a group sends comments to streams that wait; null: never. */
export function keepaliveAfterMs(config: GroupConfig): number | null {
  const { after_ms: configured } = config.queue.keepalive;
  if (configured !== null) return configured;
  return keepaliveForWaitMs(longestTimeoutMs(config));
}

/** Tells from when on comments are sent to a stream that may wait so long; null: never. */
export function keepaliveForWaitMs(timeoutMs: number): number | null {
  return timeoutMs > SILENT_WAIT_MAX_MS ? SILENCE_ENDS_MS : null;
}

function configuredPlacement(
  group: CompiledGroup,
  call: RoutedCall,
  names: ModelNames,
  model: string | null,
): Placement {
  const { config, isTargeted } = group;
  return {
    group: config.name,
    partition: partitionOf(config.partition_by, {
      keyFingerprint: call.keyFingerprint,
      caller: call.caller,
      model,
      upstream: call.upstream,
      header: (name) => call.header(name),
    }),
    assumed: null,
    config,
    isOfProvider: isTargeted,
    ruledLane: ruledLane(group, names),
  };
}

/** Finds the lane that a group puts a model into, if it has a rule for it. */
function ruledLane({ laneRules }: CompiledGroup, names: ModelNames): Lane | null {
  return laneRules.find((rule) => rule.matches(names))?.lane ?? null;
}

/** The part of the routes that depends on the upstream alone. */
interface UpstreamRoutes {
  /** Groups that calls to it may match, the narrowest first. */
  readonly groups: readonly CompiledGroup[];
  readonly index: GroupIndex;
  /** Finds the model that a name stands for. */
  readonly canonical: (model: string | null) => string | null;
  /** All that its automatic groups say of calls that no other group takes away from them. */
  readonly ofAuto: Pick<BeforeModel, 'modelUse' | 'keepsAlive'>;
}

function compileUpstream(
  upstream: Upstream,
  groups: readonly CompiledGroup[],
  automatic: AutoGroupSettings,
): UpstreamRoutes {
  return {
    groups,
    index: new GroupIndex(groups, factsOf),
    canonical: compileCanonical(upstream),
    ofAuto: factsOfAuto(upstream, automatic),
  };
}

/** Tells what the automatic groups of an upstream say before it is known which of them a call is in. */
function factsOfAuto(
  upstream: Upstream,
  { configured, saturated }: AutoGroupSettings,
): UpstreamRoutes['ofAuto'] {
  const own = `${AUTO_PREFIX}${upstream.id}`;
  const isOwn = (name: string): boolean => name === own || name.startsWith(`${own}/`);
  const said = [...configured.values()].filter(({ config }) => isOwn(config.name)).map(factsOf);
  const isSplit = limitsOfModels(providerOf(upstream)).length > 0;
  const goesOn = [...saturated].some(([name, does]) => isOwn(name) && spills(does));
  const least: ModelUse = goesOn ? 'counts' : isSplit ? 'place' : 'none';
  return {
    modelUse: said.map(({ modelUse }) => modelUse).reduce(greaterUse, least),
    keepsAlive: said.some(({ keepsAlive }) => keepsAlive),
  };
}

/** Tells what a group says of its calls before their model is known. */
function factsOf({ config, modelUse, isTargeted, matchesModel }: CompiledGroup): BeforeModel {
  return {
    modelUse,
    // One that is for the upstream whatever the model takes the automatic group's place for certain.
    isReplaced: isTargeted && matchesModel === null,
    keepsAlive: keepaliveAfterMs(config) !== null,
  };
}

/** All that somebody says of automatic groups, by their names. */
interface AutoGroupSettings {
  readonly configured: ReadonlyMap<string, CompiledGroup>;
  /** Ways of calls that find no room in the others. */
  readonly saturated: ReadonlyMap<string, OnSaturated>;
}

/** A configuration of an older release has no list of them. */
function autoGroupSettings({
  groups = [],
  auto_groups: all = [],
}: Partial<Config>): AutoGroupSettings {
  const configured = compileGroups(groups.filter(isAutomatic));
  return {
    configured: new Map(configured.map((group) => [group.config.name, group])),
    saturated: new Map(
      all.flatMap(({ name, on_saturated: does }) => (does === undefined ? [] : [[name, does]])),
    ),
  };
}

function spills(onSaturated: OnSaturated): boolean {
  return typeof onSaturated === 'object';
}

/** Whether all calls of a pool use one key, or keys of one account. */
export function isOfOneKey({ group, partition, config }: Placement): boolean {
  if (partition === null || partition === OVERFLOW_PARTITION) return false;
  if (group.startsWith(AUTO_PREFIX) || isOwnPartition(partition)) return true;
  return config?.partition_by.includes('api_key') === true;
}

/** Tells what becomes of a call that finds no room in a group. */
export function onSaturatedAt({ config, onSaturated }: Placement): OnSaturated {
  return config?.on_saturated ?? onSaturated ?? 'queue';
}

/**
 * The limit of a key whose account is to be found out: a call beside the account's own pool is one above its limit, and no
 * more than one.
 */
const UNPROVED: AssumedLimit = { slotsMax: 1, source: 'unknown', isUnproved: true };

function automaticPlacement(
  call: RoutedCall,
  names: ModelNames,
  model: string | null,
  { configured, saturated }: AutoGroupSettings,
) {
  const { upstream, keyFingerprint, account } = call;
  const { name, assumed, isOfModels } = autoGroupOf(upstream, model);
  const onSaturated = saturated.get(name);
  const group = configured.get(name);
  const isUnproved = account?.kind === 'unproved';
  const isSplit = upstream.keyNamesAccount || upstream.accountBy !== 'auto';
  const placement: Placement = {
    group: name,
    partition: account?.kind === 'known' ? account.name : isSplit ? keyFingerprint : null,
    assumed: isUnproved ? UNPROVED : assumed,
    config: group?.config ?? null,
    ...(onSaturated === undefined ? {} : { onSaturated }),
    isOfProvider: true,
    ...(isUnproved && { isUnproved }),
    ruledLane: group === undefined ? null : ruledLane(group, names),
  };
  return { rank: autoRank(isOfModels), name, placement };
}
