import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Forwarded } from '../../src/contract/rpc/forwarded.ts';
import { ClientLink } from './client-link.ts';
import { DepartureNotices } from './departures.ts';

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
  /** How long a client may stay connected without a request. @default IDLE_MS */
  readonly idleMs?: number;
}

export interface Forwarder {
  readonly port: number;
  /** Leads new connections to another port of this machine; null: they wait for one, or are reset. */
  leadTo(targetPort: number | null): void;
  /** Connections that are open now. */
  connections(): number;
  /** Takes no more connections. Those to workerd live on; clients without one are let go. */
  stopAccepting(): void;
  /** Resets every connection that is left. */
  close(): Promise<void>;
}

/** As long as most load balancers keep a client that is idle; clients of Node, Python and Go close before. */
const IDLE_MS = 65_000;

/** How often idle connections are looked for at least. */
const SWEEP_MS = 500;

/** Adds what workerd is to know of a client, as it wants it: `request.cf` of the Worker. */
function addedLines(cfHeader: string | undefined, client: Socket, connection: number): string {
  if (cfHeader === undefined) return '';
  // An address of IPv4 comes so where we listen on both.
  const clientIp = client.remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/, '');
  const forwarded: Forwarded = { clientIp, connection };
  return `${cfHeader}: ${JSON.stringify(forwarded)}\r\n`;
}

/** Starts a TCP forwarder to a workerd on this machine. */
export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const { host, port, cfHeader, clientsMax = Infinity, idleMs = IDLE_MS } = options;
  let { targetPort }: { targetPort: number | null } = options;
  const links = new Set<ClientLink>();
  const notices = cfHeader === undefined ? null : new DepartureNotices(cfHeader, () => targetPort);
  let connections = 0;
  // Half-open, so that the end of a client's side reaches us before the socket closes by itself.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const connection = ++connections;
    const added = addedLines(cfHeader, client, connection);
    const link = new ClientLink(client, { added, targetPort: () => targetPort, idleMs });
    links.add(link);
    client.once('close', () => {
      links.delete(link);
      notices?.note(connection);
    });
  });
  server.maxConnections = clientsMax;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: 4_096 }, resolve);
  });
  const sweeping = setInterval(
    () => {
      const now = performance.now();
      for (const link of links) link.sweep(now);
    },
    Math.min(SWEEP_MS, idleMs / 4),
  ).unref();
  let closed: Promise<void> | null = null;
  const closeServer = (): Promise<void> => {
    closed ??= new Promise((resolve) => server.close(() => resolve()));
    return closed;
  };
  return {
    port: (server.address() as AddressInfo).port,
    leadTo(to) {
      targetPort = to;
      if (to !== null) for (const link of links) link.serves();
    },
    connections: () => links.size,
    stopAccepting() {
      closeServer().catch(() => undefined);
      for (const link of links) link.end();
    },
    close() {
      clearInterval(sweeping);
      for (const link of links) link.reset();
      notices?.close();
      return closeServer();
    },
  };
}
