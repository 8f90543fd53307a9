import type { ErrorReply } from '../contract/reasons.ts';

/**
 * Detects requests that a browser sends on behalf of another site's page. Such a page needs no permission for simple
 * requests (GET, HEAD, and POST with a form, plain text or no type) or for opening a WebSocket. The browser only
 * withholds the answer. Such a request must not change anything, and must not reach an upstream that needs no key.
 */

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
