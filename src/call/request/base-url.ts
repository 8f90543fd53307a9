import type { Dialect } from '../../contract/http.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { nearestName } from '../../config/explain-issues.ts';
import { isUpstreamAllowed } from '../../routing/key-access.ts';
import {
  isDeploymentPath,
  routeIn,
  withoutTrailingSlashes,
} from '../../upstream/operation/operation.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import { calledOrigin, splitPath, type AuthenticatedCall } from './call.ts';
import { dialectOfClient } from './operation-of.ts';

/**
 * Errors for clients with a wrong base URL. Each quotes the path that was called and names the base URL to set, with
 * the origin that the caller uses. A path is refused only if no upstream can serve it. Other paths are forwarded, and
 * the base URL is named once the upstream has answered 404 or 405.
 */

type BaseUrlCall = Pick<AuthenticatedCall, 'request' | 'url' | 'table' | 'caller'>;

/** A route that a client appends to its base URL. */
interface ClientRoute {
  readonly shape: Dialect;
  /** Whether a version precedes the route. It may come from the client or from its base URL. */
  readonly isVersioned: boolean;
}

interface AddedAt extends ClientRoute {
  /** Index in the path. */
  readonly start: number;
  /** Several dialects have the route, so the headers determine its dialect. */
  readonly isOfAll: boolean;
}

/** Maximum characters of a caller's path in an error. */
const SHOWN_MAX = 100;

const VERSION_AT_END = /\/v\d\w*$/i;

/** The error for a path whose first segment is not the id of an upstream. */
export function noUpstream(call: BaseUrlCall): ErrorReply {
  const { pathname } = call.url;
  const origin = calledOrigin(call);
  const [, first = ''] = pathname.split('/', 2);
  if (first === 'v1') {
    const message = `\`/v1\` is a base URL, not a route. Routes follow it, such as \`/v1/chat/completions\` or \`/v1/models\`. Set the base URL to \`${origin}/v1\`, and let your client add the route.`;
    return { reason: 'upstream_unknown', message };
  }
  const added = addedIn(pathname, call);
  const isRoute = added !== null && (added.start === 0 || /^v\d/i.test(first));
  if (isRoute) return wrong(`You called \`${shown(pathname)}\`.`, cure(call, added, []));
  const nearest = nearestUpstream(first, call);
  const meant = nearest === null ? '' : ` Did you mean \`${nearest}\`?`;
  const what = `There is no upstream \`${shown(first)}\`.${meant}`;
  const near = call.table.upstreams.get(nearest ?? '');
  if (added !== null) {
    return wrong(
      `You called \`${shown(pathname)}\`. ${what}`,
      cure(call, added, near === undefined ? [] : [near]),
    );
  }
  const example = near === undefined ? '/openai/v1/chat/completions' : `/${near.id}/…`;
  return wrong(
    what,
    ` A path begins with the id of an upstream, as in \`${example}\`, or with \`/v1\`. Set the base URL to \`${origin}/${near?.id ?? 'v1'}\`.`,
  );
}

/** The upstream whose id is nearest to a name, among those that the caller's key may use. */
export function nearestUpstream(
  name: string,
  { table: { upstreams, routes }, caller: { key } }: Pick<BaseUrlCall, 'table' | 'caller'>,
): string | null {
  const open = [...upstreams.values()].filter((each) => isUpstreamAllowed(key, each, routes));
  return nearestName(
    name,
    open.map(({ id }) => id),
  );
}

/** The error for a call to `/`. It names the base URL to set. */
export function rootIsNoRoute(
  request: Request,
  allow: readonly string[],
): { readonly dialect: Dialect; readonly reply: ErrorReply } {
  const url = new URL(request.url);
  const origin = calledOrigin({ request, url });
  const dialect = dialectOfClient(request.headers, url.searchParams);
  const upstreams = isolateConfig.copy?.upstreams;
  const isThere = (base: string): boolean => {
    const { id } = splitPath(base);
    return id === '' || id === 'v1' || (upstreams?.has(id) ?? true);
  };
  const [base = '/v1', more] = ROOT_CURES[dialect].filter(isThere);
  const message = `\`/\` is not a route for calls. Set the base URL to \`${origin}${base}\`${more === undefined ? '' : `, or to \`${origin}${more}\` for models of all upstreams`}.`;
  return { dialect, reply: { reason: 'method_unknown', message, allow } };
}

/** Base URLs of the built-in upstreams, by dialect. */
const ROOT_CURES = {
  openai: ['/openai/v1', '/v1'],
  anthropic: ['/anthropic', ''],
  gemini: ['/gemini'],
} as const;

/** Endpoints that are set as base URLs by mistake, followed by the route that the client appends. */
const DOUBLED =
  /^(?<base>.*?)\/(?:chat\/completions|completions|responses|messages|embeddings)(?<version>\/v\d\w*)?\/(?:chat\/completions|completions|responses|messages|embeddings|models)$/i;

/**
 * The error for a path with one endpoint behind another, which no provider has. null for other paths. `id` is the
 * upstream that the path begins with, because an upstream may be named like an endpoint.
 */
export function endpointAsBase(call: BaseUrlCall, id: string | null): ErrorReply | null {
  const own = id === null ? '' : `/${id}`;
  const { base, version = '' } = DOUBLED.exec(call.url.pathname.slice(own.length))?.groups ?? {};
  if (base === undefined) return null;
  const isAdded = version !== '' && base.toLowerCase().endsWith(version.toLowerCase());
  const set = isAdded ? base.slice(0, -version.length) : base;
  const what = `You called \`${shown(call.url.pathname)}\`, so the base URL of your client ends with an endpoint.`;
  return wrong(what, ` Set the base URL to \`${calledOrigin(call)}${own}${set}\`.`);
}

/**
 * The base URL for a path that names its upstream behind /v1: `/v1/openai/chat/completions`. null if it names none
 * there.
 */
export function cureBehindV1(call: BaseUrlCall): string | null {
  const { pathname } = call.url;
  const [, , id = ''] = pathname.split('/', 3);
  const named = call.table.upstreams.get(id);
  const added = named === undefined ? null : addedIn(pathname.slice(`/v1/${id}`.length), call);
  return named === undefined || added === null ? null : cure(call, added, [named]);
}

/**
 * Help for an error about a path below /v1 that names its upstream there, or whose dialect is not served there. Empty
 * if there is none.
 */
export function notUnified(call: BaseUrlCall): string {
  const behind = cureBehindV1(call);
  if (behind !== null) return behind;
  const added = addedIn(call.url.pathname, call);
  if (added === null || added.shape === 'openai' || added.shape === 'anthropic') return '';
  return cure(call, added, []);
}

/**
 * The base URL for a path that its upstream most likely does not have: one without its version, behind a second
 * version, or of another dialect. null if the upstream has such routes there, or nothing is known about the path.
 */
export function cureAt(call: BaseUrlCall, upstream: Upstream, path: string): string | null {
  const { dialect, openaiAt, anthropicAt, baseUrl } = upstream;
  if (dialect === 'opaque') return null;
  const own = `${calledOrigin(call)}/${upstream.id}`;
  const bare = withoutTrailingSlashes(path);
  if (MISPLACED.test(bare) || bare === openaiAt || bare === anthropicAt) {
    const shapes = [dialect, 'openai', 'anthropic'] as const;
    const bases = [...new Set(shapes.flatMap((shape) => basesAt(upstream, shape, own)))];
    return ` This is a base URL, not a route. Set the base URL to ${listed(bases.length === 0 ? [own] : bases)}, and let your client add the route.`;
  }
  if (isDeploymentPath(path)) {
    if (dialect === 'openai') return cure(call, { shape: 'azure', isVersioned: false }, []);
    if (dialect !== 'azure' || /^\/openai\/deployments\//i.test(path)) return null;
    // Clients add `/openai` to an endpoint, and nothing to a base URL.
    const at = path.toLowerCase().startsWith('/deployments/') ? '/openai' : '';
    return ` Set the base URL to \`${own}${at}\`.`;
  }
  const added = addedIn(path, call);
  if (added === null) return null;
  const { shape, start } = added;
  const mount = path.slice(0, start);
  if (!MISPLACED.test(mount) || (added.isOfAll && mount !== '')) return null;
  const at = { openai: openaiAt, anthropic: anthropicAt }[shape as string] ?? null;
  if (at !== null && isBelow(mount, at, baseUrl)) return null;
  const isOwn = shape === dialect && shape !== 'openai' && shape !== 'anthropic';
  if (isOwn && (shape !== 'gemini' || isOneVersion(mount))) return null;
  return cure(call, added, [upstream]);
}

/** Segments that wrong base URLs put before a route. A path behind any other segment is the upstream's own. */
const MISPLACED = /^(?:\/(?:v\d\w*|api|openai|anthropic|gemini))*$/i;

/**
 * Whether the upstream may have routes below `mount`. If its routes begin at its base URL, only a second version is
 * certainly wrong.
 */
function isBelow(mount: string, at: string, baseUrl: string): boolean {
  if (at !== '') return `${mount}/`.startsWith(`${at}/`);
  return !VERSION_AT_END.test(baseUrl) || !/^\/v\d/i.test(mount);
}

function isOneVersion(mount: string): boolean {
  return /^\/v\d/i.test(mount) && !/^\/v\d\w*\/v\d/i.test(mount);
}

/** The known route that a client appended to its base URL. null if there is none. */
function addedIn(path: string, { request, url }: BaseUrlCall): AddedAt | null {
  const route = path === '' ? null : routeIn(path, 'openai');
  if (route === null || (!route.limited && route.name !== 'models')) return null;
  const { shape } = route;
  // Some routes of the table begin with their version.
  const [version = ''] = /^\/v\d\w*(?=\/)/i.exec(path.slice(route.start)) ?? [];
  const start = route.start + version.length;
  return {
    shape: shape ?? dialectOfClient(request.headers, url.searchParams),
    isOfAll: shape === null,
    start,
    isVersioned: VERSION_AT_END.test(path.slice(0, start)),
  };
}

/** The sentence that names the base URL to set. `preferred` lists upstreams that the caller most likely meant. */
function cure(
  call: BaseUrlCall,
  { shape, isVersioned }: ClientRoute,
  preferred: readonly Upstream[],
): string {
  const origin = calledOrigin(call);
  const upstream = upstreamFor(call, shape, preferred);
  const bases = upstream === null ? [] : basesAt(upstream, shape, `${origin}/${upstream.id}`);
  const unified =
    shape === 'openai' ? [`${origin}/v1`] : shape === 'anthropic' ? [origin, `${origin}/v1`] : [];
  const set = pick(bases, isVersioned);
  const all = pick(unified, isVersioned);
  if (set === '' && all === '') {
    return ` No upstream here supports the \`${shape}\` dialect. Add one with \`dialect: ${shape}\`, or use another client.`;
  }
  if (set === '') return ` Set the base URL to ${all}.`;
  return ` Set the base URL to ${set}${all === '' ? '' : `, or to ${all} for models of all upstreams`}.`;
}

/** Of two base URLs, the first is for clients that add a version themselves. */
function pick([first, second]: readonly string[], isVersioned: boolean): string {
  if (first === undefined) return '';
  if (second === undefined) return `\`${first}\``;
  if (!isVersioned) return `\`${second}\``;
  return `\`${first}\` (\`${second}\` if your client adds no version)`;
}

/**
 * Base URLs for a dialect at an upstream: the first for clients that add a version, the second for those that do not.
 * There is one if no client adds a version.
 */
function basesAt(
  { dialect, openaiAt, anthropicAt }: Upstream,
  shape: Dialect,
  own: string,
): readonly string[] {
  switch (shape) {
    case 'openai':
      return openaiAt === null ? [] : [`${own}${openaiAt}`];
    case 'anthropic': {
      if (anthropicAt === null) return [];
      const unversioned = anthropicAt.replace(VERSION_AT_END, '');
      return unversioned === anthropicAt
        ? [`${own}${anthropicAt}`]
        : [`${own}${unversioned}`, `${own}${anthropicAt}`];
    }
    case 'gemini':
      return dialect === shape ? [own, `${own}/v1beta`] : [];
    case 'azure':
    case 'bedrock':
    case 'ollama':
    case 'opaque':
      return dialect === shape ? [own] : [];
  }
}

/**
 * The upstream for a dialect, among those that the caller's key may use: a preferred one, that of the provider, or the
 * first.
 */
function upstreamFor(
  { table, caller: { key } }: BaseUrlCall,
  shape: Dialect,
  preferred: readonly Upstream[],
): Upstream | null {
  const { upstreams, routes } = table;
  const providers = upstreams.get(shape);
  const rest = [...upstreams.values()].filter(({ dialect }) => dialect === shape);
  const all = [...preferred, ...(providers === undefined ? [] : [providers]), ...rest];
  const isOpen = (each: Upstream): boolean =>
    basesAt(each, shape, '').length > 0 && isUpstreamAllowed(key, each, routes);
  return all.find(isOpen) ?? null;
}

function wrong(what: string, help: string): ErrorReply {
  return { reason: 'upstream_unknown', message: `${what}${help}` };
}

function listed(bases: readonly string[]): string {
  return bases.map((base) => `\`${base}\``).join(' or ');
}

function shown(path: string): string {
  return path.length > SHOWN_MAX ? `${path.slice(0, SHOWN_MAX)}…` : path;
}
