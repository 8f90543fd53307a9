import type { StrictScope } from '../scope.ts';
import type { StrictSocket } from './socket.ts';

/** Something that a test does to WebSockets that are open: to all, or to the one of an index. */
export type SocketAct = (
  | { readonly do: 'close'; readonly code?: number; readonly reason?: string }
  /** Resets the connection. */
  | { readonly do: 'cut' }
  | { readonly do: 'ping' }
  /** Reads no more of what the client sends, until `read`. */
  | { readonly do: 'stall' }
  | { readonly do: 'read' }
  | { readonly do: 'send'; readonly text: string }
  | { readonly do: 'send-binary'; readonly base64: string }
  /** Sends bytes that need not be a frame. */
  | { readonly do: 'send-raw'; readonly base64: string }
) & { readonly index?: number };

function actOnOne(socket: StrictSocket, act: SocketAct): void {
  switch (act.do) {
    case 'close':
      return socket.close(act.code ?? null, act.reason ?? null);
    case 'cut':
      return socket.cut();
    case 'ping':
      return socket.ping();
    case 'stall':
      return socket.stall();
    case 'read':
      return socket.read();
    case 'send':
      return void socket.send(act.text).catch(() => {});
    case 'send-binary':
      return void socket.send(Buffer.from(act.base64, 'base64')).catch(() => {});
    case 'send-raw':
      return socket.sendRaw(Buffer.from(act.base64, 'base64'));
    default:
      throw new TypeError(`There is nothing to do named ${JSON.stringify(act)}.`);
  }
}

/** Does something to WebSockets of a scope. */
export function actOn(scope: StrictScope, act: SocketAct): void {
  for (const socket of scope.sockets) {
    if (act.index === undefined || act.index === socket.seen.index) actOnOne(socket, act);
  }
}
