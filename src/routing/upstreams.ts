import type { Config, GroupConfig } from '../contract/config/config.ts';
import {
  TURN_CONNECTIONS_EACH,
  type UpstreamConfig,
  type Sockets,
  type Upstream,
} from '../contract/config/upstream.ts';
import type { Dialect } from '../contract/http.ts';
import { DIALECT_DEFAULTS, providerAt } from '../providers/catalog.ts';
import { quoted } from '../core/words/quoted.ts';
import { compileGlobs } from './glob.ts';
import { namesUpstreams, upstreamsOf } from './group-match.ts';

/** The upstreams in force, which of them serves a model, and the models that the configuration names. */

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

/** The API shapes of the unified routes under `/v1`. */
export type UnifiedShape = 'openai' | 'anthropic';

export interface UnifiedCall {
  /** Value of `headgate-upstream`. */
  readonly header: string | null;
  readonly model: string | null;
  readonly shape: UnifiedShape;
  /** Returns the upstream of the first member that serves the call, in a group with members that matches the model. */
  readonly upstreamOfMember: (
    model: string,
    isServedBy: (upstream: Upstream) => boolean,
  ) => Upstream | null;
}

export type UpstreamChoice =
  | {
      readonly kind: 'found';
      readonly upstream: Upstream;
      /** The part to remove from the start of the body's model, slash included. Empty for nothing. */
      readonly prefix: string;
    }
  /** Several upstreams' patterns match the model. Ordered by id. */
  | { readonly kind: 'ambiguous'; readonly upstreams: readonly Upstream[] }
  /** The places that were checked, in order, in words for the client. */
  | { readonly kind: 'unknown'; readonly tried: readonly string[] };

/**
 * Chooses the upstream of a call to `/v1/*`, by the first of these that applies:
 *
 * 1. the header `headgate-upstream`
 * 2. the first path segment of the model, if it is the id of an upstream
 * 3. the only upstream whose model patterns match
 * 4. a group with members that matches the model
 * 5. the default upstream
 *
 * Only model patterns and members require the API shape of the call. A call to a named upstream without that shape is
 * rejected later (`unifiedPath` returns null) and is not sent elsewhere.
 */
export function chooseUpstream(
  call: UnifiedCall,
  upstreams: ReadonlyMap<string, Upstream>,
  defaultUpstream: string | null,
): UpstreamChoice {
  const { header, model, shape, upstreamOfMember } = call;
  if (header !== null) {
    const named = upstreams.get(header.trim().toLowerCase());
    // An unknown upstream in the header is a mistake, and a silent choice of another one would be a surprise.
    if (named !== undefined) return { kind: 'found', upstream: named, prefix: '' };
    return { kind: 'unknown', tried: [`the header \`headgate-upstream\`: ${quoted(header)}`] };
  }
  const tried = ['the header `headgate-upstream` (not sent)'];
  if (model === null) {
    tried.push('the model (the request has none)');
  } else {
    const slash = model.indexOf('/');
    const named = slash > 0 ? upstreams.get(model.slice(0, slash).toLowerCase()) : undefined;
    if (named !== undefined) {
      return { kind: 'found', upstream: named, prefix: model.slice(0, slash + 1) };
    }
    if (slash > 0) tried.push(`an upstream with the id ${quoted(model.slice(0, slash))}`);

    const hasRoutes = (upstream: Upstream): boolean => routesAt(upstream, shape) !== null;
    const served = [...upstreams.values()].filter(
      (upstream) => hasRoutes(upstream) && servesModel(upstream, model),
    );
    const [only, second] = served;
    const ofMember = served.length === 1 ? null : upstreamOfMember(model, hasRoutes);
    if (ofMember !== null) return { kind: 'found', upstream: ofMember, prefix: '' };
    if (second !== undefined) {
      const byId = served.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      return { kind: 'ambiguous', upstreams: byId };
    }
    if (only !== undefined) return { kind: 'found', upstream: only, prefix: '' };
    tried.push(`the upstreams' model patterns for ${quoted(model)}`);
  }
  const fallback = defaultUpstream === null ? undefined : upstreams.get(defaultUpstream);
  if (fallback !== undefined) return { kind: 'found', upstream: fallback, prefix: '' };
  tried.push('`default_upstream` (not configured)');
  return { kind: 'unknown', tried };
}

/**
 * Returns the path of a unified route below the upstream's base URL: `/v1/chat/completions` becomes `openaiAt` +
 * `/chat/completions`. null if the upstream has no routes of that shape.
 *
 * @param path without the query
 */
export function unifiedPath(upstream: Upstream, shape: UnifiedShape, path: string): string | null {
  const at = routesAt(upstream, shape);
  return at === null ? null : at + path.replace(/^\/v1(?=\/|$)/, '');
}

function routesAt(upstream: Upstream, shape: UnifiedShape): string | null {
  return shape === 'openai' ? upstream.openaiAt : upstream.anthropicAt;
}

/** Path of the list of models below the upstream's base URL, without `/models`. null if there is none. */
export function modelsAt({ openaiAt, anthropicAt }: Upstream): string | null {
  return openaiAt ?? anthropicAt;
}

/** Upstreams never change, so the patterns of each are compiled once, when they are first needed. */
const matchers = new WeakMap<Upstream, (name: string) => boolean>();

function servesModel(upstream: Upstream, model: string): boolean {
  let matches = matchers.get(upstream);
  if (matches === undefined) {
    matches = compileGlobs(upstream.models);
    matchers.set(upstream, matches);
  }
  return matches(model);
}

/** A model name in the configuration, at one upstream that has it. */
interface ConfiguredModel {
  readonly upstream: Upstream;
  readonly model: string;
}

/**
 * Returns every full model name in the configuration: of upstreams, of groups' matches, and of spill targets. A name
 * without an upstream belongs to the upstreams of its group, or else to those to which `/v1` would send it.
 */
export function configuredModels(
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): ConfiguredModel[] {
  const all = [
    ...config.upstreams.flatMap((entry) => ofUpstream(entry, upstreams)),
    ...config.groups.flatMap((group) => [
      ...ofGroup(group, upstreams),
      ...ofSpill(group.on_saturated, upstreams),
    ]),
    ...config.auto_groups.flatMap(({ on_saturated: does = 'queue' }) => ofSpill(does, upstreams)),
  ];
  // Each once, by the name that a client would use.
  return [...new Map(all.map((one) => [`${one.upstream.id}/${one.model}`, one])).values()];
}

function ofUpstream(
  { id, models = [], aliases, prices }: UpstreamConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): ConfiguredModel[] {
  const upstream = upstreams.get(id);
  if (upstream === undefined) return [];
  const named = [...models, ...Object.keys(aliases), ...Object.keys(prices)];
  return named.filter(isInFull).map((model) => ({ upstream, model }));
}

function ofGroup(group: GroupConfig, upstreams: ReadonlyMap<string, Upstream>): ConfiguredModel[] {
  const own = namesUpstreams(group) ? upstreamsOf(group, upstreams) : null;
  return group.match.models.filter(isInFull).flatMap((name) => {
    const slash = name.indexOf('/');
    const named = upstreams.get(name.slice(0, Math.max(slash, 0)).toLowerCase());
    if (named !== undefined) {
      const isOwn = own === null || own.includes(named);
      return isOwn ? [{ upstream: named, model: name.slice(slash + 1) }] : [];
    }
    const at = own ?? [...upstreams.values()].filter((upstream) => servesModel(upstream, name));
    return at.map((upstream) => ({ upstream, model: name }));
  });
}

function ofSpill(
  onSaturated: GroupConfig['on_saturated'],
  upstreams: ReadonlyMap<string, Upstream>,
): ConfiguredModel[] {
  if (typeof onSaturated === 'string') return [];
  return onSaturated.spill_to.flatMap((stop) => {
    if (typeof stop === 'string' || stop.model === null) return [];
    const upstream = upstreams.get(stop.upstream);
    return upstream === undefined ? [] : [{ upstream, model: stop.model }];
  });
}

function isInFull(model: string): boolean {
  return !model.includes('*');
}
