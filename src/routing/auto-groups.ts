import type { AssumedLimit } from '../contract/rpc/group-rpc.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import {
  knownLimitFor,
  knownLimitsOf,
  UNKNOWN_LIMIT,
  type KnownLimit,
} from '../providers/known-limits.ts';
import { providerOfUpstream } from '../providers/provider-of.ts';

/** A group that Headgate makes by itself. */
export interface AutoGroup {
  readonly name: string;
  readonly assumed: AssumedLimit;
  /** It stands for some models of the upstream, and not for the rest of them. */
  readonly isOfModels: boolean;
}

/** All models of one row of the table share a group; the rest of an upstream's models share one too. */
export function autoGroupOf(upstream: Upstream, model: string | null): AutoGroup {
  return groupOfRow(upstream, knownLimitFor(providerOfUpstream(upstream), model));
}

/** The automatic group of that name. Null: no call can ever belong to it. */
export function autoGroupNamed(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): AutoGroup | null {
  return autoGroupsNamedBy(name, upstreams).find((group) => group.name === name) ?? null;
}

/** The automatic groups of the upstream that a name speaks of. */
export function autoGroupsNamedBy(
  name: string,
  upstreams: ReadonlyMap<string, Upstream>,
): AutoGroup[] {
  const [id = ''] = name.slice(AUTO_PREFIX.length).split('/');
  const upstream = name.startsWith(AUTO_PREFIX) ? upstreams.get(id) : undefined;
  if (upstream === undefined) return [];
  const rows = knownLimitsOf(providerOfUpstream(upstream));
  const ofModels = rows.filter(({ modelPrefix }) => modelPrefix !== '');
  return [autoGroupOf(upstream, null), ...ofModels.map((row) => groupOfRow(upstream, row))];
}

function groupOfRow({ id }: Upstream, row: KnownLimit | null): AutoGroup {
  const models = row === null ? '' : row.modelPrefix;
  return {
    name: `${AUTO_PREFIX}${id}${models === '' ? '' : `/${models}`}`,
    assumed:
      row === null
        ? { slotsMax: UNKNOWN_LIMIT, source: 'unknown' }
        : { slotsMax: row.maxConcurrency, source: 'built_in' },
    isOfModels: models !== '',
  };
}
