import * as z from 'zod';
import { instant } from './shapes.ts';
import type { AdminContext } from './context.ts';
import { howToSet, secretFault, settingHint } from '../runtime/secrets.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { type CompiledGroup, compileGroups } from '../routing/group-match.ts';
import { matchingGroups } from '../routing/implied-groups.ts';
import { providerOf, BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { joinStopped } from '../overview/upstream-health.ts';
import { joinUpstreams } from '../overview/upstream-health.ts';
import { latest } from '../overview/joins.ts';
import { limitsSeenSchema, upstreamCallsSchema } from '../contract/status.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { DIALECTS } from '../contract/http.ts';
import { upstreamSchema, type Upstream, type UpstreamConfig } from '../contract/config/upstream.ts';
import type { Config } from '../contract/config/config.ts';
import { suggestionSchema } from '../contract/shared-shapes.ts';
import { stoppedSchema, type GroupStatus, type UpstreamAtGroup } from '../contract/group-status.ts';

const secretSchema = z.object({
  name: z.string().describe('Name of the secret.'),
  is_set: z
    .boolean()
    .describe('Whether the secret is usable. A secret with white space inside is not.'),
  fault: z
    .string()
    .nullable()
    .describe('Why it is unusable, such as "is not set". null if it is usable.'),
  set_with: z.string().describe('How to set it in the environment of this Headgate, for people.'),
  command: z.string().describe('Command that sets it in the environment of this Headgate.'),
  afterwards: z.string().describe('What to do after the command, for people.'),
});

/** An upstream with all defaults, and with the state of its calls. */
export const upstreamInfoSchema = z.object({
  id: z.string().describe('Id of the upstream.'),
  is_built_in: z.boolean().describe('Whether the upstream is built in.'),
  enabled: z.boolean().describe('Whether calls can use it.'),
  base_url: z.string().nullable().describe('Base URL. null if it is unknown.'),
  dialect: z.enum(DIALECTS).nullable().describe('API shape. null if it is unknown.'),
  models: z.array(z.string()).describe('Patterns of the models that `/v1/*` sends there.'),
  openai_at: z
    .string()
    .nullable()
    .describe('Where its OpenAI-shaped routes begin. null if there are none.'),
  anthropic_at: z
    .string()
    .nullable()
    .describe('Where its Anthropic-shaped routes begin. null if there are none.'),
  via: z
    .string()
    .nullable()
    .describe('Binding that carries the calls. null means the public network.'),
  secret: secretSchema
    .nullable()
    .describe("Secret with the operator's key. null means that the caller's key is forwarded."),
  member_secrets: z
    .array(secretSchema)
    .describe('Secrets of group members at this upstream, without duplicates.'),
  configured: upstreamSchema
    .nullable()
    .describe('Entry in the configuration. null if there is none.'),
  groups: z
    .array(z.string())
    .describe(
      'Groups whose calls went there, and groups that name it. A group that matches only by models is listed once it has called the upstream.',
    ),
  calls: upstreamCallsSchema
    .omit({ id: true })
    .nullable()
    .describe(
      'Calls to the upstream. A call with slots in several groups counts in each. null if there were none.',
    ),
  health: z
    .object({
      state: z
        .enum(['ok', 'partly paused', 'waiting', 'open', 'unreachable', 'unknown'])
        .describe(
          '`ok`: calls start as usual. `partly paused`: the upstream refuses only the calls in `stopped`. `waiting`: all calls are paused until `paused_until`. `open`: a breaker is not closed. `unreachable`: no pool responds. `unknown`: there were no calls yet.',
        ),
      paused_until: instant
        .nullable()
        .describe('Time at which its backoff ends. null if there is none.'),
      breaker_until: instant
        .nullable()
        .describe('Time at which the breaker admits the first probe. null if it is not open.'),
      stopped: stoppedSchema,
      refusals_total: z
        .record(z.string(), z.number())
        .describe('Refusals in the current UTC day, by kind.'),
      limits: z.record(z.string(), z.number().nullable()).meta({
        description:
          'Effective limits by group, for groups that have called it. null means unlimited.',
        unit: 'slots',
      }),
    })
    .describe('Combined observations of the groups whose calls went there.'),
});

export const upstreamDetailSchema = upstreamInfoSchema.extend({
  suggested_limits: z
    .array(suggestionSchema)
    .describe(
      'Limits that the provider publishes for its plans. Headgate does not know which plan you have.',
    ),
  seen_limits: z
    .array(limitsSeenSchema.extend({ group: z.string().describe('Group of these calls.') }))
    .describe('Limits that it reported in response headers.'),
});

export const BUILT_IN_IDS: ReadonlySet<string> = new Set(BUILT_IN_UPSTREAMS.map(({ id }) => id));

export function entryOf(config: Config, id: string): UpstreamConfig | null {
  return config.upstreams.find((entry) => entry.id === id) ?? null;
}

export function infoOf(
  id: string,
  config: Config,
  context: AdminContext,
  all: readonly GroupStatus[],
) {
  const upstream = resolveUpstreams(config, BUILT_IN_UPSTREAMS).get(id) ?? null;
  const configured = entryOf(config, id);
  const groups = upstream === null ? [] : standIns(upstream, config, all);
  return {
    id,
    is_built_in: BUILT_IN_IDS.has(id),
    enabled: upstream !== null,
    base_url: upstream?.baseUrl ?? configured?.base_url ?? null,
    dialect: upstream?.dialect ?? configured?.dialect ?? null,
    models: [...(upstream?.models ?? configured?.models ?? [])],
    openai_at: upstream?.openaiAt ?? null,
    anthropic_at: upstream?.anthropicAt ?? null,
    via: upstream?.via ?? null,
    secret: secretOf(upstream, context),
    member_secrets: memberSecretsAt(id, config).map((name) => secretNamed(name, context)),
    configured,
    groups: groups.map(({ group }) => group.name),
    calls: callsOf(groups),
    health: healthOf(groups),
  };
}

/** Returns the limits that its provider publishes for its plans. */
export function suggestionsFor(id: string, config: Config) {
  const upstream = resolveUpstreams(config, BUILT_IN_UPSTREAMS).get(id);
  const plans = (upstream && providerOf(upstream)?.plans) ?? [];
  return plans.map(({ plan, models = [], limits, source, date, note = null }) => ({
    plan,
    models: [...models],
    limits,
    source,
    date,
    note,
  }));
}

function secretOf(upstream: Upstream | null, context: AdminContext) {
  const name = upstream?.secret ?? null;
  return name === null ? null : secretNamed(name, context);
}

function secretNamed(name: string, { env, req: { url } }: AdminContext) {
  const fault = secretFault(env, name);
  const set_with = howToSet(env, name, url);
  return { name, is_set: fault === null, fault, set_with, ...settingHint(env, name, url) };
}

/** Returns the secrets that members of groups name for an upstream. */
function memberSecretsAt(id: string, { groups }: Config): string[] {
  const members = groups.flatMap((group) => group.members);
  const secrets = members.flatMap(({ upstream, secret, enabled }) =>
    enabled && upstream === id ? (secret ?? []) : [],
  );
  return [...new Set(secrets)];
}

/** A group that represents an upstream. `there` is null if none of its calls went there, as far as it knows. */
interface RepresentativeGroup {
  readonly group: GroupStatus;
  readonly there: UpstreamAtGroup | null;
}

/**
 * Returns the groups that represent an upstream: its automatic ones, those that name it, and those whose calls went
 * there. A group that matches every call does not count, because each of its calls also takes a slot in another group.
 */
function standIns(
  upstream: Upstream,
  config: Config,
  all: readonly GroupStatus[],
): RepresentativeGroup[] {
  const targeted = new Map(
    compileGroups(matchingGroups(config.groups))
      .filter(({ isTargeted }) => isTargeted)
      .map((group) => [group.config.name, group]),
  );
  const own = `${AUTO_PREFIX}${upstream.id}`;
  return all.flatMap((group) => {
    const { name, upstreams } = group;
    const isOwn = name === own || name.startsWith(`${own}/`);
    const ofConfig = targeted.get(name);
    if (!isOwn && ofConfig === undefined) return [];
    const there = upstreams.find(({ id }) => id === upstream.id) ?? null;
    const isNamed = isOwn || (ofConfig !== undefined && names(ofConfig, upstream));
    return there === null && !isNamed ? [] : [{ group, there }];
  });
}

/** Returns whether a group names an upstream, or has a member there. */
function names(group: CompiledGroup, upstream: Upstream): boolean {
  const { config } = group;
  if (config.members.some((member) => member.upstream === upstream.id)) return true;
  const { upstreams, base_urls: baseUrls } = config.match;
  const isByUrl = upstreams.length === 0 && baseUrls.some((pattern) => !pattern.includes('*'));
  return (isByUrl || upstreams.includes(upstream.id)) && group.matchesUpstream(upstream);
}

/** Combines what groups have observed of an upstream to which their calls went. */
function healthOf(groups: readonly RepresentativeGroup[]) {
  const called = groups.filter(({ group, there }) => there !== null || wasCalledBefore(group));
  const seen = called.flatMap(({ there }) => there ?? []);
  const state = stateOf(groups, called);
  const isPartly = state === 'partly paused';
  const stopped = joinStopped(seen.flatMap((one) => one.stopped ?? []));
  const reported = seen.filter((one) => isPartly || one.state !== 'partly paused');
  return {
    state,
    paused_until: latest(reported.map((one) => one.paused_until)),
    breaker_until: latest(reported.map((one) => one.breaker_until)),
    ...(isPartly && { stopped }),
    refusals_total: { ...joinUpstreams(seen)[0]?.day_refusals },
    limits: Object.fromEntries(
      called.map(({ group, there }) => [
        group.name,
        (there ?? { limit: group.limit.effective }).limit,
      ]),
    ),
  };
}

/** Whether an automatic group had calls, none of which reached its only upstream. Its pool then lists none. */
function wasCalledBefore({ name, upstreams, granted_total: granted }: GroupStatus): boolean {
  return name.startsWith(AUTO_PREFIX) && upstreams.length === 0 && granted > 0;
}

function callsOf(groups: readonly RepresentativeGroup[]) {
  const [calls] = joinUpstreams(groups.flatMap(({ there }) => there ?? []));
  if (calls === undefined) return null;
  const { in_flight, last_call_at, day_granted, day_refusals, spend, last_refusals } = calls;
  return { in_flight, last_call_at, day_granted, day_refusals, spend, last_refusals };
}

function stateOf(
  groups: readonly RepresentativeGroup[],
  called: readonly RepresentativeGroup[],
): UpstreamAtGroup['state'] | 'unreachable' | 'unknown' {
  const isLost = groups.length > 0 && groups.every(({ group }) => group.error !== undefined);
  if (isLost) return 'unreachable';
  if (called.length === 0) return 'unknown';
  const states = called.map(({ there }) => there?.state ?? 'ok');
  const worst = ['open', 'waiting', 'partly paused'] as const;
  return worst.find((state) => states.includes(state)) ?? 'ok';
}
