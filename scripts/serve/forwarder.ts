import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { Forwarded } from '../../src/contract/rpc/forwarded.ts';
import { MALFORMED_PATH, type Malformed } from '../../src/http/malformed.ts';
import { DepartureNotices } from './departures.ts';
import { RequestScanner } from './request-scanner.ts';

/** Settings of the forwarder: where it listens and where it leads. */
export interface ForwarderOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Port of workerd on 127.0.0.1. */
  readonly targetPort: number;
  /** Header that tells workerd who calls. Nobody else may know it. @default none */
  readonly cfHeader?: string;
  /** Maximum clients at once; more are cut off. @default as many as come */
  readonly clientsMax?: number;
}

export interface Forwarder {
  readonly port: number;
  /** Leads new connections to another port of this machine; null: they wait for one, or are reset. */
  leadTo(targetPort: number | null): void;
  /** Connections that are open now. */
  connections(): number;
  /** Takes no more connections; those that are open live on. */
  stopAccepting(): void;
  /** Resets every connection that is left. */
  close(): Promise<void>;
}

/** How long a connection waits while workerd starts again. Most clients connect again after a reset. */
const TARGET_WAIT_MS = 10_000;

/** Adds what workerd is to know of a client, as it wants it: `request.cf` of the Worker. */
function addedLines(cfHeader: string | undefined, client: Socket, connection: number): string {
  if (cfHeader === undefined) return '';
  // An address of IPv4 comes so where we listen on both.
  const clientIp = client.remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/, '');
  const forwarded: Forwarded = { clientIp, connection };
  return `${cfHeader}: ${JSON.stringify(forwarded)}\r\n`;
}

/**
 * Asks the Worker to refuse what cannot be passed on. The answer comes after those to the requests before
 * it, and then workerd, which reads the end of the connection, closes it.
 */
function refuse(target: Socket, malformed: Malformed): void {
  target.end(`GET ${MALFORMED_PATH}${malformed} HTTP/1.1\r\nHost: headgate\r\n\r\n`);
}

/**
 * Passes the requests of a client on to workerd, which answers 500 to some that are malformed, and writes
 * them to its log, keys included: they never get there.
 */
function passRequests(client: Socket, target: Socket, scanner: RequestScanner): void {
  let isRefused = false;
  client.on('data', (data: Buffer) => {
    // Read to its end all the same: bytes that nobody reads would turn the answer into a reset.
    if (isRefused) return;
    const { bytes, malformed, isUnderWay } = scanner.scan(data);
    if (bytes.length > 0 && !target.write(bytes)) client.pause();
    if (malformed === null) return;
    isRefused = true;
    client.resume();
    // In mid-body an answer may be under way already: the call is cut off.
    if (isUnderWay) client.resetAndDestroy();
    else refuse(target, malformed);
  });
  target.on('drain', () => client.resume());
}

/**
 * Joins a client to workerd. workerd does not read from a client while it has nothing to write to it,
 * so an orderly close (FIN) of a client that waits in a queue, or on a silent stream, would go
 * unnoticed until the next write. A reset is noticed at once, so a FIN of the client becomes one. HTTP
 * clients do not close one half only, hence nobody loses an answer by it.
 */
function join(client: Socket, target: Socket, scanner: RequestScanner): void {
  for (const socket of [client, target]) socket.setNoDelay(true);
  passRequests(client, target, scanner);
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
  const { host, port, cfHeader, clientsMax = Infinity } = options;
  let { targetPort }: { targetPort: number | null } = options;
  const clients = new Set<Socket>();
  const waiting = new Set<Socket>();
  const notices = cfHeader === undefined ? null : new DepartureNotices(cfHeader, () => targetPort);
  let connections = 0;
  const lead = (client: Socket, to: number): void => {
    const connection = ++connections;
    const scanner = new RequestScanner(addedLines(cfHeader, client, connection));
    client.once('close', () => notices?.note(connection));
    join(client, connect({ host: '127.0.0.1', port: to, allowHalfOpen: true }), scanner);
  };
  const wait = (client: Socket): void => {
    waiting.add(client);
    client.setTimeout(TARGET_WAIT_MS, () => client.resetAndDestroy());
    client.on('error', () => client.destroy());
    client.once('close', () => waiting.delete(client));
  };
  // Half-open, so that the end of a client's side reaches us before the socket closes by itself.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    if (targetPort === null) wait(client);
    else lead(client, targetPort);
  });
  server.maxConnections = clientsMax;
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
    leadTo(to) {
      targetPort = to;
      if (to === null) return;
      for (const client of waiting) {
        waiting.delete(client);
        client.setTimeout(0);
        lead(client, to);
      }
    },
    connections: () => clients.size,
    stopAccepting() {
      closeServer().catch(() => undefined);
    },
    close() {
      for (const client of clients) client.resetAndDestroy();
      notices?.close();
      return closeServer();
    },
  };
}
