import type { ErrorReply } from '../contract/reasons.ts';
import type { Caller } from './identity/authenticate.ts';

/** The error reply to a call that no upstream could do anything about; null: it is none of those. */
export function unsupported(request: Request, url: URL, caller: Caller): ErrorReply | null {
  if (request.headers.get('upgrade')?.toLowerCase() === 'websocket') {
    // Coding agents go on with HTTP at once on 426. Its header `Upgrade` would not get through: the runtime
    // keeps what is of the connection for itself.
    if (/\/responses\/*$/.test(url.pathname)) {
      const message = `Responses are not served over WebSocket here. Use HTTP: POST ${url.pathname}.`;
      return { reason: 'http_required', message };
    }
    const message = 'WebSocket calls are not supported yet. Use the HTTP routes.';
    return { reason: 'websocket_unsupported', message };
  }
  if (caller.credentials.sigV4) {
    const message =
      'A call signed with SigV4 is bound to its host, so it cannot pass through another one. Use a Bedrock API key as a bearer token instead.';
    return { reason: 'key_invalid', message };
  }
  return null;
}
