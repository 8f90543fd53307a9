import { upstreamSchema } from '../contract/config/upstream-config.ts';
import type { Config, UpstreamConfig } from '../contract/config/config.ts';
import type { Env } from '../env.ts';
import { matchingGroups } from '../routing/configured-auto-groups.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { howToSet, readSecret, wayToSet } from '../runtime/secrets.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import { readDirectory } from '../overview/pools.ts';
import { compileGroups } from '../routing/group-match.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { changeConfig } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { mergePatch } from './merge-patch.ts';
import { pageByName } from './pages.ts';
import { ProblemError } from './problem.ts';
import { check, invalid, madeOr, serve } from './serve.ts';
import { statusOfAll } from './status-routes.ts';

const BUILT_IN_IDS: ReadonlySet<string> = new Set(BUILT_IN_UPSTREAMS.map(({ id }) => id));

/** Serves upstreams: what calls find there, and what the configuration says of them. */
export function addUpstreamRoutes(app: AdminApp): void {
  serve(app, 'listUpstreams', async ({ context, query }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    const { items, next_cursor } = pageByName(allIds(config), (id) => id, query);
    const groups = await statusOfAll(context, directory);
    const upstreams = items.map((id) => infoOf(id, config, context.env, groups));
    return { status: 200, body: { version, upstreams, next_cursor }, version };
  });

  serve(app, 'getUpstream', async ({ context, params: { id } }) => {
    const directory = await readDirectory(context.env);
    const { version, config } = directory;
    if (!allIds(config).includes(id)) throw noUpstream(id);
    const groups = await statusOfAll(context, directory);
    return { status: 200, body: infoOf(id, config, context.env, groups), version };
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
    const message = `must be "${id}", as in the path: an upstream cannot be renamed`;
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
  return new ProblemError(404, `There is no upstream "${id}".`);
}

function infoOf(id: string, config: Config, env: Env, all: readonly GroupStatus[]) {
  const upstream = resolveUpstreams(config, BUILT_IN_UPSTREAMS).get(id) ?? null;
  const configured = entryOf(config, id);
  const groups = upstream === null ? [] : all.filter(standsFor(upstream, config));
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
    secret: secretOf(upstream, env),
    member_secrets: memberSecretsAt(id, config).map((name) => secretNamed(name, env)),
    configured,
    groups: groups.map(({ name }) => name),
    health: healthOf(groups),
  };
}

function secretOf(upstream: Upstream | null, env: Env) {
  const name = upstream?.secret ?? null;
  return name === null ? null : secretNamed(name, env);
}

function secretNamed(name: string, env: Env) {
  const isSet = readSecret(env, name) !== null;
  return { name, is_set: isSet, set_with: howToSet(env, name), ...wayToSet(env, name) };
}

/** Lists the secrets that members of groups name for an upstream. */
function memberSecretsAt(id: string, { groups }: Config): string[] {
  const members = groups.flatMap((group) => group.members);
  const secrets = members.flatMap(({ upstream, secret, enabled }) =>
    enabled && upstream === id ? (secret ?? []) : [],
  );
  return [...new Set(secrets)];
}

/** Finds groups that stand for an upstream: its automatic ones, those that take its calls, and those with a member there. */
function standsFor(upstream: Upstream, config: Config): (group: GroupStatus) => boolean {
  const targeted = compileGroups(matchingGroups(config.groups)).filter(
    (group) =>
      (group.isTargeted && group.matchesUpstream(upstream)) ||
      group.config.members.some((member) => member.upstream === upstream.id),
  );
  const names = new Set(targeted.map((group) => group.config.name));
  const own = `${AUTO_PREFIX}${upstream.id}`;
  return ({ name }) => names.has(name) || name === own || name.startsWith(`${own}/`);
}

/** Sums up what groups have seen of an upstream. One that also stands for others may speak of those. */
function healthOf(groups: readonly GroupStatus[]) {
  const latest = (instants: readonly (string | null)[]): string | null =>
    instants
      .filter((at) => at !== null)
      .toSorted()
      .at(-1) ?? null;
  const refusals = new Map<string, number>();
  for (const [kind, count] of groups.flatMap((group) => Object.entries(group.refusals_total))) {
    refusals.set(kind, (refusals.get(kind) ?? 0) + count);
  }
  return {
    state: stateOf(groups),
    paused_until: latest(groups.map((group) => group.paused_until)),
    breaker_until: latest(groups.map((group) => group.breaker_until)),
    refusals_total: Object.fromEntries(refusals),
    limits: Object.fromEntries(groups.map(({ name, limit }) => [name, limit.effective])),
  };
}

function stateOf(
  groups: readonly GroupStatus[],
): 'ok' | 'waiting' | 'open' | 'unreachable' | 'unknown' {
  if (groups.length === 0) return 'unknown';
  if (groups.some((group) => group.breaker !== 'closed')) return 'open';
  if (groups.some((group) => group.paused_until !== null)) return 'waiting';
  return groups.every((group) => group.error !== undefined) ? 'unreachable' : 'ok';
}
