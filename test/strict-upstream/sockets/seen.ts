import type { IncomingHttpHeaders } from 'node:http';
import type { SocketKind } from './endpoint.ts';

/** A message of a WebSocket's client: text, or what it is in base64. */
type SeenMessage = { readonly text: string } | { readonly base64: string };

/** Facts of a WebSocket from its upgrade on. */
interface SocketUpgrade {
  readonly index: number;
  readonly kind: SocketKind;
  readonly path: string;
  readonly query: string;
  /** The key that it came with; null: none. */
  readonly key: string | null;
  readonly headers: IncomingHttpHeaders;
  /** The subprotocol that it speaks; empty: none. */
  readonly protocol: string;
}

/** One WebSocket that was accepted, as it is now. */
export interface SeenSocket extends SocketUpgrade {
  state: 'open' | 'closed';
  /** Messages of the client, and what they come to. */
  messageCount: number;
  messageBytes: number;
  /** These messages, where the scope keeps requests. */
  readonly messages: SeenMessage[];
  /** Bytes of messages that the kernel has taken. */
  sentBytes: number;
  /** Pings and pongs of the client. */
  pings: number;
  pongs: number;
  /** 1005: there was a close without a code. 1006: there was none, the connection ended. */
  closeCode: number | null;
  closeReason: string | null;
  closedBy: 'client' | 'upstream' | 'cut' | null;
  /** Why the connection was given up; null: it was not. */
  error: string | null;
}

export const newSocket = (upgrade: SocketUpgrade): SeenSocket => ({
  ...upgrade,
  state: 'open',
  messageCount: 0,
  messageBytes: 0,
  messages: [],
  sentBytes: 0,
  pings: 0,
  pongs: 0,
  closeCode: null,
  closeReason: null,
  closedBy: null,
  error: null,
});
