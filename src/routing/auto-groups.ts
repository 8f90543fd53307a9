import type { AssumedLimit } from '../contract/rpc/group-rpc.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { providerOf } from '../providers/index.ts';
import { knownLimitFor, limitsOfModels, UNKNOWN_LIMIT } from '../providers/published-limits.ts';
import type { PublishedLimit } from '../providers/provider.ts';

export interface AutoGroup {
  readonly name: string;
  readonly assumed: AssumedLimit;
  /** The group is for some models of the upstream only. */
  readonly isOfModels: boolean;
}

/**
 * Returns the automatic group of a call. All models with the same known limit share a group, and all other models of
 * the upstream share another one.
 */
export function autoGroupOf(upstream: Upstream, model: string | null): AutoGroup {
  return groupOfLimit(upstream, knownLimitFor(providerOf(upstream), model));
}

/** Returns the automatic group of that name. null means that no call can ever belong to it. */
export function autoGroupNamed(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): AutoGroup | null {
  return autoGroupsNamedBy(name, upstreams).find((group) => group.name === name) ?? null;
}

/** Returns all automatic groups of the upstream in the name of one. */
export function autoGroupsNamedBy(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): AutoGroup[] {
  const upstream = upstreamNamedBy(name, upstreams);
  if (upstream === null) return [];
  const ofModels = limitsOfModels(providerOf(upstream));
  return [autoGroupOf(upstream, null), ...ofModels.map((limit) => groupOfLimit(upstream, limit))];
}

/** Returns the upstream in the name of an automatic group, or null. */
export function upstreamNamedBy(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): Upstream | null {
  const [id = ''] = name.slice(AUTO_PREFIX.length).split('/');
  return (name.startsWith(AUTO_PREFIX) ? upstreams.get(id) : null) ?? null;
}

function groupOfLimit({ id }: Upstream, limit: PublishedLimit | null): AutoGroup {
  const models = limit === null ? '' : limit.modelPrefix;
  return {
    name: `${AUTO_PREFIX}${id}${models === '' ? '' : `/${models}`}`,
    assumed:
      limit === null
        ? { slotsMax: UNKNOWN_LIMIT, source: 'unknown' }
        : { slotsMax: limit.maxConcurrency, source: 'built_in' },
    isOfModels: models !== '',
  };
}
