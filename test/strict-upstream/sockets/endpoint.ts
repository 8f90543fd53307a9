import type { IncomingHttpHeaders } from 'node:http';
import type { StrictDialect } from '../settings.ts';

/** The protocol of a path: one of the providers' protocols, or whatever comes is sent back. */
export type SocketKind = 'realtime' | 'responses' | 'live' | 'echo';

export interface SocketEndpoint {
  readonly kind: SocketKind;
  readonly dialect: StrictDialect;
  /** Whether the whole WebSocket is one call; else each turn is. */
  readonly isSession: boolean;
  /** The model, where the address names it. */
  readonly model: string | null;
}

const AZURE_PATH = /\/openai\/(?:v1\/)?realtime$/;

/** Recognises what is spoken at a path, after any prefix. */
export function recogniseEndpoint(path: string, query: string): SocketEndpoint {
  const asked = new URLSearchParams(query);
  const model = asked.get('model') ?? asked.get('deployment');
  if (path.endsWith('/responses')) {
    return { kind: 'responses', dialect: 'openai', isSession: false, model };
  }
  if (path.endsWith('.BidiGenerateContent')) {
    return { kind: 'live', dialect: 'gemini', isSession: true, model };
  }
  const dialect = AZURE_PATH.test(path) ? 'azure' : 'openai';
  return {
    kind: path.endsWith('/realtime') ? 'realtime' : 'echo',
    dialect,
    isSession: true,
    model,
  };
}

const KEY_PROTOCOL = 'openai-insecure-api-key.';

/** The subprotocols that a client offers. */
export const offeredBy = (headers: IncomingHttpHeaders): string[] =>
  (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

/** The key of a client, from the places where this provider looks for one; null: none. */
export function keyOfUpgrade(
  { kind, dialect }: SocketEndpoint,
  headers: IncomingHttpHeaders,
  query: string,
): string | null {
  const asked = new URLSearchParams(query);
  const bearer = headers.authorization?.replace(/^bearer\s+/i, '');
  const inProtocol = offeredBy(headers).find((name) => name.startsWith(KEY_PROTOCOL));
  const openai = bearer ?? inProtocol?.slice(KEY_PROTOCOL.length);
  const azure = headers['api-key'] ?? asked.get('api-key') ?? bearer;
  const gemini = headers['x-goog-api-key'] ?? asked.get('key');
  const any = openai ?? azure ?? gemini;
  const found = kind === 'echo' ? any : { openai, azure, gemini }[dialect as 'openai'];
  return typeof found === 'string' ? found : null;
}

/** The subprotocol that a provider agrees to; null: none of them. */
export function agreedProtocol(
  { kind }: SocketEndpoint,
  offered: readonly string[],
): string | null {
  if (kind === 'echo') return offered.find((name) => !name.startsWith(KEY_PROTOCOL)) ?? null;
  return offered.includes('realtime') ? 'realtime' : null;
}
