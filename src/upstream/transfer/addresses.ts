import { unescaped } from './gateway-key.ts';

/**
 * Addresses in response headers. Clients follow them with their Headgate credentials. An address below the upstream's
 * base URL is therefore rewritten to one of ours. Any other address is removed for callers with a gateway key.
 */

/** Headers whose address clients call next, with their credentials. */
const FOLLOWED = [
  'location',
  'operation-location',
  'azure-asyncoperation',
  'x-goog-upload-url',
  'x-goog-upload-control-url',
] as const;

const CONTENT_LOCATION = 'content-location';

const LINK = 'link';

const WITH_ADDRESSES = [...FOLLOWED, CONTENT_LOCATION, LINK];

/** The route of a call, which determines how addresses in its response are rewritten. */
export interface AddressRewrite {
  /** URL of the call to the upstream. Relative addresses are resolved against it. */
  readonly askedUrl: string;
  /** Base URL of the upstream, without a trailing slash. */
  readonly baseUrl: string;
  /** The same location at Headgate, without a trailing slash: `https://gateway.example/openai`. */
  readonly ownUrl: string;
  /** The operator's key that the call used. null if it used none. */
  readonly injected: string | null;
  /** Whether addresses outside of the base URL are passed to the caller. */
  readonly passesElsewhere: boolean;
}

export interface Readdressed {
  /** Headers to set. null deletes the header. */
  readonly changed: ReadonlyMap<string, string | null>;
  /** Host of the first address outside of the base URL that was removed. null if there is none. */
  readonly elsewhere: string | null;
}

/** Whether a response has any addresses. Most have none. */
export function hasAddresses(headers: Headers): boolean {
  return WITH_ADDRESSES.some((name) => headers.has(name));
}

/**
 * An address in a `Link` header. Quoted strings, such as titles, are matched first so that their content is not taken
 * for an address.
 */
const TARGET = /"(?:[^"\\]|\\.)*"|<([^<>]*)>/g;

export function readdress(headers: Headers, route: AddressRewrite): Readdressed {
  const changed = new Map<string, string | null>();
  let elsewhere: string | null = null;
  for (const name of FOLLOWED) {
    const value = headers.get(name);
    if (value === null) continue;
    const address = ownAddress(value, route);
    changed.set(name, address.text);
    if (address.text === null) elsewhere ??= address.host;
  }
  const content = headers.get(CONTENT_LOCATION);
  if (content !== null) changed.set(CONTENT_LOCATION, rewriteInformational(content, route));
  const link = headers.get(LINK);
  if (link !== null) {
    const rewrite = (all: string, target?: string): string =>
      target === undefined ? all : `<${rewriteInformational(target, route) ?? ''}>`;
    changed.set(LINK, link.replace(TARGET, rewrite));
  }
  return { changed, elsewhere };
}

/** Whether clients follow `Location` after this status. */
export function isRedirect(status: number): boolean {
  return status >= 300 && status <= 399 && status !== 304;
}

interface OwnAddress {
  /** null if the address must not reach the caller. */
  readonly text: string | null;
  readonly host: string;
}

/** Maximum length of a logged host, because upstreams choose it. */
const HOST_MAX = 100;

/** Rewrites an address that clients follow. `text` is null if the caller must not receive it. */
function ownAddress(value: string, route: AddressRewrite): OwnAddress {
  const url = URL.parse(value.trim(), route.askedUrl);
  if (url === null) return { text: null, host: '' };
  const host = url.host.slice(0, HOST_MAX);
  const own = below(url, route);
  if (own !== null) return { text: own, host };
  return { text: route.passesElsewhere && !holdsKey(url.href, route) ? value : null, host };
}

/**
 * Rewrites an informational address if it can be called through Headgate. Any other address stays, unless it contains
 * the operator's key.
 */
function rewriteInformational(value: string, route: AddressRewrite): string | null {
  const url = URL.parse(value.trim(), route.askedUrl);
  const own = url === null ? null : below(url, route);
  return own ?? (holdsKey(value, route) ? null : value);
}

/**
 * Returns the address at Headgate of a URL below the base URL, without the operator's key. null if the URL is not below
 * it.
 */
function below(url: URL, route: AddressRewrite): string | null {
  const base = new URL(route.baseUrl);
  const basePath = base.pathname === '/' ? '' : base.pathname;
  // Servers behind a proxy that terminates TLS often write `http`. The call uses the scheme of the base URL in any
  // case.
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  if (!isWeb || url.hostname !== base.hostname || url.port !== base.port) return null;
  const rest = url.pathname.slice(basePath.length);
  if (!url.pathname.startsWith(basePath) || (rest !== '' && !rest.startsWith('/'))) return null;
  // Collect first and delete afterwards, because deleting during iteration skips entries.
  const keys = [...url.searchParams].filter((pair) => pair.some((text) => holdsKey(text, route)));
  for (const [name, value] of keys) url.searchParams.delete(name, value);
  const own = `${route.ownUrl}${rest}${url.search}${url.hash}`;
  return holdsKey(own, route) ? null : own;
}

/** Whether a text contains the operator's key, plain or escaped. */
function holdsKey(text: string, { injected }: AddressRewrite): boolean {
  return injected !== null && (text.includes(injected) || unescaped(text).includes(injected));
}
