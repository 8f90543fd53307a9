import type { Dialect } from '../../contract/http.ts';
import type { KeyHeader, Upstream } from '../../contract/config/upstream.ts';
import { parametersIn } from '../operation/readings.ts';
import {
  holdsGatewayKey,
  isGatewayKey,
  dropCookies,
  dropAccountSubprotocols,
  dropSubprotocols,
  keysInSubprotocols,
} from './tokens.ts';

export interface Credentials {
  /** The gateway key, wherever it was found. It is never sent upstream. */
  readonly gatewayKey: string | null;
  /** The key for the provider, without its scheme if that is `Bearer`. */
  readonly providerKey: string | null;
  /**
   * Whether the upstream may use another key than `providerKey`, because the call has several keys or a scheme other
   * than `Bearer`. Such a call can use one account under many values of `providerKey`.
   */
  readonly isAmbiguous: boolean;
  /** Whether the call is signed with SigV4 for another host. No proxy can forward it. */
  readonly sigV4: boolean;
  /** Why the caller cannot be determined. null if it can. */
  readonly fault: string | null;
}

const GATEWAY_HEADER = 'headgate-key';
const KEY_HEADERS = ['x-api-key', 'x-goog-api-key', 'api-key'] as const;
/** The parameters of Gemini and Azure. Browsers use them because a WebSocket cannot set headers. */
const KEY_PARAMETERS = ['key', 'api-key'] as const;

export const CREDENTIAL_HEADERS: readonly string[] = [
  GATEWAY_HEADER,
  'authorization',
  ...KEY_HEADERS,
];
const BEARER = /^bearer(?:\s+|$)/i;
const BASIC = /^basic\s+([\w+/=-]+)\s*$/i;
const SIGNATURE = /^AWS4-/i;

/**
 * Reads the keys of a call. A value that begins with `hg_` is a gateway key in any location. The header `headgate-key`
 * takes precedence over all others. The first other credential is the provider's.
 */
export function readCredentials(headers: Headers, query: URLSearchParams): Credentials {
  const authorization = headers.get('authorization') ?? '';
  const signed = SIGNATURE.test(authorization);
  const [named = null, ...others] = namedKeys((headers.get(GATEWAY_HEADER) ?? '').trim());
  const places = [
    signed ? [] : keysOfAuthorization(authorization, named),
    ...KEY_HEADERS.map((name) => keysIn((headers.get(name) ?? '').trim(), named)),
    ...KEY_PARAMETERS.flatMap((name) => query.getAll(name).map((value) => keysIn(value, named))),
    keysInSubprotocols(headers),
  ];
  const candidates = places.flat();
  const found = candidates.filter((value) => isGatewayKey(value, null));
  const gatewayKey = named ?? found[0] ?? null;
  const providerKeys = new Set(candidates.filter((value) => !isGatewayKey(value, gatewayKey)));
  const [providerKey = null] = providerKeys;
  return {
    gatewayKey,
    providerKey,
    isAmbiguous: providerKeys.size > 1 || /[\s,]/.test(providerKey ?? ''),
    sigV4: signed || query.has('X-Amz-Signature'),
    fault: gatewayKey === null ? null : faultOf(gatewayKey, [...others, ...found], places),
  };
}

function faultOf(
  gatewayKey: string,
  all: readonly string[],
  places: readonly (readonly string[])[],
): string | null {
  if (all.some((key) => key !== gatewayKey)) {
    return 'This call has two different gateway keys. Send only one of them.';
  }
  const isGateway = (key: string): boolean => isGatewayKey(key, gatewayKey);
  return places.some((keys) => keys.some(isGateway) && !keys.every(isGateway))
    ? 'One header of this call has a gateway key and another key. Send the gateway key in the `headgate-key` header and the other key in a header of its own.'
    : null;
}

const MISWRITTEN = /[,"']|^bearer\s/i;

/**
 * The keys in a credential. A gateway key is also recognized if it is repeated with commas, quoted, or preceded by a
 * second `Bearer`. A provider's key is left unchanged, because its provider decides what is valid. `own` is the key
 * that the call names as its gateway key.
 */
function keysIn(value: string, own: string | null): readonly string[] {
  if (value === '') return [];
  if (!MISWRITTEN.test(value)) return [value];
  const keys = bareKeys(value);
  return keys.some((key) => isGatewayKey(key, own)) ? keys : [value];
}

/** The keys in `headgate-key`. They need not begin with `hg_`. */
function namedKeys(value: string): readonly string[] {
  if (value === '') return [];
  const keys = MISWRITTEN.test(value) ? bareKeys(value) : [value];
  return keys.length === 1 || keys.some((key) => isGatewayKey(key, null)) ? keys : [value];
}

/** The distinct keys in a text, without quotes and schemes. */
function bareKeys(text: string): readonly string[] {
  const keys = text.split(',').map((part) => bareKey(bareKey(part)));
  return [...new Set(keys.filter((key) => key !== ''))];
}

function bareKey(text: string): string {
  const key = text.trim().replace(/^(?:bearer(?:\s+|$))+/i, '');
  return key.replace(/^(["'])(.*)\1$/s, '$2').trim();
}

/** A key of the operator, and where it goes. */
interface InjectedKey {
  readonly place: KeyHeader;
  readonly key: string;
}

/** Returns which key to put on a call. null leaves the caller's key in place. */
export function keyToPlace(
  upstream: Upstream,
  shape: Dialect,
  injected: string | null,
): InjectedKey | null | 'none' {
  if (injected !== null) return { place: keyPlaceFor(upstream, shape), key: injected };
  return upstream.isKeyless ? 'none' : null;
}

/**
 * Adapts the headers and the query of a call to the upstream, in place. Gateway keys are removed from the credential
 * headers and from the whole query. `upstreamRequestHeaders` has already removed them from all other headers. If a key
 * is injected, or the upstream takes none, every other credential is removed as well. Otherwise the caller's
 * credentials stay where its SDK put them. The query is only changed if necessary, because any change encodes it again.
 */
export function placeCredentials(
  headers: Headers,
  query: URLSearchParams,
  credentials: Credentials,
  injected: InjectedKey | null | 'none',
): void {
  const { gatewayKey } = credentials;
  const leaves = (value: string): boolean => injected !== null || isGatewayKey(value, gatewayKey);
  const leavesAny = (keys: readonly string[]): boolean => injected !== null || keys.some(leaves);

  headers.delete(GATEWAY_HEADER);
  // Collect first and delete afterwards, because deleting during iteration skips entries.
  const found = [...query].filter(([name, value]) =>
    holdsGatewayKey(`${name} ${value}`, gatewayKey),
  );
  for (const [name, value] of found) query.delete(name, value);
  // Without a gateway key, the caller's credentials are forwarded unchanged.
  if (injected === null && gatewayKey === null) return;
  const authorization = headers.get('authorization');
  if (authorization !== null && leavesAny(keysOfAuthorization(authorization, gatewayKey))) {
    headers.delete('authorization');
  }
  for (const name of KEY_HEADERS) {
    const value = headers.get(name);
    if (value !== null && leavesAny(keysIn(value.trim(), gatewayKey))) headers.delete(name);
  }
  for (const name of KEY_PARAMETERS) {
    for (const value of new Set(query.getAll(name))) {
      if (leavesAny(keysIn(value, gatewayKey))) query.delete(name, value);
    }
  }
  dropSubprotocols(headers, leaves);

  if (injected === null || injected === 'none') return;
  if (injected.place === 'bearer') headers.set('authorization', `Bearer ${injected.key}`);
  else headers.set(injected.place, injected.key);
}

/**
 * Endings of the names of headers and parameters that carry a credential of any service, such as `apikey` or
 * `Helicone-Auth`. `Idempotency-Key` is not one.
 */
const CREDENTIAL_NAME =
  /(?<!^idempotency-)(?:auth|authorization|cookie|credential|jwt|key|password|secret|sig|signature|token)$/i;

/** Names of headers and parameters that never contain a key: those of HTTP, SDKs and proxies, and request ids. */
const HARMLESS_NAME =
  /^(?:accept|access-control|alt|anthropic-(?:beta|dangerous|version)|api-version|baggage|b3|cache-control|cdn-loop|cf-|connection|content-|date|dnt|expect|forwarded|from|headgate-|host|http-referer|if-|keep-alive|max-forwards|model|mode|openai-(?:beta|organization|project)|origin|pragma|priority|proxy-connection|range|referer|sec-|sentry-trace|stream|te|traceparent|tracestate|trailer|transfer-encoding|upgrade|user-agent|via|warning|x-(?:amzn-trace|b3|client|datadog|forwarded|goog-api-client|real-ip|requested-with|stainless|title|cloud-trace))|(?:^|[-_])(?:id|ids|request|retry|timestamp|timeout|trace|version)$/i;

/** Names that end like credentials but contain none. */
const NO_KEY_NAME = /^(?:headgate|sec)-|idempotency/i;

/** A text that may be a provider's key: long, without spaces, with letters and digits. */
const LIKE_A_KEY = /^(?=\S*[a-z])(?=\S*\d)[\w.~+/=:-]{16,}$/i;

/**
 * Joins the fields of a call that may contain a key in an unknown location into one text. Returns null if there are
 * none. A field counts if its name looks like a credential's, or if its value looks like a key and its name is not
 * known to be harmless.
 */
export function hiddenKeyIn(headers: Headers, query: URLSearchParams): string | null {
  const mayBeKey = ([name, value]: readonly [string, string]): boolean => {
    if (value === '' || isGatewayKey(value, null) || NO_KEY_NAME.test(name)) return false;
    if (CREDENTIAL_NAME.test(name)) return true;
    return !HARMLESS_NAME.test(name) && LIKE_A_KEY.test(value);
  };
  const found = [...headers, ...query].filter(mayBeKey);
  return found.length === 0 ? null : JSON.stringify(found);
}

/**
 * Removes, in place, everything that may be a credential. It is used for calls to an upstream that the caller did not
 * choose. Unknown headers and parameters are recognized by name.
 */
export function dropCredentials(headers: Headers, query: URLSearchParams): void {
  const isOne = (name: string): boolean => CREDENTIAL_NAME.test(name);
  // Collect first and delete afterwards, because deleting during iteration skips entries.
  const named = {
    headers: [...headers.keys()].filter(isOne),
    query: parametersIn(query).flatMap(({ name, within }) => (isOne(name) ? [within] : [])),
  };
  for (const name of named.headers) headers.delete(name);
  for (const name of named.query) query.delete(name);
  dropSubprotocols(headers, () => true);
}

/** Names that select the account of a call, in lower case. */
interface AccountNames {
  readonly headers: ReadonlySet<string>;
  readonly parameters: ReadonlySet<string>;
  /** Other headers and parameters, in lower case and with dashes between words. */
  readonly pattern: RegExp;
}

/** A typical header name, which has no other spelling. */
const PLAIN = /^[a-z0-9-]+$/;

/**
 * Removes, in place, the headers and parameters that choose an account or control a gateway. It applies to calls with
 * the operator's key: only the operator may choose, and a key must not be rejected because of another key's account.
 * Returns the names that were removed. Names of parameters begin with `?`. `isListed` returns whether the operator
 * allows a header.
 */
export function dropAccounts(
  headers: Headers,
  query: URLSearchParams,
  { headers: names, parameters, pattern }: AccountNames,
  isListed: (header: string) => boolean = () => false,
): readonly string[] {
  const selects = (name: string): boolean => {
    const dashed = PLAIN.test(name) ? name : dashedWords(name);
    return names.has(dashed) || pattern.test(dashed);
  };
  const isSelector = (name: string): boolean => selects(name) && !isListed(name);
  const inQuery = (name: string): boolean => parameters.has(name.toLowerCase()) || selects(name);
  const inCookie = (pair: string): boolean => isSelector(pair.split('=', 1)[0] ?? '');
  // Collect first and delete afterwards, because deleting during iteration skips entries.
  const found = [...headers.keys()].filter(isSelector);
  const foundInQuery = parametersIn(query).filter(({ name }) => inQuery(name));
  for (const name of found) headers.delete(name);
  for (const { within } of foundInQuery) query.delete(within);
  const cookies = isListed('cookie') || !dropCookies(headers, inCookie) ? [] : ['cookie'];
  const subprotocols = dropAccountSubprotocols(headers, selects);
  const parametersFound = new Set(foundInQuery.map(({ name }) => `?${name}`));
  return [...found, ...parametersFound, ...cookies, ...subprotocols];
}

/**
 * Writes `$userProject`, `user_project`, `user.project` and `user-project[]` as `user-project`, because some servers
 * treat them as equal.
 */
function dashedWords(name: string): string {
  const words = name.replace(/\[.*$/s, '').replace(/(?<=[a-z])(?=[A-Z])/g, '-');
  const dashed = words.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '');
  return dashed.toLowerCase();
}

/**
 * Where an injected key goes on a call of a given shape. The OpenAI-shaped routes of Gemini and Anthropic expect a
 * bearer token, while their native routes use their own header.
 */
export function keyPlaceFor(upstream: Upstream, shape: Dialect): KeyHeader {
  const isOfItsOwn = upstream.keyPlace === 'x-goog-api-key' || upstream.keyPlace === 'x-api-key';
  return shape === 'openai' && isOfItsOwn ? 'bearer' : upstream.keyPlace;
}

/**
 * The keys of an `Authorization` header. For `Bearer` it is the token, and for `Basic` the gateway keys in the user or
 * the password. For any other scheme it is the whole value.
 */
function keysOfAuthorization(value: string, own: string | null): readonly string[] {
  if (value === '') return [];
  const [, encoded] = BASIC.exec(value) ?? [];
  const named = encoded === undefined ? [] : decoded(encoded).split(':');
  const gatewayKeys = named.filter((each) => isGatewayKey(each, own));
  return gatewayKeys.length > 0 ? gatewayKeys : keysIn(value.replace(BEARER, '').trim(), own);
}

/** Decodes base64. Returns an empty text for invalid input. */
function decoded(base64: string): string {
  try {
    return atob(base64);
  } catch {
    return '';
  }
}
