import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { handleCall } from './call.ts';
import type { StrictStats } from './counts.ts';
import type { StrictFailure } from './failures.ts';
import { StrictScope, type StrictRequest } from './scope.ts';
import type { StrictSettings } from './settings.ts';
import { DEFAULT_SETTINGS, mergeSettings } from './settings.ts';
import type { SocketAct } from './sockets/acts.ts';
import { actOn } from './sockets/acts.ts';
import { handleUpgrade } from './sockets/upgrade.ts';

/** Settings of the server's own scope, and the ones that every new scope begins with. */
export interface StrictOptions extends Partial<StrictSettings> {
  /** Port on 127.0.0.1. @default any free one */
  readonly port?: number;
}

/**
 * A provider that counts calls in flight, requests and tokens itself, over the whole stream, and refuses
 * what is over its limits. `scope` names one of the isolated scopes under `/scope/<name>/`; without it the server's
 * own is meant.
 */
export interface StrictUpstream {
  /** Without a trailing slash. */
  readonly url: string;
  readonly port: number;
  stats(scope?: string): StrictStats;
  /** The requests since the last reset, byte by byte, if `keepsRequests` is set. */
  received(scope?: string): readonly StrictRequest[];
  /**
   * Sets the counters and what was used of the rate limits to zero, drops failures that are to come, and
   * keeps the settings. Calls that are still open are no longer counted.
   */
  reset(scope?: string): void;
  configure(partial: Partial<StrictSettings>, scope?: string): void;
  /** Has something go wrong with the next calls that count and that no limit of concurrency refuses. */
  failNext(calls: number, failure: StrictFailure, scope?: string): void;
  /** Lets streams go on that went silent for ever, or are to, if their calls are here. */
  resume(scope?: string): void;
  /** Does something to WebSockets that are open. */
  act(act: SocketAct, scope?: string): void;
  /** Base URL of an isolated scope, made at its first use. */
  scopeUrl(name: string): string;
  close(): Promise<void>;
}

const SCOPE_PATH = /^\/scope\/([^/?]+)(\/.*)?$/;

type ScopeOf = (name: string | null) => StrictScope;
type Handler = (scope: StrictScope, target: string) => Promise<void>;

/** The scope that a request is for, and its target there. */
function scoped(scopeOf: ScopeOf, target: string): [StrictScope, string] {
  const found = SCOPE_PATH.exec(target);
  if (found === null) return [scopeOf(null), target];
  return [scopeOf(decodeURIComponent(found[1] ?? '')), found[2] ?? '/'];
}

/**
 * Waits until the server has noticed all clients that disconnected before a request arrived. In one turn of its event
 * loop, Node reports requests before closed connections.
 */
async function noticeDisconnects(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/** A server for more than a thousand calls at once, with no time-out of its own. */
function makeServer(scopeOf: ScopeOf): Server {
  const handle = (req: IncomingMessage, connection: ServerResponse | Duplex, handler: Handler) => {
    const [scope, target] = scoped(scopeOf, req.url ?? '/');
    noticeDisconnects()
      .then(() => handler(scope, target))
      .catch((error: unknown) => {
        console.error('strict upstream:', error);
        connection.destroy();
      });
  };
  const server = createServer((req, res) => {
    handle(req, res, (scope, target) => handleCall(scope, target, req, res));
  });
  server.on('upgrade', (req, socket, head) => {
    socket.on('error', () => {});
    handle(req, socket, (scope, target) => handleUpgrade(scope, target, { req, socket, head }));
  });
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  // Closing an idle connection at the moment at which a client reuses it would look like a failure.
  server.keepAliveTimeout = 600_000;
  return server;
}

/** Starts a strict upstream on 127.0.0.1. */
export async function startStrictUpstream(options: StrictOptions = {}): Promise<StrictUpstream> {
  const { port: wanted = 0, ...settings } = options;
  const initial = mergeSettings(DEFAULT_SETTINGS, settings);
  const own = new StrictScope(initial);
  const scopes = new Map<string, StrictScope>();
  const scopeOf: ScopeOf = (name) => {
    if (name === null) return own;
    const scope = scopes.get(name) ?? new StrictScope(initial);
    scopes.set(name, scope);
    return scope;
  };
  const server = makeServer(scopeOf);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: wanted, host: '127.0.0.1', backlog: 4_096 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    stats: (name) => scopeOf(name ?? null).counts.stats(),
    received: (name) => scopeOf(name ?? null).received,
    reset: (name) => scopeOf(name ?? null).reset(),
    failNext: (calls, failure, name) => scopeOf(name ?? null).failures.add(calls, failure),
    resume: (name) => scopeOf(name ?? null).resume(),
    configure(partial, name) {
      const scope = scopeOf(name ?? null);
      scope.settings = mergeSettings(scope.settings, partial);
    },
    act: (act, name) => actOn(scopeOf(name ?? null), act),
    scopeUrl: (name) => `${url}/scope/${encodeURIComponent(name)}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const scope of [own, ...scopes.values()]) actOn(scope, { do: 'cut' });
      }),
  };
}
