import { unescaped } from './gateway-key.ts';

/**
 * Addresses in the headers of an answer. Clients follow these with the credentials that they have for Headgate, so an
 * address below the upstream's base URL becomes one of ours, and any other address does not reach a caller with a
 * gateway key.
 */

/** Headers whose address clients call next, with their credentials. */
const FOLLOWED = [
  'location',
  'operation-location',
  'azure-asyncoperation',
  'x-goog-upload-url',
  'x-goog-upload-control-url',
] as const;

/** A header with the address at which the content of the answer is stored. */
const CONTENT_LOCATION = 'content-location';

const LINK = 'link';

const WITH_ADDRESSES = [...FOLLOWED, CONTENT_LOCATION, LINK];

/** The route of a call, by which its answer's addresses are rewritten. */
export interface AddressRewrite {
  /** The URL of the call to the upstream. Relative addresses are resolved against it. */
  readonly askedUrl: string;
  /** Base URL of the upstream, without a trailing slash. */
  readonly baseUrl: string;
  /** The same place at Headgate, without a trailing slash: `https://gateway.example/openai`. */
  readonly ownUrl: string;
  /** The operator's key that the call used. Null: none. */
  readonly injected: string | null;
  /** Whether addresses outside of the base URL reach the caller. */
  readonly passesElsewhere: boolean;
}

/** The addresses of an answer that change. */
export interface Readdressed {
  /** Headers to set, and to delete (null). */
  readonly changed: ReadonlyMap<string, string | null>;
  /** Host of the first address outside of the base URL that does not pass. Null: there is none. */
  readonly elsewhere: string | null;
}

/** Whether an answer has addresses. Most have none. */
export function hasAddresses(headers: Headers): boolean {
  return WITH_ADDRESSES.some((name) => headers.has(name));
}

/** An address in a `Link`. A quoted string, such as a title, is none. */
const TARGET = /"(?:[^"\\]|\\.)*"|<([^<>]*)>/g;

/** Reads the addresses of an answer. */
export function readdress(headers: Headers, way: AddressRewrite): Readdressed {
  const changed = new Map<string, string | null>();
  let elsewhere: string | null = null;
  for (const name of FOLLOWED) {
    const value = headers.get(name);
    if (value === null) continue;
    const address = ownAddress(value, way);
    changed.set(name, address.text);
    if (address.text === null) elsewhere ??= address.host;
  }
  const content = headers.get(CONTENT_LOCATION);
  if (content !== null) changed.set(CONTENT_LOCATION, inOwnWords(content, way));
  const link = headers.get(LINK);
  if (link !== null) {
    const rewrite = (all: string, target?: string): string =>
      target === undefined ? all : `<${inOwnWords(target, way) ?? ''}>`;
    changed.set(LINK, link.replace(TARGET, rewrite));
  }
  return { changed, elsewhere };
}

/** Whether clients follow `Location` after this status. */
export function isRedirect(status: number): boolean {
  return status >= 300 && status <= 399 && status !== 304;
}

interface OwnAddress {
  /** Null: it must not reach the caller. */
  readonly text: string | null;
  readonly host: string;
}

/** Maximum length of a logged host: upstreams choose it. */
const HOST_MAX = 100;

/** Turns an address that clients follow into one that they may follow. */
function ownAddress(value: string, way: AddressRewrite): OwnAddress {
  const url = URL.parse(value.trim(), way.askedUrl);
  if (url === null) return { text: null, host: '' };
  const host = url.host.slice(0, HOST_MAX);
  const own = below(url, way);
  if (own !== null) return { text: own, host };
  return { text: way.passesElsewhere && !holdsKey(url.href, way) ? value : null, host };
}

/** Turns an informational address into ours if it can be called here. Any other stays, without the operator's key. */
function inOwnWords(value: string, way: AddressRewrite): string | null {
  const url = URL.parse(value.trim(), way.askedUrl);
  const own = url === null ? null : below(url, way);
  return own ?? (holdsKey(value, way) ? null : value);
}

/** The address at Headgate of a URL below the base URL, without the operator's key. Null: it is not below. */
function below(url: URL, way: AddressRewrite): string | null {
  const base = new URL(way.baseUrl);
  const basePath = base.pathname === '/' ? '' : base.pathname;
  // Servers behind a proxy that terminates TLS often write http. The call uses the base URL's scheme anyway.
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  if (!isWeb || url.hostname !== base.hostname || url.port !== base.port) return null;
  const rest = url.pathname.slice(basePath.length);
  if (!url.pathname.startsWith(basePath) || (rest !== '' && !rest.startsWith('/'))) return null;
  // Found first, deleted afterwards: deleting while iterating skips entries.
  const keys = [...url.searchParams].filter((pair) => pair.some((text) => holdsKey(text, way)));
  for (const [name, value] of keys) url.searchParams.delete(name, value);
  const own = `${way.ownUrl}${rest}${url.search}${url.hash}`;
  return holdsKey(own, way) ? null : own;
}

/** Whether a text holds the operator's key, also where it is escaped. */
function holdsKey(text: string, { injected }: AddressRewrite): boolean {
  return injected !== null && (text.includes(injected) || unescaped(text).includes(injected));
}
