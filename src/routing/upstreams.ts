import type { Config, UpstreamConfig } from '../contract/config/config.ts';
import { TURN_CONNECTIONS_EACH } from '../contract/config/upstream-config.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Sockets, Upstream } from '../contract/config/upstream.ts';
import { DIALECT_DEFAULTS } from '../providers/dialects.ts';
import { providerAt } from '../providers/index.ts';

/**
 * Returns the enabled upstreams by id: the built-in ones with the configured ones on top. Fields of an entry replace
 * those of the built-in upstream, and `enabled: false` removes it. A custom entry without a `base_url` is skipped,
 * because `checkConfig` rejects it.
 */
export function resolveUpstreams(
  config: Config,
  builtIn: readonly Upstream[],
): ReadonlyMap<string, Upstream> {
  const upstreams = new Map(builtIn.map((upstream) => [upstream.id, upstream]));
  for (const entry of config.upstreams) {
    const upstream = entry.enabled ? overlay(entry, upstreams.get(entry.id)) : null;
    if (upstream === null) upstreams.delete(entry.id);
    else upstreams.set(entry.id, upstream);
  }
  return upstreams;
}

/** Fields of an upstream that only a configuration sets. */
const NOT_CONFIGURED: Pick<
  Upstream,
  | 'accountBy'
  | 'prices'
  | 'limitHeaders'
  | 'injectsUsage'
  | 'redirects'
  | 'requestHeaders'
  | 'requiresKey'
> = {
  accountBy: 'auto',
  prices: {},
  limitHeaders: 'auto',
  injectsUsage: false,
  redirects: 'rewrite',
  requestHeaders: null,
  requiresKey: 'auto',
};

function overlay(entry: UpstreamConfig, known: Upstream | undefined): Upstream | null {
  const base =
    known ?? (entry.base_url === undefined ? null : custom(entry.base_url, entry.dialect));
  if (base === null) return null;
  const dialect = entry.dialect ?? base.dialect;
  return {
    id: entry.id,
    baseUrl: entry.base_url === undefined ? base.baseUrl : normalBaseUrl(entry.base_url),
    dialect,
    keyPlace: dialect === base.dialect ? base.keyPlace : DIALECT_DEFAULTS[dialect].keyPlace,
    openaiAt: entry.openai_at === undefined ? base.openaiAt : entry.openai_at,
    anthropicAt: entry.anthropic_at === undefined ? base.anthropicAt : entry.anthropic_at,
    models: entry.models ?? base.models,
    aliases: { ...base.aliases, ...entry.aliases },
    secret: secretOf(entry.auth) ?? (entry.auth === 'none' ? null : base.secret),
    requiresKey: entry.require_key,
    isKeyless: entry.auth === 'none',
    allow: entry.allow,
    keyNamesAccount: base.keyNamesAccount,
    accountBy: entry.account_by,
    prices: entry.prices,
    limitHeaders: entry.limit_headers,
    sockets: SOCKETS[entry.websocket] ?? base.sockets,
    turnConnectionsEach: entry.turn_connections_each,
    injectsUsage: entry.inject_usage,
    redirects: entry.redirects,
    requestHeaders: entry.request_headers,
    via: entry.via ?? base.via,
  };
}

/** Calls that a setting means. null means the known behaviour of the provider. */
const SOCKETS: Readonly<Record<UpstreamConfig['websocket'], Sockets | null>> = {
  auto: null,
  session: 'any',
  turns: 'turns',
  off: 'none',
};

function secretOf(auth: UpstreamConfig['auth']): string | null {
  return typeof auth === 'object' ? auth.secret : null;
}

/** Returns the defaults of an upstream that is not built in, by dialect and address. */
function custom(baseUrl: string, dialect: Dialect = 'openai'): Omit<Upstream, 'id'> {
  const defaults = DIALECT_DEFAULTS[dialect];
  const url = new URL(baseUrl);
  const path = basePathOf(url);
  const { keyNamesAccount = true, speaksTurns = false } = providerAt(url.hostname) ?? {};
  return {
    baseUrl: normalBaseUrl(baseUrl),
    dialect,
    keyPlace: keyNamesAccount ? defaults.keyPlace : 'bearer',
    openaiAt: keyNamesAccount ? routesBelow(path, defaults.openaiAt, dialect) : null,
    anthropicAt: routesBelow(path, defaults.anthropicAt, dialect),
    models: [],
    aliases: {},
    secret: null,
    isKeyless: false,
    allow: [],
    // An Azure resource is its own account, and its clients may use Entra tokens.
    keyNamesAccount: dialect !== 'azure' && keyNamesAccount,
    ...NOT_CONFIGURED,
    sockets: speaksTurns ? 'turns' : 'sessions',
    turnConnectionsEach: TURN_CONNECTIONS_EACH,
    via: null,
  };
}

/**
 * Returns where routes begin below a `base_url` with that path. A base URL with the OpenAI shape already ends where the
 * routes begin, as SDKs expect it. For other shapes, the missing rest is returned: `/openai` of Azure's `/openai/v1`
 * leaves `/v1`.
 */
function routesBelow(path: string, usual: string | null, dialect: Dialect): string | null {
  if (usual === null || path === '') return usual;
  if (dialect === 'openai' || dialect === 'ollama') return '';
  for (let end = usual.length; end > 0; end = usual.lastIndexOf('/', end - 1)) {
    if (path.endsWith(usual.slice(0, end))) return usual.slice(end);
  }
  return usual;
}

/** Normalizes a base URL for comparing and joining: normal host, no needless slashes. */
function normalBaseUrl(baseUrl: string): string {
  const url = new URL(baseUrl);
  return url.origin + basePathOf(url);
}

/**
 * Returns the path of a base URL without repeated and trailing slashes, except those of a nested address (`https://`).
 */
function basePathOf({ pathname }: URL): string {
  return pathname.replace(/(?<!:)\/+(?=\/|$)/g, '');
}
