import type { StrictBehaviour } from '../settings.ts';
import type { SocketEndpoint } from './endpoint.ts';
import type { StrictSocketEnd, StrictSocket } from './socket.ts';

/** The side of one WebSocket that speaks to its client. */
export interface SocketPeer {
  readonly socket: StrictSocket;
  readonly endpoint: SocketEndpoint;
  readonly key: string | null;
  /** Behaviour as the scope asks for it now, then the upgrade, then a message. */
  behaviourNow(asked?: Readonly<Record<string, string>>): StrictBehaviour;
  /** Calls when the WebSocket ends, which may be more than once. */
  onEnd(then: (how: StrictSocketEnd) => void): void;
  /** The model is known. False: it has no room, the WebSocket is closed. Only where the WebSocket is a call. */
  named(model: string): boolean;
  /** Counts tokens of the answer. Only where the WebSocket is a call. */
  produce(tokens: number): void;
}
