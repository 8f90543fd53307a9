import type { AddressInfo, BlockList, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Forwarded } from '../../src/contract/rpc/forwarded.ts';
import { ClientLink } from './client-link.ts';
import { ClientConnections, proxyList } from './client-connections.ts';
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
  /** Maximum clients at once. @default no limit */
  readonly clientsMax?: number;
  /** Addresses of reverse proxies, which serve many callers. @default loopback */
  readonly proxies?: BlockList;
  /** How long the head of a request may take to arrive. @default HEAD_MS */
  readonly headMs?: number;
  /** Receives a line about connections that were refused or closed, at most once a minute. */
  readonly onLog?: (line: string) => void;
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

/** Clients send a head at once, and it is small: one packet or a few. */
const HEAD_MS = 10_000;

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

/** Closes a connection without a place before anything is read from it. */
function refuse(client: Socket): void {
  client.on('error', () => undefined);
  client.destroy();
}

/** Starts a TCP forwarder to a workerd on this machine. */
export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const { host, port, cfHeader, clientsMax = Infinity, idleMs = IDLE_MS } = options;
  const { headMs = HEAD_MS, proxies = proxyList([]), onLog = () => undefined } = options;
  let { targetPort }: { targetPort: number | null } = options;
  const links = new Set<ClientLink>();
  const notices = cfHeader === undefined ? null : new DepartureNotices(cfHeader, () => targetPort);
  const places = new ClientConnections({ max: clientsMax, proxies, onLog });
  let connections = 0;
  // Half-open, so that the end of a client's side reaches us before the socket closes by itself.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const place = places.take(client.remoteAddress ?? '', () => link.closeIdle());
    if (place === null) {
      refuse(client);
      return;
    }
    const connection = ++connections;
    const added = addedLines(cfHeader, client, connection);
    const onLateHead = (): void => places.noteLateHead();
    const link: ClientLink = new ClientLink(client, {
      added,
      targetPort: () => targetPort,
      idleMs,
      headMs,
      place,
      onLateHead,
    });
    links.add(link);
    client.once('close', () => {
      links.delete(link);
      place.leave();
      notices?.note(connection);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: 4_096 }, resolve);
  });
  const sweeping = setInterval(
    () => {
      const now = performance.now();
      for (const link of links) link.sweep(now);
      places.report(now);
    },
    Math.min(SWEEP_MS, idleMs / 4, headMs / 4),
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
