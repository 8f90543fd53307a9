import { upstreamSchema } from '../contract/config/upstream-config.ts';
import type { Config, UpstreamConfig } from '../contract/config/config.ts';
import { matchingGroups } from '../routing/auto-groups.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { howToSet, secretFault, settingHint } from '../runtime/secrets.ts';
import type { GroupStatus, UpstreamAtGroup } from '../contract/admin/status-schemas.ts';
import { latest } from '../overview/joins.ts';
import { joinUpstreams, joinStopped } from '../overview/upstream-health.ts';
import { readDirectory } from '../overview/pools.ts';
import { compileGroups, type CompiledGroup } from '../routing/group-match.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { providerOf } from '../providers/index.ts';
import { changeConfig } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { mergePatch } from './merge-patch.ts';
import { pageByName } from './pages.ts';
import { ProblemError } from './problem.ts';
import { check, invalid, madeOr, serve } from './serve.ts';
import { statusOfAll } from './status-routes.ts';

const BUILT_IN_IDS: ReadonlySet<string> = new Set(BUILT_IN_UPSTREAMS.map(({ id }) => id));

export function addUpstreamRoutes(app: AdminApp): void {
  serve(app, 'listUpstreams', async ({ context, query }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    const { items, next_cursor } = pageByName(allIds(config), (id) => id, query);
    const groups = await statusOfAll(context, directory);
    const upstreams = items.map((id) => infoOf(id, config, context, groups));
    return { status: 200, body: { version, upstreams, next_cursor }, version };
  });

  serve(app, 'getUpstream', async ({ context, params: { id } }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    if (!allIds(config).includes(id)) throw noUpstream(id);
    const groups = await statusOfAll(context, directory);
    const info = infoOf(id, config, context, groups);
    const seen = groups.flatMap(({ name, limits_seen = [] }) =>
      limits_seen.filter(({ upstream }) => upstream === id).map((one) => ({ ...one, group: name })),
    );
    const suggested = suggestionsFor(id, config);
    const body = { ...info, suggested_limits: suggested, seen_limits: seen };
    return { status: 200, body, version };
  });

  serve(app, 'putUpstream', ({ context, params: { id }, body }) =>
    changeUpstream(context, id, 'put', () => parseUpstream(id, body)),
  );

  serve(app, 'patchUpstream', ({ context, params: { id }, body }) =>
    changeUpstream(context, id, 'patch', (config) => {
      const entry = entryOf(config, id);
      if (entry === null && !BUILT_IN_IDS.has(id)) throw noUpstream(id);
      return parseUpstream(id, mergePatch(entry ?? {}, body));
    }),
  );

  serve(app, 'deleteUpstream', async ({ context, params: { id } }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `upstream ${id}: delete`,
      next: (config) => {
        const gone = entryOf(config, id);
        if (gone === null) throw noUpstream(id);
        return { ...config, upstreams: config.upstreams.filter((entry) => entry !== gone) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  });
}

async function changeUpstream(
  context: AdminContext,
  id: string,
  verb: string,
  edited: (config: Config) => UpstreamConfig,
) {
  const { version, before, config, warnings } = await changeConfig(context, {
    action: `upstream ${id}: ${verb}`,
    next: (present) => {
      const next = edited(present);
      const index = present.upstreams.findIndex((entry) => entry.id === id);
      const upstreams =
        index === -1 ? [...present.upstreams, next] : present.upstreams.with(index, next);
      return { ...present, upstreams };
    },
    pathOf: (path, { upstreams }) => {
      const index = upstreams.findIndex((entry) => entry.id === id);
      const prefix = `upstreams[${index === -1 ? upstreams.length : index}].`;
      return path.startsWith(prefix) ? path.slice(prefix.length) : path;
    },
  });
  const upstream = entryOf(config, id);
  if (upstream === null) throw noUpstream(id);
  return madeOr(entryOf(before, id) === null, { body: { version, upstream, warnings }, version });
}

function parseUpstream(id: string, document: unknown): UpstreamConfig {
  const upstream = check(upstreamSchema, { id, ...Object(document) });
  if (upstream.id !== id) {
    const message = `must be \`${id}\`, as in the path. An upstream cannot be renamed`;
    throw invalid([{ path: 'id', message }]);
  }
  return upstream;
}

function allIds(config: Config): string[] {
  return [...new Set([...BUILT_IN_IDS, ...config.upstreams.map(({ id }) => id)])];
}

function entryOf(config: Config, id: string): UpstreamConfig | null {
  return config.upstreams.find((entry) => entry.id === id) ?? null;
}

function noUpstream(id: string): ProblemError {
  return new ProblemError(404, `There is no upstream \`${id}\`.`);
}

function infoOf(id: string, config: Config, context: AdminContext, all: readonly GroupStatus[]) {
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
function suggestionsFor(id: string, config: Config) {
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
