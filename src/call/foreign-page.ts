import type { Upstream } from '../contract/config/upstream.ts';
import { crossSite, isCrossSite } from '../runtime/cross-site.ts';
import type { AuthenticatedCall } from './call.ts';
import { rejected, type Rejected } from './result.ts';

/**
 * Rejects a call without a key that a browser sends for a web page of another site. Every client that reaches a keyless
 * upstream may use it, and the browser can reach it. Returns null if the call has a key or comes from no such page.
 * `injected` is the operator's key.
 */
export function foreignPage(
  { request, caller, table }: Pick<AuthenticatedCall, 'request' | 'caller' | 'table'>,
  upstream: Upstream,
  injected: string | null,
): Rejected | null {
  if (injected !== null) return null;
  const takesNone = upstream.isKeyless || upstream.via !== null;
  if (!upstream.isKeyless && caller.credentials.providerKey !== null) return null;
  // A preflight has no key. An upstream that requires keys may allow pages to send them, and its answer states that.
  if (request.method === 'OPTIONS' && !takesNone) return null;
  if (!isCrossSite(request, table.snapshot.config.cors_origins)) return null;
  const what = `Headgate accepts no calls without a key to upstream \`${upstream.id}\``;
  return rejected(crossSite(what));
}
