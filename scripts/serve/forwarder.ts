import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** Where the forwarder listens and where it leads. */
export interface ForwarderOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Port of workerd on 127.0.0.1. */
  readonly targetPort: number;
}

export interface Forwarder {
  readonly port: number;
  /** Connections that are open now. */
  connections(): number;
  /** Takes no more connections; those that are open live on. */
  stopAccepting(): void;
  /** Resets every connection that is left. */
  close(): Promise<void>;
}

/**
 * Joins a client to workerd. workerd does not read from a client while it has nothing to write to it,
 * so an orderly close (FIN) of a client that waits in a queue, or on a silent stream, would go
 * unnoticed until the next write. A reset is noticed at once, so a FIN of the client becomes one. HTTP
 * clients do not close one half only, hence nobody loses an answer by it.
 */
function join(client: Socket, target: Socket): void {
  for (const socket of [client, target]) socket.setNoDelay(true);
  client.pipe(target, { end: false });
  // `pipe` ends the client's side once workerd has said all, after everything is written.
  target.pipe(client);
  client.on('end', () => target.resetAndDestroy());
  // An error is a reset, or as good as one: it passes on as a reset.
  client.on('error', () => target.resetAndDestroy());
  target.on('error', () => client.resetAndDestroy());
  client.on('close', () => target.resetAndDestroy());
  target.on('close', () => client.destroySoon());
}

/** Starts a TCP forwarder to a workerd on this machine. */
export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const { host, port, targetPort } = options;
  const clients = new Set<Socket>();
  // Half-open, so that the end of a client's side reaches us before the socket closes by itself.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    join(client, connect({ host: '127.0.0.1', port: targetPort, allowHalfOpen: true }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: 4_096 }, resolve);
  });
  let closed: Promise<void> | null = null;
  const closeServer = (): Promise<void> => {
    closed ??= new Promise((resolve) => server.close(() => resolve()));
    return closed;
  };
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => clients.size,
    stopAccepting() {
      closeServer().catch(() => undefined);
    },
    close() {
      for (const client of clients) client.resetAndDestroy();
      return closeServer();
    },
  };
}
