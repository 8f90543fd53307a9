import { ticked } from '../field-error.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';

/** Maximum upstreams that a warning names. */
const NAMED_MAX = 3;

/** Values of `partition_by` that separate callers' own provider keys. */
const BY_KEYS = ['api_key', 'caller'];

/**
 * Warns if a change makes a group count calls with several callers' own provider keys together. Each of these keys has
 * its own limits at its provider. Unchanged groups cause no warning.
 */
export function ownKeyWarnings(
  before: Config,
  config: Config,
  upstreamsOfConfig: (config: Config) => ReadonlyMap<string, Upstream>,
): string[] {
  const earlier = new Map(before.groups.map((group) => [group.name, group]));
  const [then, now] = [upstreamsOfConfig(before), upstreamsOfConfig(config)];
  return config.groups.flatMap((group) => {
    const covered = coveredBy(group, config, now);
    const was = earlier.get(group.name);
    const known = new Set(was === undefined ? [] : coveredBy(was, before, then));
    const isSame = was !== undefined && relevant(was) === relevant(group);
    if (covered.length === 0 || (isSame && covered.every((id) => known.has(id)))) return [];
    const named = ticked(covered.slice(0, NAMED_MAX));
    const more = covered.length > NAMED_MAX ? ` and ${covered.length - NAMED_MAX} more` : '';
    return [
      `Group \`${group.name}\` counts calls with callers' own provider keys for ${named}${more} together, but each ` +
        'key has its own limits at the provider. Set `partition_by: ["api_key"]`, unless all callers share one key.',
    ];
  });
}

/** Returns the upstreams of a group that use callers' own keys. With members, such keys have separate partitions. */
function coveredBy(
  group: GroupConfig,
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  if (group.members.length > 0 || BY_KEYS.some((by) => group.partition_by.includes(by))) return [];
  const isNamed = namesUpstreams(group);
  // The upstreams of a model are unknown here.
  if (!isNamed && group.match.models.length > 0) return [];
  const configured = new Set(config.upstreams.map(({ id }) => id));
  return upstreamsOf(group, upstreams)
    .filter(({ id, secret, isKeyless }) => {
      return secret === null && !isKeyless && (isNamed || configured.has(id));
    })
    .map(({ id }) => id);
}

function relevant({ match, partition_by, members }: GroupConfig): string {
  return JSON.stringify([match, partition_by, members]);
}
