import { BlockList, isIP } from 'node:net';
import { countedAddress } from '../../src/runtime/origin.ts';

/** One address may hold one in this many connections, so ten addresses are needed to use all of them. */
const SHARE = 10;

/** Minimum time between two log lines about refusals. */
const LOG_EVERY_MS = 60_000;

export interface ClientConnection {
  /** A request is in progress on it. */
  busy(): void;
  /** The connection is idle, so it may be closed to make room. */
  rest(): void;
  leave(): void;
}

interface OpenClientConnection extends ClientConnection {
  readonly close: () => void;
}

/** The connections of one address, and the idle ones among them, longest idle first. */
interface AddressConnections {
  count: number;
  readonly idle: Set<OpenClientConnection>;
}

export interface ClientConnectionsOptions {
  /** Maximum connections at once. */
  readonly max: number;
  /** Addresses of reverse proxies, which serve many clients. */
  readonly proxies: BlockList;
  readonly onLog: (line: string) => void;
}

/** Connections that were not served since the last log line, counted by reason. */
interface ConnectionRefusals {
  byAddress: number;
  full: number;
  lateHeads: number;
  /** Idle connections that were closed to make room. */
  idle: number;
}

const none = (): ConnectionRefusals => ({ byAddress: 0, full: 0, lateHeads: 0, idle: 0 });

/**
 * Parses addresses of reverse proxies, each with an optional prefix length as in `10.0.0.0/8`. Loopback always counts
 * as a proxy, because its clients are a local proxy or have an account on this machine. Throws a TypeError for an
 * invalid address.
 */
export function proxyList(given: readonly string[]): BlockList {
  const list = new BlockList();
  for (const one of ['127.0.0.0/8', '::1/128', ...given]) {
    const [address = '', length, ...more] = one.split('/');
    const version = isIP(address);
    const bits = version === 6 ? 128 : 32;
    const prefix = length === undefined ? bits : Number(length);
    const isNumber = /^\d+$/.test(length ?? '0') && prefix <= bits;
    if (version === 0 || !isNumber || more.length > 0) {
      throw new TypeError(
        `--trusted-proxy ${one}: expected an IP address, optionally with a prefix length as in 10.0.0.0/8.`,
      );
    }
    list.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}

/**
 * Shares the connections that the limit of open files allows. One address may hold a tenth of them. IPv6 addresses
 * count by their first 64 bits. A reverse proxy serves many clients and may hold all except a tenth. If no place is
 * free, the connection that has been idle for longest is closed. If none is idle, the new connection is refused.
 */
export class ClientConnections {
  readonly #options: ClientConnectionsOptions;
  readonly #share: number;
  readonly #shares = new Map<string, AddressConnections>();
  readonly #idle = new Set<OpenClientConnection>();
  #count = 0;
  #refusals = none();
  #lastRefused = '';
  #loggedAt = -Infinity;

  constructor(options: ClientConnectionsOptions) {
    this.#options = options;
    this.#share = Math.max(1, Math.floor(options.max / SHARE));
  }

  /** Reserves a place for a connection from an address. `close` closes it to make room. null if no place is free. */
  take(address: string, close: () => void): ClientConnection | null {
    const { max, proxies } = this.#options;
    const isProxy = proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
    const most = isProxy ? Math.max(this.#share, max - this.#share) : this.#share;
    const counted = countedAddress(address);
    const share = this.#shares.get(counted) ?? { count: 0, idle: new Set() };
    if (share.count >= most && !this.#makeRoom(share.idle)) {
      this.#lastRefused = counted;
      return this.#refuse('byAddress');
    }
    if (this.#count >= max && !this.#makeRoom(this.#idle)) return this.#refuse('full');
    this.#shares.set(counted, share);
    share.count += 1;
    this.#count += 1;
    const held = this.#held(counted, share, close);
    held.rest();
    return held;
  }

  /** Counts a connection that was closed because the head of its request did not arrive in time. */
  noteLateHead(): void {
    this.#refuse('lateHeads');
  }

  /** Logs the counts since the last line, if that is long enough ago. */
  report(now = performance.now()): void {
    const { byAddress, full, lateHeads, idle } = this.#refusals;
    if (byAddress + full + lateHeads === 0 || now - this.#loggedAt < LOG_EVERY_MS) return;
    this.#loggedAt = now;
    this.#refusals = none();
    const { max, onLog } = this.#options;
    const parts = [
      byAddress > 0 &&
        `${byAddress} refused because their address held ${this.#share} of ${max} places, most recently ${this.#lastRefused} (if it is a reverse proxy, add it with --trusted-proxy)`,
      full > 0 && `${full} refused because all ${max} places were in use (raise ulimit -Hn)`,
      lateHeads > 0 && `${lateHeads} closed because no complete request head arrived in time`,
      idle > 0 && `${idle} idle, closed to make room`,
    ];
    onLog(`Connections: ${parts.filter((part) => part !== false).join('; ')}.`);
  }

  #held(counted: string, share: AddressConnections, close: () => void): OpenClientConnection {
    let isOver = false;
    const busy = (): void => {
      this.#idle.delete(held);
      share.idle.delete(held);
    };
    const held: OpenClientConnection = {
      close,
      busy,
      rest: () => {
        if (isOver) return;
        this.#idle.add(held);
        share.idle.add(held);
      },
      leave: () => {
        if (isOver) return;
        isOver = true;
        busy();
        this.#count -= 1;
        share.count -= 1;
        if (share.count === 0) this.#shares.delete(counted);
      },
    };
    return held;
  }

  /** Closes the connection that has been idle for longest. Returns false if none is idle. */
  #makeRoom(idle: ReadonlySet<OpenClientConnection>): boolean {
    const [oldest] = idle;
    if (oldest === undefined) return false;
    oldest.leave();
    oldest.close();
    this.#refusals.idle += 1;
    return true;
  }

  #refuse(why: keyof ConnectionRefusals): null {
    this.#refusals[why] += 1;
    this.report();
    return null;
  }
}
