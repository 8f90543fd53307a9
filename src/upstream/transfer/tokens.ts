/** Where credentials hide in texts: gateway keys, cookies, subprotocols, and claims of tokens. */

/** The prefix of every gateway key that Headgate creates. */
const PREFIX = 'hg_';

const BEARER = /^bearer\s+/i;

/**
 * A gateway key within a text: at the start of a word, or anywhere in the exact form that Headgate creates. A match in
 * the middle of a word is not enough, because provider tokens are random.
 */
const IN_TEXT = /(?:^|[\s=:,;"'(])hg_\S|hg_[0-9a-f]{48}/;

/** Minimum length of a key to search for anywhere in a text. A shorter one may be part of an unrelated word. */
const FOUND_ANYWHERE_LENGTH_MIN = 16;

/** Whether a credential is a gateway key. `own` is the key of this call, which need not begin with the prefix. */
export function isGatewayKey(value: string, own: string | null): boolean {
  return value === own || value.startsWith(PREFIX);
}

/** Whether the value of a form field is a gateway key. A text may mention keys but does not begin with one. */
export function isKeyInField(value: string, own: string | null): boolean {
  const key = value.trim().replace(BEARER, '');
  return key === own || /^hg_\S/.test(key);
}

/** Whether a text contains a gateway key: a header, a parameter or a cookie. */
export function holdsGatewayKey(text: string, own: string | null = null): boolean {
  return isIn(text, own) || (text.includes('%') && isIn(unescaped(text), own));
}

function isIn(text: string, own: string | null): boolean {
  // Most texts do not contain the prefix, and searching for it is faster than the pattern.
  if (text.includes(PREFIX) && IN_TEXT.test(text)) return true;
  return own !== null && own.length >= FOUND_ANYWHERE_LENGTH_MIN && text.includes(own);
}

/** Removes one layer of URI encoding where there is one. */
export function unescaped(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/**
 * Names of the cookies that authorize a browser at Headgate: our own sessions and those of Cloudflare Access. A name
 * may follow a `=`, which browsers omit for nameless cookies, or a comma, which joins repeated headers.
 */
const OURS = /(?:^|,)[\s=]*(?:headgate_|cf_(?:authorization|appsession|binding))/i;

/** Paths of our own pages. A cookie for `/` is also meant for the upstreams. */
const OUR_PATH = /;\s*path\s*=\s*"?\/(?:admin|healthz|metrics|status)(?:[/;\s"]|$)/i;

/** Whether a cookie, as `name=value`, is meant for Headgate and not for an upstream. */
export function isOurCookie(pair: string): boolean {
  return OURS.test(pair);
}

/**
 * Whether an upstream's `Set-Cookie` would affect Headgate, by the name of one of our cookies or by the path of our
 * pages.
 */
export function reachesIn(setCookie: string): boolean {
  return OURS.test(setCookie) || OUR_PATH.test(setCookie);
}

/** Removes, in place, matching cookies of a request, each as `name=value`. Returns whether any matched. */
export function dropCookies(headers: Headers, isGone: (pair: string) => boolean): boolean {
  const cookie = headers.get('cookie');
  if (cookie === null) return false;
  const all = cookie.split(';').map((pair) => pair.trim());
  const kept = all.filter((pair) => !isGone(pair));
  if (kept.length === all.length) return false;
  if (kept.length === 0) headers.delete('cookie');
  else headers.set('cookie', kept.join('; '));
  return true;
}

/** The header in which a WebSocket offers subprotocols. It is the only one that a browser lets its page set. */
const OFFERED = 'sec-websocket-protocol';

/** The subprotocols in which OpenAI accepts a page's key and the account that it belongs to. */
const KEY = /^openai-insecure-api-key\.(.+)$/i;
const ACCOUNT = /^openai[_-](?:organization|project)\./i;

export function keysInSubprotocols(headers: Headers): readonly string[] {
  return offered(headers).flatMap((each) => KEY.exec(each)?.[1] ?? []);
}

/** The subprotocol of a connection that Headgate accepts itself. null if the client offers none but keys. */
export function acceptedSubprotocol(headers: Headers): string | null {
  const all = offered(headers).filter((each) => each !== '');
  return all.find((each) => !KEY.test(each) && !ACCOUNT.test(each)) ?? null;
}

/** Removes matching keys in place, together with the subprotocols that select their account. */
export function dropSubprotocols(headers: Headers, leaves: (key: string) => boolean): void {
  const all = offered(headers);
  const isGone = (each: string): boolean => {
    const [, key] = KEY.exec(each) ?? [];
    return key !== undefined && leaves(key);
  };
  if (!all.some(isGone)) return;
  const theirs = all.filter((each) => !KEY.test(each) && !ACCOUNT.test(each));
  if (theirs.length === 0) headers.delete(OFFERED);
  else headers.set(OFFERED, theirs.join(', '));
}

/**
 * Removes, in place, the subprotocols that select an account or control a gateway, as in `openai-organization.org-1`.
 * Returns their names without the account.
 */
export function dropAccountSubprotocols(
  headers: Headers,
  isSelector: (name: string) => boolean,
): readonly string[] {
  const all = offered(headers);
  const isGone = (each: string): boolean =>
    each.includes('.') && isSelector(nameOf(each).toLowerCase());
  const gone = all.filter(isGone);
  if (gone.length === 0) return [];
  const theirs = all.filter((each) => !isGone(each));
  if (theirs.length === 0) headers.delete(OFFERED);
  else headers.set(OFFERED, theirs.join(', '));
  return gone.map(nameOf);
}

function nameOf(subprotocol: string): string {
  return subprotocol.slice(0, subprotocol.indexOf('.'));
}

function offered(headers: Headers): readonly string[] {
  const text = headers.get(OFFERED);
  return text === null ? [] : text.split(',').map((each) => each.trim());
}

/** Maximum length of a token that is decoded. Without it, a header as large as the platform allows would be decoded. */
const TOKEN_LENGTH_MAX = 16_384;

/** Maximum length of a claim that can name an account. Longer values are ignored. */
const VALUE_LENGTH_MAX = 200;

/**
 * Reads the claims of a key that is a JSON Web Token. Returns null for other keys. The signature is not checked, so the
 * claims are unverified until the upstream accepts the token.
 */
export function claimsOf(token: string): Readonly<Record<string, unknown>> | null {
  // Every token starts with `eyJ`, the base64 of the beginning of a JSON object.
  if (!token.startsWith('eyJ') || token.length > TOKEN_LENGTH_MAX) return null;
  const [, payload, signature, ...rest] = token.split('.');
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  try {
    const binary = atob(payload.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return isObject(claims) ? claims : null;
  } catch {
    return null;
  }
}

/** Returns the value at a path as text, or null if it is missing, empty, too long, or neither a string nor a number. */
export function claimAt(
  claims: Readonly<Record<string, unknown>>,
  path: readonly string[],
): string | null {
  let found: unknown = claims;
  for (const name of path) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return null;
    found = found[name];
  }
  if (typeof found === 'number') return String(found);
  return typeof found === 'string' && found !== '' && found.length <= VALUE_LENGTH_MAX
    ? found
    : null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
