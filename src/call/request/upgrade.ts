import type { ErrorReply } from '../../contract/reasons.ts';
import { methodOverride } from '../../upstream/operation/readings.ts';
import type { Operation } from '../../upstream/operation/operation.ts';
import { isNamedInMessage, isResponses } from '../../upstream/operation/upgrades.ts';

interface UpgradeRequest {
  readonly method: string;
  readonly request: Pick<Request, 'headers'>;
}

/**
 * Returns whether a call is a WebSocket upgrade, which is a GET (RFC 6455, 4.1). With other methods the header is
 * ignored.
 */
export function isUpgrade({ method, request }: UpgradeRequest): boolean {
  return method === 'GET' && request.headers.get('upgrade')?.toLowerCase() === 'websocket';
}

/** The error reply to an upgrade that announces a body. The runtime would wait for that body while the slot is held. */
export const UPGRADE_WITH_BODY: ErrorReply = {
  reason: 'header_invalid',
  message:
    'A WebSocket upgrade must not have a body, but this one announces a body. Send the upgrade without `content-length` and `transfer-encoding`.',
};

/** The method of a call for the rules of groups. A turn counts as the POST that it would be over HTTP. */
export function methodOf(
  { method }: Pick<UpgradeRequest, 'method'>,
  { socket, countsAs }: Pick<Operation, 'socket' | 'countsAs'>,
): string {
  return socket === 'turns' ? 'POST' : (countsAs ?? method);
}

/** The error reply to a WebSocket whose request names another method than GET. null if it does not. */
export function overriddenUpgrade(headers: Headers, query: URLSearchParams): ErrorReply | null {
  const override = methodOverride(headers, query);
  if (override === null) return null;
  const message = `\`${override.name}\` names another method, but a WebSocket is opened with GET. Remove it.`;
  return { reason: 'header_invalid', message };
}

/** Returns whether an upstream has answered a request for a WebSocket with something else. */
export function isNotSwitched(
  { socket }: Pick<Operation, 'socket'>,
  { webSocket, status }: { readonly webSocket: WebSocket | null; readonly status: number },
): boolean {
  return socket !== undefined && webSocket === null && status < 400;
}

/**
 * The error reply to a WebSocket on a route without sockets. Coding agents switch to HTTP immediately on 426, and
 * reconnect five times on any other status. The header `Upgrade` is not sent, because the runtime reserves the headers
 * of a connection.
 */
export function unserved({ pathname }: URL): ErrorReply {
  if (isResponses(pathname)) {
    const message = `Responses are not served over WebSocket here. Use HTTP: \`POST ${pathname}\`.`;
    return { reason: 'http_required', message };
  }
  const message =
    'This route is not served over WebSocket. If the upstream serves sessions there, set `websocket: session` for it. Otherwise use the HTTP routes.';
  return { reason: 'websocket_unsupported', message };
}

/** The error reply to a session without a model, if its groups depend on one. */
export function missingModel(path: string): ErrorReply {
  const where = isNamedInMessage(path)
    ? 'The first message of the session names it too late, after the slot is taken'
    : 'Or name it in the query as `?model=…`';
  const message = `headgate-model: expected the model of the session, because groups here depend on it. ${where}.`;
  return { reason: 'header_invalid', message };
}

/** The error reply to a session whose messages Headgate cannot read, if groups or keys depend on its model. */
export function unreadSession(): ErrorReply {
  const message =
    'Groups or keys here depend on the model, and Headgate cannot read the model of a session on this route. Use a realtime route, set `websocket: turns` for the upstream to use Responses, or use HTTP.';
  return { reason: 'body_unreadable', message };
}

/** The error reply to a session whose URL names several models, if its groups depend on one. */
export function severalModels(models: readonly string[]): ErrorReply {
  const names = models.slice(0, 3).map((model) => JSON.stringify(model.slice(0, 100)));
  const message = `The URL of the session names several models (${names.join(', ')}), and upstreams differ in which of them they use. Name one.`;
  return { reason: 'model_ambiguous', message };
}

/** The error reply to a session whose URL names its model by reference, if groups or keys depend on it. */
export function referredSession(parameter: string): ErrorReply {
  const message = `The URL of the session names its model by reference, in \`${parameter.slice(0, 100)}\`. A group or the key of this call depends on the model, which Headgate cannot look up. Name the model instead, or ask the operator to set \`match.references: allow\` in the group.`;
  return { reason: 'model_ambiguous', message };
}
