import type { GatewayKeyConfig, Config } from '../contract/config/config.ts';
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileRoutes, type Routes } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { callsThatNeedKey, keysByHash } from '../routing/key-access.ts';
import { snapshotStoreOf, type Env } from '../env.ts';
import { within } from '../runtime/async.ts';

/** A snapshot with everything that is compiled once per version. */
export interface RoutingTable {
  readonly snapshot: ConfigSnapshot;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly routes: Routes;
  /** Gateway keys by hash, including the hash before a rotation. */
  readonly keys: ReadonlyMap<string, GatewayKeyConfig>;
  /** Whether calls to all, some or no upstreams need a gateway key. */
  readonly needKey: ReturnType<typeof callsThatNeedKey>;
}

/** A query to the directory. Queries are numbered from 1, in the order in which they were sent. */
export interface ConfigQuery {
  readonly number: number;
  /** When it was sent, by the isolate's clock. */
  readonly at: number;
}

/**
 * The newest configuration that an isolate has received, and the rule that orders what it receives.
 *
 * - The answer to a later query wins, even with a lower version: the directory may have been restored or created again.
 * - The answer to an earlier query wins only with a newer version of the same directory.
 * - The copy from the store has an unknown age. It wins only with a newer version, and only if no query was answered
 *   while it was read. From then on, queries sent before it count as earlier ones.
 *
 * It contains plain data, because the requests of an isolate must not share promises.
 */
export class ConfigCopy {
  #table: RoutingTable | null = null;
  #asOf = 0;
  #answered = 0;
  #confirmedAt = -Infinity;

  get table(): RoutingTable | null {
    return this.#table;
  }

  /** Number of the last query that confirmed the copy. 0 if the directory has not answered yet. */
  get answered(): number {
    return this.#answered;
  }

  /** When the last query was sent that confirmed the copy. After a copy from the store, the time passed to it. */
  get confirmedAt(): number {
    return this.#confirmedAt;
  }

  /**
   * Takes the answer of the directory to a query. null means that the version with the tag `known` is the newest, which
   * says nothing about any other copy.
   */
  takeAnswer(snapshot: ConfigSnapshot | null, known: string | null, query: ConfigQuery): void {
    if (snapshot === null) {
      if (this.#table?.snapshot.tag !== known) return;
    } else {
      if (query.number <= this.#asOf && !this.#isNewer(snapshot)) return;
      this.#table = this.#compile(snapshot);
    }
    this.#confirmedAt = Math.max(this.#confirmedAt, query.at);
    this.#answered = Math.max(this.#answered, query.number);
    this.#asOf = Math.max(this.#asOf, query.number);
  }

  /**
   * Takes a copy from the store.
   *
   * @param answeredBefore value of `answered` when the read of the store began
   * @param sent number of the last query that was sent
   * @param confirmedAt the time that counts as its last confirmation
   */
  takeStored(
    stored: ConfigSnapshot,
    {
      answeredBefore,
      sent,
      confirmedAt,
    }: { readonly answeredBefore: number; readonly sent: number; readonly confirmedAt: number },
  ): void {
    const isSame = stored.version === this.#table?.snapshot.version;
    if (this.#answered > answeredBefore || isSame || !this.#isNewer(stored)) return;
    this.#table = this.#compile(stored);
    this.#asOf = sent;
    this.#confirmedAt = confirmedAt;
  }

  /** Whether a snapshot is not older. It may have the same version with other full groups. */
  #isNewer({ version, fingerprintKey }: ConfigSnapshot): boolean {
    if (this.#table === null) return true;
    const { snapshot } = this.#table;
    return fingerprintKey === snapshot.fingerprintKey && version >= snapshot.version;
  }

  #compile(snapshot: ConfigSnapshot): RoutingTable {
    const { version, config } = snapshot;
    const isOpen = config.leases === 'open';
    if (isOpen && this.#table?.snapshot.config.leases !== 'open') {
      logEvent('leases_open', { version });
    }
    const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
    return {
      snapshot,
      upstreams,
      routes: compileRoutes(config, upstreams),
      keys: keysByHash(config.keys),
      needKey: callsThatNeedKey(config, upstreams.values()),
    };
  }
}

/** The only key in the store. */
const KEY = 'snapshot';

/** Time limit for the store. A new isolate has queried the directory by then. */
const STORE_TIMEOUT_MS = 1_000;

/** Writes the copy for new isolates, without the parts that no call uses. */
export async function storeSnapshot(env: Env, snapshot: ConfigSnapshot): Promise<void> {
  const config: Config = { ...snapshot.config, admin_keys: [], webhook: null };
  const { temporary: _temporary, ...rest } = snapshot;
  await snapshotStoreOf(env)?.put(KEY, JSON.stringify({ ...rest, config }));
}

/** Reads that copy. null if there is none, or if it cannot be read. */
export async function storedSnapshot(env: Env): Promise<ConfigSnapshot | null> {
  const store = snapshotStoreOf(env);
  if (store === null) return null;
  try {
    // The cast is sound: only `storeSnapshot` writes the key.
    return (await within(STORE_TIMEOUT_MS, store.get(KEY, 'json'))) as ConfigSnapshot | null;
  } catch (error) {
    logEvent('snapshot_unreadable', { error: String(error) });
    return null;
  }
}
