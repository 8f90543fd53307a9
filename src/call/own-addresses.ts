import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/clock.ts';
import { hasAddresses, isRedirect, readdress } from '../upstream/transfer/headers.ts';
import { calledOrigin } from './called-url.ts';
import type { Candidate } from './plan.ts';
import { rejected, type Rejected } from './result.ts';
import type { CallTarget } from './target.ts';

/**
 * Minimum interval between log lines for a host, and maximum hosts logged in that time, because each answer may name
 * another host.
 */
const SILENT_MS = 60_000;
const HOSTS_MAX = 100;

const logged = new Set<string>();
let loggedSince = -Infinity;

/** An answer whose addresses its caller may follow. */
interface ReceivedAnswer {
  readonly kind: 'received';
  readonly answer: Response;
}

/**
 * Rewrites the addresses of an answer to our own if they point to the upstream that answered. Rejects a redirect to
 * another host, which callers would follow with their keys.
 */
export function withOwnAddresses(
  answer: Response,
  candidate: Pick<Candidate, 'call' | 'located' | 'key'>,
  { url: askedUrl }: CallTarget,
): ReceivedAnswer | Rejected {
  const { headers: given } = answer;
  if (!hasAddresses(given)) return received(answer);
  const { status, statusText, body, webSocket } = answer;
  const { call, located, key } = candidate;
  const { id, baseUrl, redirects } = located.upstream;
  const redirect = isRedirect(status);
  const { gatewayKey } = call.caller.credentials;
  const { changed, elsewhere } = readdress(given, {
    askedUrl,
    baseUrl,
    ownUrl: `${calledOrigin(call)}/${id}`,
    injected: key.injected,
    // The caller's own key belongs to this upstream, wherever that stores its answers.
    passesElsewhere: redirects === 'pass' || (gatewayKey === null && !redirect),
  });
  if (elsewhere !== null) logElsewhere(id, status, elsewhere);
  if (redirect && changed.get('location') === null) {
    body?.cancel().catch(() => {});
    return redirectsElsewhere(id, status);
  }
  const headers = new Headers(given);
  for (const [name, value] of changed) {
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  const readable = { status, statusText, headers, encodeBody: 'manual' } as const;
  return received(
    webSocket === null
      ? new Response(body, readable)
      : new Response(null, { status, webSocket, headers }),
  );
}

function received(answer: Response): ReceivedAnswer {
  return { kind: 'received', answer };
}

function logElsewhere(upstream: string, status: number, host: string): void {
  const now = steadyClock.now();
  if (now - loggedSince >= SILENT_MS) {
    logged.clear();
    loggedSince = now;
  }
  const place = `${upstream} ${host}`;
  if (logged.has(place) || logged.size >= HOSTS_MAX) return;
  logged.add(place);
  logEvent('upstream_redirects', { upstream, status, host });
}

function redirectsElsewhere(id: string, status: number): Rejected {
  const message = `Upstream \`${id}\` answered ${status}, a redirect outside its base URL. It was not forwarded, because clients would follow it with their keys. Ask the operator to set \`base_url\` to the new host, which is logged, or to set \`redirects: pass\`.`;
  // The next call would be redirected too.
  return rejected({ reason: 'upstream_redirects', message, isPermanent: true });
}
