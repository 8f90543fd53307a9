import type { Forwarded } from '../contract/http.ts';
import type { Env } from '../env.ts';
import { BoundedMap } from '../core/parts/bounded-map.ts';
import type { ErrorReply } from '../contract/reasons.ts';

/**
 * Where a request comes from. Addresses of clients and hosts: which client sent it, which hosts are private, and how
 * often an address may fail. Pages of other sites, on whose behalf a browser sends requests.
 *
 * Such a page needs no permission for simple requests (GET, HEAD, and POST with a form, plain text or no type) or for
 * opening a WebSocket. The browser only withholds the answer. Such a request must not change anything, and must not
 * reach an upstream that needs no key.
 */

/** Stands for all requests whose address is unknown, so they are counted together. */
const UNKNOWN_ADDRESS = 'everybody';

interface AddressHeaders {
  readonly headers: Headers;
  /** Cloudflare's request properties, or `Forwarded` from the self-hosted forwarder. */
  readonly cf?: object | undefined;
}

/**
 * Returns the address under which failed and rejected requests are counted. IPv6 addresses count by their first 64
 * bits, because a client usually owns the whole prefix.
 *
 * Cloudflare sets `cf-connecting-ip`. Callers of a self-hosted Headgate could set that header themselves. There the
 * forwarder passes the address as a property that no header can set.
 */
export function addressOf(env: Pick<Env, 'BOOT_ID'>, { headers, cf }: AddressHeaders): string {
  if (env.BOOT_ID === undefined) {
    return countedAddress(headers.get('cf-connecting-ip') ?? UNKNOWN_ADDRESS);
  }
  const { clientIp = UNKNOWN_ADDRESS }: Partial<Forwarded> = { ...cf };
  return countedAddress(clientIp);
}

/** Returns the first 64 bits of an IPv6 address. An IPv4-mapped IPv6 address is returned as IPv4. */
export function countedAddress(address: string): string {
  // A link-local address may carry the name of its interface.
  const host = `[${address.replace(/%.*$/s, '')}]`;
  if (!address.includes(':') || !URL.canParse(`http://${host}`)) return address;
  const words = v6Words(new URL(`http://${host}`).hostname.slice(1, -1));
  const isMapped = words[5] === 0xffff && words.slice(0, 5).every((word) => word === 0);
  const bytes = words.slice(6).flatMap((word) => [word >> 8, word & 0xff]);
  const prefix = words.slice(0, 4).map((word) => word.toString(16));
  return isMapped ? bytes.join('.') : `${prefix.join(':')}::/64`;
}

/** Whether an address belongs to one client. Behind a self-hosted Headgate it may be the proxy that terminates TLS. */
export function isOwnAddress(env: Pick<Env, 'BOOT_ID'>, address: string): boolean {
  return env.BOOT_ID === undefined && address !== UNKNOWN_ADDRESS;
}

/** Parses an address as `URL` writes it (lower-case hexadecimal, at most one `::`) into its eight 16-bit words. */
function v6Words(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const words = (text: string) =>
    text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));
  if (tail === undefined) return words(head);
  const [start, end] = [words(head), words(tail)];
  return [...start, ...Array<number>(8 - start.length - end.length).fill(0), ...end];
}

/** Suffixes of names that only a private network resolves (RFC 6761, 6762, 8375, and common custom ones). */
const PRIVATE_NAMES = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|home\.arpa)$/;

const V4 = /^\d+\.\d+\.\d+\.\d+$/;

/** First address and prefix length of every IPv4 range that is not on the public network. */
const PRIVATE_V4: readonly (readonly [address: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
];

/**
 * Whether a URL's host is private, loopback, link-local, or a name that only a private network resolves. Expects
 * `hostname` of a parsed `URL`, which has already converted decimal, octal and hexadecimal IPv4 addresses to dotted
 * form. It does not resolve names.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '');
  if (host.startsWith('[')) return isPrivateV6(host.slice(1, -1));
  if (V4.test(host)) return isPrivateV4(v4Number(host));
  return !host.includes('.') || PRIVATE_NAMES.test(host);
}

/** Whether a URL's host is an IP address. Expects `hostname` of a parsed `URL`. */
export function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || V4.test(hostname.replace(/\.$/, ''));
}

function v4Number(dotted: string): number {
  return dotted.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function isPrivateV4(address: number): boolean {
  return PRIVATE_V4.some(([first, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(address / size) === Math.floor(v4Number(first) / size);
  });
}

function isPrivateV6(address: string): boolean {
  const words = v6Words(address);
  const [first = 0, second = 0, third = 0] = words;
  const embedded = (high: number, low: number) =>
    isPrivateV4((words[high] ?? 0) * 65_536 + (words[low] ?? 0));
  if ((first & 0xfe00) === 0xfc00) return true; // unique local, fc00::/7
  if (first >= 0xfe80) return true; // link-local, site-local and multicast, fe80::/9 and ff00::/8
  if (first === 0x2001 && second === 0) return true; // Teredo, 2001::/32: a host behind some other address
  if (first === 0x100 && words.slice(1, 4).every((word) => word === 0)) return true; // discard, 100::/64
  if (first === 0x2002) return embedded(1, 2); // 6to4
  if (first === 0x64 && second === 0xff9b) return third === 1 || embedded(6, 7); // NAT64
  // `::`, `::1`, and IPv4 in its mapped, translated and compatible forms.
  if (words.slice(0, 4).every((word) => word === 0)) return embedded(6, 7);
  return false;
}

const WINDOW_MS = 60_000;

/** Maximum addresses that are tracked. The one that failed longest ago is dropped first. */
const ADDRESSES_MAX = 10_000;

/** Counts wrong tokens and keys by client address. The counts are in memory only, so a reset clears them. */
export class FailedAttempts {
  readonly #byAddress = new BoundedMap<
    string,
    { readonly count: number; readonly sinceMs: number }
  >(ADDRESSES_MAX);

  /** Returns the failures within the last minute. */
  recent(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    return known === undefined || nowMs - known.sinceMs >= WINDOW_MS ? 0 : known.count;
  }

  /** Counts a failure, and returns the number within the last minute. */
  count(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    const isOld = known === undefined || nowMs - known.sinceMs >= WINDOW_MS;
    const next = isOld ? { count: 1, sinceMs: nowMs } : { ...known, count: known.count + 1 };
    this.#byAddress.set(address, next);
    return next.count;
  }
}

/** JSON, or a type based on it, such as `application/merge-patch+json`. */
const JSON_TYPE = /^\s*application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;|$)/i;

/** Like JSON, this type needs the server's permission before a page of another site can send it. */
const YAML_TYPE = /^\s*(?:application|text)\/(?:[\w.!#$&^-]+[+-])?yaml\s*(?:;|$)/i;

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether a page of another site sent the request and its origin is not listed. Non-browser clients send neither
 * header.
 */
export function isCrossSite({ headers, url }: Request, origins: readonly string[]): boolean {
  const origin = headers.get('origin');
  if (origin !== null && origins.includes(origin)) return false;
  const site = headers.get('sec-fetch-site')?.trim().toLowerCase();
  if (site === 'cross-site') return true;
  // `same-site` is a sibling host or another port. A request with our own origin is not cross-site.
  return origin === null ? site === 'same-site' : !isSameHost(origin, url);
}

/**
 * Whether an origin has the host of the called URL. The scheme may differ behind a proxy that terminates TLS. Only http
 * origins count, because an app may use any host for its own pages, as in `app://example.com`.
 */
export function isSameHost(origin: string, url: string): boolean {
  return (
    /^https?:/.test(origin) && URL.canParse(origin) && new URL(origin).host === new URL(url).host
  );
}

/** Returns the error reply to a change sent by a page of another site. Returns null for any other request. */
export function foreignChange(request: Request, origins: readonly string[]): ErrorReply | null {
  if (READING.has(request.method) || !isCrossSite(request, origins)) return null;
  return crossSite('Headgate accepts no changes');
}

/**
 * Returns the error reply to a request for an own route whose body is not JSON, because a page of another site could
 * send it. Returns null for JSON and for an empty body. `takesYaml` also accepts YAML.
 */
export async function unsupportedBody(
  request: Request,
  takesYaml = false,
): Promise<ErrorReply | null> {
  if (READING.has(request.method)) return null;
  const type = request.headers.get('content-type') ?? '';
  if (JSON_TYPE.test(type) || (takesYaml && YAML_TYPE.test(type))) return null;
  return (await isEmpty(request)) ? null : unsupportedType(type, takesYaml);
}

/** Returns the error reply to a request of a page that is not allowed. `what` is the beginning of the sentence. */
export function crossSite(what: string): ErrorReply {
  const message = `${what} from a web page of another site (headers \`Origin\` and \`Sec-Fetch-Site\`). If the page is yours, add its origin to \`cors_origins\` in the configuration.`;
  return { reason: 'origin_forbidden', message };
}

function unsupportedType(type: string, takesYaml: boolean): ErrorReply {
  const named = type === '' ? 'is missing' : `is ${JSON.stringify(type.slice(0, 100))}`;
  const yaml = takesYaml ? ', or `application/yaml` for a body in YAML' : '';
  const message = `The \`Content-Type\` header ${named}, so the body was not read. A web page of another site could send such a request. Send \`Content-Type: application/json\`${yaml} (with curl: \`--json\` instead of \`-d\`).`;
  return { reason: 'content_type_unsupported', message };
}

async function isEmpty(request: Request): Promise<boolean> {
  if (request.body === null || request.headers.get('content-length') === '0') return true;
  if (request.headers.has('content-length')) return false;
  const { body } = request.clone();
  if (body === null) return true;
  const reader = body.getReader();
  try {
    const { done } = await reader.read();
    return done;
  } catch {
    return false;
  } finally {
    reader.cancel().catch(() => {});
  }
}
