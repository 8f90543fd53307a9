import type { AddressInfo, BlockList, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Forwarded } from '../../src/contract/http.ts';
import { ClientLink } from './client-link.ts';
import { ClientConnections, proxyList } from './client-connections.ts';
import { DepartureNotices } from './departures.ts';

export interface ForwarderOptions {
  readonly host: string;
  /** 0 means any free port. */
  readonly port: number;
  /** Port of workerd on 127.0.0.1. */
  readonly targetPort: number;
  /** Header with the client's address for workerd. Its name is a secret of the two. @default none */
  readonly cfHeader?: string;
  /** Maximum clients at once. @default no limit */
  readonly clientsMax?: number;
  /** Addresses of reverse proxies, which serve many clients. @default loopback */
  readonly proxies?: BlockList;
  /** How long the head of a request may take to arrive. @default HEAD_MS */
  readonly headMs?: number;
  /** Receives a line about refused and closed connections, at most once a minute. */
  readonly onLog?: (line: string) => void;
  /** How long a client may stay connected without a request. @default IDLE_MS */
  readonly idleMs?: number;
}

export interface Forwarder {
  readonly port: number;
  /** Forwards new connections to another local port. With null they wait for one, and are reset after a timeout. */
  leadTo(targetPort: number | null): void;
  connections(): number;
  /** Accepts no more connections. Connections to workerd continue, and other clients are disconnected. */
  stopAccepting(): void;
  /** Resets all remaining connections. */
  close(): Promise<void>;
}

/** Idle timeout of most load balancers. Clients in Node, Python and Go close idle connections earlier. */
const IDLE_MS = 65_000;

/** Clients send the head of a request in one or a few packets, immediately. */
const HEAD_MS = 10_000;

/** Maximum interval between searches for idle connections. */
const SWEEP_MS = 500;

/** Returns the header line with the facts about a client, which becomes `request.cf` in the Worker. */
function addedLines(cfHeader: string | undefined, client: Socket, connection: number): string {
  if (cfHeader === undefined) return '';
  // A dual-stack socket reports IPv4 addresses in this form.
  const clientIp = client.remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/, '');
  const forwarded: Forwarded = { clientIp, connection };
  return `${cfHeader}: ${JSON.stringify(forwarded)}\r\n`;
}

/** Closes a connection without a place before anything is read from it. */
function refuse(client: Socket): void {
  client.on('error', () => undefined);
  client.destroy();
}

export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const { host, port, cfHeader, clientsMax = Infinity, idleMs = IDLE_MS } = options;
  const { headMs = HEAD_MS, proxies = proxyList([]), onLog = () => undefined } = options;
  let { targetPort }: { targetPort: number | null } = options;
  const links = new Set<ClientLink>();
  const notices = cfHeader === undefined ? null : new DepartureNotices(cfHeader, () => targetPort);
  const places = new ClientConnections({ max: clientsMax, proxies, onLog });
  let connections = 0;
  // Half-open sockets report the end of the client's side before the socket closes automatically.
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
