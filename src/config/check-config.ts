import type { Config } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { callersAtOnce } from '../routing/overlaps.ts';
import { GROUPS_PER_CALL_MAX } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import {
  adminKeyErrors,
  leaseWarnings,
  originErrors,
  originWarnings,
  teamWarnings,
} from './check/access.ts';
import {
  autoGroupErrors,
  configuredAutoErrors,
  duplicates,
  groupErrors,
  groupWarnings,
  silenceWarnings,
  laneWarnings,
  jurisdictionWarnings,
  budgetWarnings,
  modelWarnings,
} from './check/groups.ts';
import {
  sessionWarnings,
  operationErrors,
  unknownUpstream,
  accountErrors,
  accountWarnings,
  addressWarnings,
  secretWarnings,
  upstreamErrors,
  upstreamWarnings,
  webhookErrors,
} from './check/upstreams.ts';
import { memberErrors, memberWarnings } from './check/members.ts';
import { spillErrors } from './check/spill.ts';
import { ticked, type FieldError } from './field-error.ts';

export interface ConfigCheck {
  /** Contradictions. A configuration with any of them is rejected. */
  readonly errors: readonly FieldError[];
  /** Surprises for an operator, in full sentences. */
  readonly warnings: readonly string[];
}

export interface CheckOptions {
  /** Whether upstreams may have private addresses and plain http, as in a self-hosted Headgate. */
  readonly privateUpstreams: boolean;
  /** Jurisdiction of the directory and the feed, or null. */
  readonly jurisdiction: string | null;
}

/**
 * Finds what the schema cannot check: contradictions between the parts of a configuration, and addresses that must not
 * be called. No message contains a credential.
 */
export function checkConfig(
  config: Config,
  builtIn: readonly Upstream[],
  options: CheckOptions,
): ConfigCheck {
  const upstreams = resolveUpstreams(config, builtIn);
  const builtInIds = new Set(builtIn.map(({ id }) => id));
  return {
    errors: [
      ...duplicates('upstreams', 'id', config.upstreams),
      ...duplicates('groups', 'name', config.groups),
      ...duplicates('auto_groups', 'name', config.auto_groups),
      ...autoGroupErrors(config, upstreams),
      ...configuredAutoErrors(config, upstreams),
      ...duplicates('keys', 'id', config.keys),
      ...duplicates('keys', 'hash', config.keys),
      ...duplicates('teams', 'id', config.teams),
      ...duplicates('admin_keys', 'id', config.admin_keys),
      ...duplicates('admin_keys', 'hash', config.admin_keys),
      ...adminKeyErrors(config),
      ...config.upstreams.flatMap((entry, index) => [
        ...upstreamErrors(entry, `upstreams[${index}]`, builtInIds, options),
        ...accountErrors(entry, `upstreams[${index}]`),
      ]),
      ...config.groups.flatMap((group, index) => [
        ...groupErrors(group, `groups[${index}]`, upstreams),
        ...memberErrors(group, `groups[${index}]`, upstreams),
      ]),
      ...spillErrors(config, upstreams),
      ...operationErrors(config),
      ...defaultErrors(config, upstreams),
      ...webhookErrors(config, options),
      ...originErrors(config),
    ],
    warnings: [
      ...config.upstreams.flatMap((entry) => upstreamWarnings(entry, upstreams.get(entry.id))),
      ...addressWarnings(config, options),
      ...secretWarnings(config, upstreams),
      ...accountWarnings(config),
      ...config.groups.flatMap((group) => groupWarnings(group, [...upstreams.values()])),
      ...config.groups.flatMap(silenceWarnings),
      ...memberWarnings(config, upstreams),
      ...jurisdictionWarnings(config, options),
      ...config.groups.flatMap((group) => budgetWarnings(group, config, upstreams)),
      ...modelWarnings(config, upstreams),
      ...teamWarnings(config),
      ...leaseWarnings(config),
      ...originWarnings(config),
      ...sessionWarnings(config, upstreams),
      ...laneWarnings(config),
      ...manyKeysWarnings(config),
    ],
  };
}

function defaultErrors(
  { default_upstream: id }: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  if (id === null || upstreams.has(id)) return [];
  return [{ path: 'default_upstream', message: unknownUpstream(id, upstreams.keys()) }];
}

/** Warns of groups that one call may match, if they are more than the maximum. Two matching groups are normal. */
function manyKeysWarnings(config: Config): string[] {
  const names = callersAtOnce(config, GROUPS_PER_CALL_MAX);
  if (names === null) return [];
  const listed = ticked(names);
  const automatic = names.length > GROUPS_PER_CALL_MAX ? '' : ' and its automatic group';
  return [
    `One call may match ${listed}${automatic}. It would be rejected with \`too_many_groups\`, because a ` +
      `call belongs to at most ${GROUPS_PER_CALL_MAX} groups. Narrow \`match\` of these groups.`,
  ];
}
