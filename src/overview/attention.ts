import { attentionOf } from '../attention/attention.ts';
import type { BudgetAmountsUsd, MissingSecret } from '../attention/serving.ts';
import { checkConfig } from '../config/check-config.ts';
import type { Attention, Warning } from '../contract/attention.ts';
import type { Config } from '../contract/config/config.ts';
import type { GroupStatus } from '../contract/group-status.ts';
import type { PoolStatus } from '../contract/status.ts';
import { directoryOf, jurisdictionOf, type Env } from '../env.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { ratesOf } from '../routing/group-limits.ts';
import { limitGroups } from '../routing/implied-groups.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { logEvent } from '../runtime/log.ts';
import {
  membersWithoutSecret,
  refusedSecrets,
  secretFault,
  withoutSecret,
} from '../runtime/secrets.ts';
import { steadyClock } from '../runtime/async.ts';
import { groupNames, statusOfGroups } from './all-groups.ts';
import { askAwake, readDirectory, type Directory, type PoolReply } from './pools.ts';

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
