// The way of a configuration, file by file:
// 1. parse-text.ts: from text to a document, JSON or YAML.
// 2. convert-foreign.ts: from the shape of another system to ours; keep-known-caps.ts then writes into such groups
//    what is known of their models.
// 3. import-config.ts: from a document to a configuration, field by field; explain-issues.ts words what is wrong.
// 4. check-config.ts, here: its parts against each other, one file of check/ for each thing that may be wrong;
//    check/ranks.ts looks at a change.
// 5. changes-between.ts: from two configurations to their differences, for the audit log, previews and conflicts.
// 6. snapshots.ts: the configuration in force, as an isolate keeps it to route calls by.

import type { Config } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { callersAtOnce } from '../routing/overlaps.ts';
import { GROUPS_PER_CALL_MAX } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { adminKeyErrors } from './check/admin-keys.ts';
import { autoGroupErrors } from './check/auto-groups.ts';
import { budgetWarnings } from './check/budgets.ts';
import { configuredAutoErrors } from './check/configured-auto-groups.ts';
import { duplicates } from './check/duplicates.ts';
import { groupErrors, groupWarnings, silenceWarnings } from './check/groups.ts';
import { laneWarnings } from './check/lanes.ts';
import { leaseWarnings } from './check/leases.ts';
import { sessionWarnings } from './check/sockets.ts';
import { memberErrors, memberWarnings } from './check/members.ts';
import { modelWarnings } from './check/models.ts';
import { operationErrors } from './check/operations.ts';
import { jurisdictionWarnings } from './check/jurisdictions.ts';
import { originErrors, originWarnings } from './check/origins.ts';
import { spillErrors } from './check/spill.ts';
import { teamWarnings } from './check/teams.ts';
import { unknownUpstream } from './check/unknown-upstream.ts';
import {
  accountErrors,
  accountWarnings,
  addressWarnings,
  secretWarnings,
  upstreamErrors,
  upstreamWarnings,
} from './check/upstreams.ts';
import { webhookErrors } from './check/webhook.ts';
import type { FieldError } from './field-error.ts';

export interface ConfigCheck {
  /** Contradictions. A configuration with any is refused. */
  readonly errors: readonly FieldError[];
  /** Surprises for an operator, in full sentences. */
  readonly warnings: readonly string[];
}

export interface CheckOptions {
  /** Whether upstreams may have private addresses and plain http, as where Headgate is self-hosted. */
  readonly privateUpstreams: boolean;
  /** Jurisdiction of the directory and the feed; null: they are in none. */
  readonly jurisdiction: string | null;
}

/**
 * Finds what the schema cannot see: contradictions between the parts of a configuration that has
 * passed it, and addresses that may not be called. No message holds a credential.
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

/** Finds a default upstream that is none. */
function defaultErrors(
  { default_upstream: id }: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  if (id === null || upstreams.has(id)) return [];
  return [{ path: 'default_upstream', message: unknownUpstream(id, upstreams.keys()) }];
}

/** Warns of groups that one call may match beyond the bound. That two meet is normal: it takes slots in both. */
function manyKeysWarnings(config: Config): string[] {
  const names = callersAtOnce(config, GROUPS_PER_CALL_MAX);
  if (names === null) return [];
  const listed = names.map((name) => `"${name}"`).join(', ');
  const automatic = names.length > GROUPS_PER_CALL_MAX ? '' : ' beside its automatic group';
  return [
    `One call may match ${listed}${automatic}: it would be refused with too_many_groups, because a ` +
      `call belongs to ${GROUPS_PER_CALL_MAX} groups at most.`,
  ];
}
