import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { AssumedLimit } from '../contract/rpc/group-rpc.ts';
import type { OnSaturated } from '../contract/config/members.ts';
import {
  limitGroups,
  autoGroupOf,
  inForce,
  isAutomatic,
  matchingGroups,
} from './implied-groups.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { Lane } from '../core/words/ticket.ts';
import { providerOf } from '../providers/catalog.ts';
import { limitsOfModels } from '../providers/limits.ts';
import { AUTO_PREFIX, OVERFLOW_PARTITION } from '../contract/pool-name.ts';
import {
  greaterUse,
  GroupIndex,
  takes,
  autoRank,
  compareRanked,
  compileGroups,
  groupsByUpstream,
  compileCanonical,
  modelNames,
  calledAt,
  namesPaths,
  type BeforeModel,
  type CompiledGroup,
  type ModelNames,
  type ModelUse,
  type CalledAt,
} from './group-match.ts';
import { byTier, hasMembers, hasRouteIn, membersOf } from './members.ts';
import { isOwnPartition, partitionOf } from './pool.ts';
import { longestTimeoutMs } from './group-limits.ts';

interface UnreadPlacementCall {
  readonly upstream: Upstream;
  readonly operation: string;
  readonly method: string;
  /** Path below the upstream's base URL. null for any path of the operation. */
  readonly path: string | null;
  /** Id of the client's gateway key, and fingerprints of the keys in the request. */
  readonly keyIds: readonly string[];
}

/** A call that needs a slot. */
export interface RoutedCall extends UnreadPlacementCall {
  /** The model as the upstream receives it. null if the call has none. */
  readonly model: string | null;
  /** The client that is charged. */
  readonly caller: string;
  /** Fingerprint of the key that the upstream receives, or null. */
  readonly keyFingerprint: string | null;
  /** Whether that key is the client's own. */
  readonly isOwnKey: boolean;
  /** Whether the upstream may read another key in the request. Absent means no. */
  readonly isAmbiguousKey?: boolean;
  /** Fingerprint of the fields that may contain a key in an unknown place. Absent if there are none. */
  readonly hiddenKey?: string;
  /** null if the key stands for itself. */
  readonly account: KeyAccount | null;
  header(name: string): string | null;
}

/** The account of a temporary key. */
export type KeyAccount =
  /** The name is a keyed hash. `isProved`: the upstream has verified this key for that account. */
  | { readonly kind: 'known'; readonly name: string; readonly isProved: boolean }
  /** The upstream has not accepted the key yet, as far as known. `claimed`: the account in the key, if any. */
  | { readonly kind: 'unproved'; readonly claimed: string | null };

/** One pool from which a call needs a slot. */
export interface Placement {
  readonly group: string;
  readonly partition: string | null;
  /** Limit of an automatic group without a configured one. null for other groups. */
  readonly assumed: AssumedLimit | null;
  /** null for an automatic group without an entry. */
  readonly config: GroupConfig | null;
  /** Reaction of an automatic group when it is saturated. Absent if it is not configured. */
  readonly onSaturated?: OnSaturated;
  /** The group belongs to a provider, so signals of the provider apply to it. */
  readonly isOfProvider: boolean;
  /** The pool of an unverified key, whose account one call at a time finds out. Absent means no. */
  readonly isUnproved?: true;
  /** Lane from the group's rule for the model, if there is one. */
  readonly ruledLane: Lane | null;
}

/** Maximum groups of a call. A call that matches more is rejected. */
export const GROUPS_PER_CALL_MAX = 4;

/**
 * Whether groups of a call match its path: not at all, in one of the ways in which servers read it, or in all of them.
 */
type NamedPath = 'no' | 'in a reading' | 'in all readings';

/** Placement of calls at one version of the configuration. */
export interface Routes {
  /** How groups of a call match its path. A matched call takes a slot, whatever its operation. */
  namedPath(call: UnreadPlacementCall): NamedPath;
  /** The greatest use of the model by any group that the call may match. */
  useOfModel(call: UnreadPlacementCall): ModelUse;
  /**
   * Whether all groups of a call that depend on its model allow bodies that name it by reference. `model` is the model
   * in the header of the call, if any.
   */
  allowsReferences(call: UnreadPlacementCall, model: string | null): boolean;
  /** Whether any group counts tokens or cost, or spills calls to where the operator's key pays. */
  readonly countsSome: boolean;
  /** Whether two names mean the same model at an upstream, apart from their spelling. */
  isSameModel(upstream: Upstream, one: string, other: string): boolean;
  /** Whether some group may send comments to the stream of the call while it is queued. */
  mayKeepAlive(call: UnreadPlacementCall): boolean;
  /** Whether any group of the configuration may send comments. */
  readonly keepsSomeAlive: boolean;
  /** Whether any split group has its own jurisdiction, where names of partitions are hashed. */
  readonly splitsInJurisdiction: boolean;
  readonly spillsSome: boolean;
  readonly hasMembers: boolean;
  /** Returns the names of a model at an upstream in lower case: the name in the request, and its canonical name. */
  namesOf(upstream: Upstream, model: string | null): readonly string[];
  /**
   * Returns the upstream for a call of a model that a group with members takes: that of the first member that serves
   * the call. null if no such group takes it.
   */
  upstreamOfMember(call: CallToMember): Upstream | null;
  /**
   * Returns the name of the secret of the first enabled member at the upstream of a call, among groups that match and
   * may be used. A call without a model matches any. null if no such member has a secret.
   */
  secretOfMember(
    call: Pick<RoutedCall, 'upstream' | 'model' | 'keyIds'>,
    mayUse: (group: string) => boolean,
  ): string | null;
  /** Returns the configured groups for the upstream, or for some of its models. */
  groupsOf(upstream: Upstream): readonly string[];
  /**
   * Returns the pools of a call, the narrowest first: every configured group that matches, and the automatic group
   * unless a configured group for the model, upstream or base URL replaces it. The order of groups in the document has
   * no effect. Partitions have their plain values here: `hashedPlacements` replaces them in a jurisdiction.
   */
  place(call: RoutedCall): readonly Placement[];
  /**
   * Returns the pools of a call that names its group: that group, and those of the limits of its key and team. null if
   * there is no such group, or if it does not match the client's keys.
   */
  placeIn(group: string, call: RoutedCall): readonly Placement[] | null;
}

/** A call of a model whose upstream is not known yet. */
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
  // Bodies are not translated, so a group takes only calls for which one of its members has a route.
  const hasRoute = (group: CompiledGroup, at: Upstream, path: string | null): boolean =>
    routesIn.get(group)?.(at, path) ?? true;
  const byPath = groups.filter(({ config: group }) => namesPaths(group));
  // Without a group that has paths, no path needs to be read.
  const atOf = ({ method, path }: UnreadPlacementCall): CalledAt | null =>
    byPath.length === 0 || path === null ? null : calledAt(method, path);
  const unread = (call: UnreadPlacementCall) => {
    const { operation, keyIds } = call;
    return { operation, keyIds, at: atOf(call) };
  };
  const compiled = new WeakMap<Upstream, UpstreamRoutes>();
  // Compiled at the first call, because most isolates see few of two hundred upstreams before the next version.
  const of = (upstream: Upstream): UpstreamRoutes => {
    const known = compiled.get(upstream);
    if (known !== undefined) return known;
    const possible = groupsAt(upstream).filter((group) => hasRoute(group, upstream, null));
    const made = compileUpstream(upstream, possible, automatic);
    compiled.set(upstream, made);
    return made;
  };
  // A call has one key, so only the groups of that key are looked up.
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
    of(call.upstream).index.beforeModel(unread(call), ownOf(call));
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
          takes(group, unread(call)) &&
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
        .matching(unread(call), names)
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

/** Returns the upstreams of a group's enabled members, the lowest tier first. */
function membersAt(
  { config }: CompiledGroup,
  upstreams: ReadonlyMap<string, Upstream>,
): Upstream[] {
  return byTier(membersOf(config)).flatMap(({ config: { upstream, enabled } }) =>
    enabled ? (upstreams.get(upstream) ?? []) : [],
  );
}

/** Maximum wait without a byte. Node's fetch aborts after 300 silent seconds. */
const SILENT_WAIT_MAX_MS = 240_000;
const SILENCE_ENDS_MS = 200_000;

/** Returns the wait after which a group sends comments to queued streams. null means never. */
export function keepaliveAfterMs(config: GroupConfig): number | null {
  const { after_ms: configured } = config.queue.keepalive;
  if (configured !== null) return configured;
  return keepaliveForWaitMs(longestTimeoutMs(config));
}

/** Returns the wait after which a stream with this time-out gets comments. null means never. */
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

/** Returns the lane from the group's rule for a model. null without a rule. */
function ruledLane({ laneRules }: CompiledGroup, names: ModelNames): Lane | null {
  return laneRules.find((rule) => rule.matches(names))?.lane ?? null;
}

interface UpstreamRoutes {
  /** Groups that calls to the upstream may match, the narrowest first. */
  readonly groups: readonly CompiledGroup[];
  readonly index: GroupIndex;
  readonly canonical: (model: string | null) => string | null;
  /** Joint properties of its automatic groups, for calls that no other group takes from them. */
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

/** Returns the joint properties of an upstream's automatic groups, before it is known which of them a call is in. */
function factsOfAuto(
  upstream: Upstream,
  { configured, saturated }: AutoGroupSettings,
): UpstreamRoutes['ofAuto'] {
  const own = `${AUTO_PREFIX}${upstream.id}`;
  const isOwn = (name: string): boolean => name === own || name.startsWith(`${own}/`);
  const facts = [...configured.values()].filter(({ config }) => isOwn(config.name)).map(factsOf);
  const isSplit = limitsOfModels(providerOf(upstream)).length > 0;
  const maySpill = [...saturated].some(([name, does]) => isOwn(name) && spills(does));
  const least: ModelUse = maySpill ? 'counts' : isSplit ? 'place' : 'none';
  return {
    modelUse: facts.map(({ modelUse }) => modelUse).reduce(greaterUse, least),
    keepsAlive: facts.some(({ keepsAlive }) => keepsAlive),
  };
}

function factsOf({ config, modelUse, isTargeted, matchesModel }: CompiledGroup): BeforeModel {
  return {
    modelUse,
    // A group for the upstream and any model always replaces the automatic group.
    isReplaced: isTargeted && matchesModel === null,
    keepsAlive: keepaliveAfterMs(config) !== null,
  };
}

interface AutoGroupSettings {
  readonly configured: ReadonlyMap<string, CompiledGroup>;
  /** Reactions of groups without an entry when they are saturated. */
  readonly saturated: ReadonlyMap<string, OnSaturated>;
}

function autoGroupSettings({
  groups,
  auto_groups: all,
}: Pick<Config, 'groups' | 'auto_groups'>): AutoGroupSettings {
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

export function onSaturatedAt({ config, onSaturated }: Placement): OnSaturated {
  return config?.on_saturated ?? onSaturated ?? 'queue';
}

/**
 * The limit of an unverified key, whose account is not known yet. A call next to the pool of its account exceeds the
 * limit of the account by one, and by no more than one.
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
