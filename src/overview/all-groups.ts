import {
  heldAutoGroups,
  settingsOf,
  definedGroup,
  limitGroups,
} from '../routing/implied-groups.ts';
import type { PoolStatus } from '../contract/status.ts';
import { overlaps, type Overlap } from '../routing/overlaps.ts';
import type { GroupStatus } from '../contract/group-status.ts';
import { pathText } from '../config/document-changes.ts';
import { attentionOf } from '../attention/attention.ts';
import type { BudgetAmountsUsd, MissingSecret } from '../attention/serving.ts';
import { checkConfig } from '../config/check-config.ts';
import type { Attention, Warning } from '../contract/attention.ts';
import type { Config } from '../contract/config/config.ts';
import { directoryOf, jurisdictionOf, type Env } from '../env.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { ratesOf } from '../routing/group-limits.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { logEvent } from '../runtime/log.ts';
import {
  membersWithoutSecret,
  refusedSecrets,
  secretFault,
  withoutSecret,
} from '../runtime/secrets.ts';
import { steadyClock } from '../runtime/async.ts';
import { groupStatus } from './group-status.ts';
import { isLongIdle, askAwake, readDirectory, type PoolReply, type Directory } from './pools.ts';

/** The status of all groups, and what in it needs an operator. */

/** Returns the names of all groups with a configuration, pool or switch, configured ones first. */
export function groupNames({ config, pools }: Directory): string[] {
  const names = new Set([
    ...config.groups.map((group) => group.name),
    ...[...pools.map((pool) => pool.group), ...heldAutoGroups(config)].sort(),
  ]);
  return [...names];
}

/** As `groupNames`, with groups of keys and teams that have no pool yet, but whose calls are queued in other groups. */
export function namesWithWaiting(
  directory: Directory,
  replies: readonly PoolReply<Pick<PoolStatus, 'needed_elsewhere'>>[],
): string[] {
  const waiting = [...waitingElsewhere(replies).keys()].filter((name) => {
    return definedGroup(directory.config, name) !== undefined;
  });
  return [...new Set([...groupNames(directory), ...waiting])];
}

/**
 * Returns the state of some groups from the replies of their pools. Groups without anything left are omitted.
 *
 * @param all replies of the pools of other groups too, where calls of these may be queued
 */
export function statusOfGroups(
  directory: Directory,
  names: readonly string[],
  replies: readonly PoolReply<PoolStatus>[],
  all: readonly PoolReply<Pick<PoolStatus, 'needed_elsewhere'>>[] = replies,
): GroupStatus[] {
  const { config, refusals } = directory;
  const byGroup = Map.groupBy(
    replies.filter((one) => !isLongIdle(one, config)),
    (one) => one.pool.group,
  );
  const meeting = overlapsOf(directory);
  const elsewhere = waitingElsewhere(all);
  const refused = Map.groupBy(refusals, ({ group }) => group);
  return names.flatMap((name) => {
    const refusedHere = refused.get(name) ?? [];
    const status = groupStatus(name, config, byGroup.get(name) ?? [], meeting, refusedHere);
    if (status === null) return [];
    const waiting = elsewhere.get(name);
    return {
      ...status,
      ...(waiting !== undefined && { waiting_elsewhere: waiting }),
      ...temporaryOf(directory, name),
    };
  });
}

/** Whether calls may need slots of several groups, so that a call of one may be queued in another. */
export function mayWaitElsewhere(directory: Directory): boolean {
  return limitGroups(directory.config).length > 0 || overlapsOf(directory).length > 0;
}

/** Returns the fields of a group that revert automatically, the earliest first. */
function temporaryOf(
  { temporary, config }: Directory,
  name: string,
): Pick<GroupStatus, 'temporary'> {
  const own = temporary.filter(({ group }) => group === name);
  if (own.length === 0) return {};
  const settings = settingsOf(config, name);
  return {
    temporary: own
      .toSorted((a, b) => a.until - b.until)
      .map(({ path, was, value, until, actor }) => ({
        field: pathText(settings, path),
        ...(was === undefined ? {} : { from: was }),
        ...(value === undefined ? {} : { to: value }),
        until: new Date(until).toISOString(),
        actor,
      })),
  };
}

/** The last overlaps. They take the square of the number of groups, and dashboards poll every few seconds. */
let known: { readonly of: string; readonly overlaps: readonly Overlap[] } | null = null;

function overlapsOf({ fingerprintKey, version, config }: Directory): readonly Overlap[] {
  // Versions are numbered per directory. The key distinguishes version 3 of two directories.
  const of = `${fingerprintKey} ${version}`;
  if (known?.of !== of) known = { of, overlaps: overlaps(config) };
  return known.overlaps;
}

type NeededElsewhere = Pick<PoolStatus, 'needed_elsewhere'>;

/**
 * Returns for each group where else its calls are queued. A call of several groups is queued in one of them, and only
 * the pools of that group report which other groups its waiters need.
 */
export function waitingElsewhere(
  replies: readonly PoolReply<NeededElsewhere>[],
): ReadonlyMap<string, NonNullable<GroupStatus['waiting_elsewhere']>> {
  const found = new Map<string, Map<string, number>>();
  for (const one of replies) {
    if ('error' in one) continue;
    for (const [name, calls] of Object.entries(one.answer.needed_elsewhere ?? {})) {
      const group = groupOfPool(name);
      const places = found.get(group) ?? new Map<string, number>();
      found.set(group, places);
      places.set(one.pool.group, (places.get(one.pool.group) ?? 0) + calls);
    }
  }
  return new Map(
    [...found].map(([group, places]) => {
      const all = [...places].map(([where, calls]) => ({ group: where, calls }));
      return [group, all.toSorted((a, b) => b.calls - a.calls || (a.group < b.group ? -1 : 1))];
    }),
  );
}

export function groupsNeeded({ needed_elsewhere: needed = {} }: NeededElsewhere): string[] {
  return Object.keys(needed).map(groupOfPool);
}

/** Returns the group of a pool name. The name of a group contains no `#`. */
export function groupOfPool(name: string): string {
  return name.split('#', 1)[0] ?? name;
}

const WARNINGS_MAX = 200;

export async function readAttention(
  env: Env,
): Promise<{ readonly version: number; readonly all: readonly Attention[] }> {
  const directory = await readDirectory(env);
  const replies = await askAwake(
    env,
    directory,
    directory.pools,
    (pool) => pool.status(),
    ({ status }) => status,
  );
  return { version: directory.version, all: await attentionFrom(env, directory, replies) };
}

export async function attentionFrom(
  env: Env,
  directory: Directory,
  replies: readonly PoolReply<PoolStatus>[],
): Promise<readonly Attention[]> {
  const groups = statusOfGroups(directory, groupNames(directory), replies);
  return attentionNow(env, directory, groups, await readWarnings(env));
}

export function attentionNow(
  env: Env,
  { config, refusals }: Pick<Directory, 'config' | 'refusals'>,
  groups: readonly GroupStatus[],
  warnings: readonly Warning[],
): readonly Attention[] {
  return attentionOf({
    now: steadyClock.now(),
    groups,
    refusals,
    warnings,
    secrets: missingSecrets(env, config),
    configWarnings: warningsOf(env, config),
    budgets: budgetsOf(config),
  });
}

/** Reads the last warnings of all pools. Returns none if the directory is unreachable. */
async function readWarnings(env: Env): Promise<readonly Warning[]> {
  try {
    return await directoryOf(env).warnings(WARNINGS_MAX);
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    return [];
  }
}

/** The warnings of the last configuration. A check takes the square of the number of groups. */
let checked: { readonly config: Config; readonly warnings: readonly string[] } | null = null;

function warningsOf(env: Env, config: Config): readonly string[] {
  if (checked?.config !== config) {
    const { warnings } = checkConfig(config, BUILT_IN_UPSTREAMS, {
      privateUpstreams: env.PRIVATE_UPSTREAMS === 'allow',
      jurisdiction: jurisdictionOf(env),
    });
    checked = { config, warnings };
  }
  return checked.warnings;
}

function setSecret(name: string): string {
  return `Set \`${name}\`. The Upstreams page and \`headgate doctor\` show the command.`;
}

/** Returns the unusable secrets: those of the configuration, and `METRICS_TOKEN`. */
function missingSecrets(env: Env, config: Config): MissingSecret[] {
  const ofUpstreams = withoutSecret(env, resolveUpstreams(config, BUILT_IN_UPSTREAMS).values());
  const ofMembers = membersWithoutSecret(env, config.groups);
  const name = config.webhook?.secret ?? null;
  const fault = name === null ? null : secretFault(env, name);
  const ofMetrics = refusedSecrets(env).filter(({ secret }) => secret === 'METRICS_TOKEN');
  return [
    ...ofUpstreams.map(({ id, secret, fault: why }) => ({
      subject: { kind: 'upstream', id } as const,
      group: null,
      secret,
      fault: why,
      effect: 'calls to this upstream are rejected',
      advice: setSecret(secret),
    })),
    ...ofMembers.map(({ group, member, secret, fault: why }) => ({
      subject: { kind: 'member', id: member } as const,
      group,
      secret,
      fault: why,
      effect: 'this member gets no calls',
      advice: setSecret(secret),
    })),
    ...(name === null || fault === null
      ? []
      : [
          {
            subject: { kind: 'deployment', id: 'webhook' } as const,
            group: null,
            secret: name,
            fault,
            effect: 'no warnings are sent',
            advice: setSecret(name),
          },
        ]),
    ...ofMetrics.map(({ secret, fault: why }) => ({
      subject: { kind: 'deployment', id: 'metrics' } as const,
      group: null,
      secret,
      fault: why,
      effect: '`/metrics` rejects this token',
      advice: 'Set `METRICS_TOKEN` again, without spaces or line breaks inside.',
    })),
  ];
}

function budgetsOf(config: Config): ReadonlyMap<string, BudgetAmountsUsd> {
  return new Map(
    [...config.groups, ...limitGroups(config)].map(({ name, limits }) => {
      const { perHourUsd: hour, perDayUsd: day, perMonthUsd: month } = ratesOf(limits).budgets;
      return [name, { hour, day, month }];
    }),
  );
}
