import type { ErrorReply } from '../contract/reasons.ts';

/**
 * Requests that a browser sends for a page of another site. The page needs no permission for a simple request (any of
 * GET, HEAD and POST with a form, plain text or no type) and none to open a WebSocket; a browser only withholds the
 * answer. Such a request must not change anything, and must not reach an upstream that needs no key.
 */

/** JSON, or a type based on it, such as `application/merge-patch+json`. */
const JSON_TYPE = /^\s*application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;|$)/i;

/** A page cannot send it without the permission of the server, any more than JSON. */
const YAML_TYPE = /^\s*(?:application|text)\/(?:[\w.!#$&^-]+[+-])?yaml\s*(?:;|$)/i;

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether a page of another site sent a request, and its origin is not listed. Clients other than browsers
 * send neither header.
 */
export function isCrossSite({ headers, url }: Request, origins: readonly string[]): boolean {
  const origin = headers.get('origin');
  if (origin !== null && origins.includes(origin)) return false;
  const site = headers.get('sec-fetch-site')?.trim().toLowerCase();
  if (site === 'cross-site') return true;
  // A page of a sibling host or another port. With our own origin it is not one.
  return origin === null ? site === 'same-site' : !isSameHost(origin, url);
}

/**
 * Whether an origin is that of the host that was called. Behind a proxy that terminates TLS the scheme differs. An app may name
 * its own pages after any host, as in `app://example.com`.
 */
export function isSameHost(origin: string, url: string): boolean {
  return (
    /^https?:/.test(origin) && URL.canParse(origin) && new URL(origin).host === new URL(url).host
  );
}

/** The error reply to a change that a page of another site sends; null: the request is not such a change. */
export function foreignChange(request: Request, origins: readonly string[]): ErrorReply | null {
  if (READING.has(request.method) || !isCrossSite(request, origins)) return null;
  return crossSite('Headgate accepts no changes');
}

/**
 * The error reply to a request for one of our routes whose body is not JSON, because a page of another site could send it;
 * null: it is JSON, or there is no body. `takesYaml`: YAML is accepted too.
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

/** The error reply to a request of a page that may not send it. `what`: the beginning of the sentence. */
export function crossSite(what: string): ErrorReply {
  const message = `${what} from a web page of another site (headers Origin and Sec-Fetch-Site). If the page is yours, add its origin to cors_origins in the configuration.`;
  return { reason: 'origin_forbidden', message };
}

function unsupportedType(type: string, takesYaml: boolean): ErrorReply {
  const named = type === '' ? 'is missing' : `is ${JSON.stringify(type.slice(0, 100))}`;
  const yaml = takesYaml ? ', or application/yaml for a body in YAML' : '';
  const message = `The header Content-Type ${named}, so the body was not read: a web page of another site can send such a request. Send Content-Type: application/json${yaml} (with curl: --json instead of -d).`;
  return { reason: 'content_type_unsupported', message };
}

/** Whether a request has no body, or one without bytes. */
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
