/**
 * The configuration of this isolate.
 *
 * Routing needs the configuration for every call, so each isolate keeps one copy in memory. There is one way to a newer
 * one: the isolate asks the directory, and `ConfigCopy` decides by the order of the queries whether the answer applies.
 * One query runs at a time, and all requests share its answer.
 *
 * **When the directory is asked.**
 * - Behind a request, if the copy was confirmed 2 s ago or earlier. The request does not wait.
 * - Before a request, if the copy is too old for it (next paragraph), or older than a version that a pool or an admin
 *   request of this isolate has named.
 * - Before a rejection that a newer configuration may remove, such as an unknown model. At most once a second.
 * - At the first request of an isolate. It reads the published copy first, because the store is nearby. That copy
 *   serves calls until the directory has answered, but its age is unknown.
 *
 * **How old the copy may be.** A call that reaches a pool may use a copy that is 5 minutes old, because a pool rejects
 * outdated versions. Every other request needs one that was confirmed within 4 s. The empty configuration allows every
 * call, so it expires after 1 s.
 *
 * **When the directory is out of reach.** A request waits for it for at most 1 s, and then continues with the copy.
 * After a wait in vain, requests with a copy do not wait for 4 s. Without any answer of the directory so far, requests
 * that reach no pool are rejected.
 *
 * **After `moved`.** A pool returns `moved` with its version if a new call was routed by an older one. The call then
 * waits for a copy of at least that version as long as its client would wait in the queue (`since`). A lower version
 * is enough if the directory confirms it now: the pool may have its version from a directory that no longer exists.
 *
 * **Why changes apply within 5 s.** Requests that reach no pool learn of a revoked key or a deleted group after 4 s at
 * most, plus 1 s for the query. For all others the pool knows of it within the same time: the directory notifies pools
 * in use, and other pools read the directory before they accept a new call (`src/group/directory-link.ts`).
 */
import { directoryOf, snapshotStoreOf, type Env } from '../env.ts';
import { pause, within, steadyClock, type Background } from '../runtime/async.ts';
import { logEvent } from '../runtime/log.ts';
import { ConfigCopy, storedSnapshot, type ConfigQuery, type RoutingTable } from './snapshots.ts';

/**
 * Maximum ages: without a refresh in the background, for requests that reach no pool, and for calls that reach one.
 * `sureMs` plus the time limit of a query is the 5 s within which changes apply.
 */
const AGES = { freshMs: 2_000, sureMs: 4_000, usableMs: 300_000 };

/** Ages of the empty configuration. */
const AGES_OF_EMPTY: typeof AGES = { freshMs: 500, sureMs: 1_000, usableMs: 1_000 };

type ConfigAge = 'sureMs' | 'usableMs';

/** Minimum interval between background refreshes, and between queries before a rejection. */
const ASK_EVERY_MS = 1_000;

/** Interval at which a request checks whether the directory has answered another request. */
const LOOK_EVERY_MS = 10;

/** Maximum wait of a request for the directory before it continues with the copy. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** Time for which a new isolate waits for the store before it also queries the directory. */
const STORE_FIRST_MS = 250;

/** Time limit for an answer that no request waits for any more, and that is still used. */
const LATE_MS = 5_000;

/** Pause of a waiting request between two attempts, and interval at which it reads the store. */
const RETRY_PAUSE_MS = 250;
const LOOK_INTO_STORE_MS = 5_000;

/** Time after a failed wait in which only requests that need an answer wait for the directory. */
const IN_VAIN_MS = 4_000;

export class IsolateConfig {
  readonly #copy = new ConfigCopy();
  /** The last query. It is open until it has ended. Before a read of the store it has the number of the one before. */
  #query: ConfigQuery & { isOpen: boolean } = { number: 0, at: -Infinity, isOpen: false };
  #queryFailedAt = -Infinity;
  /** Time of the last wait without an answer. */
  #waitFailedAt = -Infinity;
  /** Time of the last query before a rejection. */
  #recheckedAt = -Infinity;
  /** A version that was announced to this isolate and not queried yet. */
  #announced = 0;
  #storeReadAt = -Infinity;
  /** Tag of the copy in the store, or null if there was none. undefined once the directory has received it. */
  #storedTag: string | null | undefined;
  #reads = 0;
  #waits = 0;

  /** How often a request needed the configuration, and how often one waited for it. */
  get reads(): { readonly all: number; readonly waited: number } {
    return { all: this.#reads, waited: this.#waits };
  }

  /** The copy as it is, of any age. null if there is none yet. */
  get copy(): RoutingTable | null {
    return this.#copy.table;
  }

  /**
   * Returns the configuration for a call that reaches a pool. The copy may be minutes old, but not older than
   * `minVersion` if the directory can be reached.
   *
   * @returns null if there has never been one
   */
  forPool(env: Env, ctx: Background, minVersion = 0): Promise<RoutingTable | null> {
    return this.#read(env, ctx, minVersion, 'usableMs');
  }

  /**
   * Returns the configuration for a request that reaches no pool. It is at most a few seconds old if the directory
   * answers.
   *
   * @returns null if the directory has never answered, because the age of a copy from the store is unknown
   */
  async confirmed(env: Env, ctx: Background): Promise<RoutingTable | null> {
    const table = await this.#read(env, ctx, 0, 'sureMs');
    return this.#isConfirmed ? table : null;
  }

  /**
   * Returns a configuration that is not older than a version that a pool reported. An older copy is not enough, however
   * long the directory takes, unless the directory confirms it now.
   *
   * @returns null if there is none before `untilAt`, or if the client has disconnected
   */
  async since(
    { env, ctx, signal }: { env: Env; ctx: Background; signal: Pick<AbortSignal, 'aborted'> },
    version: number,
    untilAt: number,
  ): Promise<RoutingTable | null> {
    const sentBefore = this.#query.number;
    const isThere = (): boolean =>
      this.copy !== null &&
      (this.copy.snapshot.version >= version || this.#copy.answered > sentBefore);
    if (isThere()) return this.copy;
    this.#waits += 1;
    for (let isFirst = true; ; isFirst = false) {
      const isBroken = steadyClock.now() - this.#queryFailedAt < RETRY_PAUSE_MS;
      // A thousand requests may wait for minutes. One of them queries, and the others check rarely.
      if (!isBroken && (isFirst || !this.#isAsking())) {
        await this.#untilThere(env, ctx, isThere, false);
      }
      const isStoreDue = steadyClock.now() - this.#storeReadAt > LOOK_INTO_STORE_MS;
      if (!isThere() && isStoreDue) await this.#readStore(env);
      if (isThere()) return this.copy;
      if (signal.aborted || steadyClock.now() >= untilAt) return null;
      await pause(RETRY_PAUSE_MS);
    }
  }

  /**
   * Returns the configuration for a request that the current copy rejects, for example because of an unknown name. The
   * directory is asked at most once a second for such requests. Requests that arrive meanwhile share the answer.
   *
   * @returns null if the directory has never answered
   */
  async recheck(env: Env, ctx: Background): Promise<RoutingTable | null> {
    const now = steadyClock.now();
    if (now - this.#recheckedAt >= ASK_EVERY_MS) this.#recheckedAt = now;
    const since = this.#recheckedAt;
    await this.#untilThere(env, ctx, () => this.#copy.confirmedAt >= since, this.#isConfirmed);
    return this.#isConfirmed ? this.copy : null;
  }

  /** Whether a configuration may be outdated: there is a newer copy, or the directory has not confirmed it for 4 s. */
  mayBeOld(table: RoutingTable): boolean {
    return table !== this.copy || !this.#has(0, 'sureMs');
  }

  /** Announces a version that this isolate created. Its next call uses that version. */
  announce(version: number): void {
    this.#announced = Math.max(this.#announced, version);
    this.#waitFailedAt = -Infinity;
  }

  async #read(
    env: Env,
    ctx: Background,
    minVersion: number,
    age: ConfigAge,
  ): Promise<RoutingTable | null> {
    this.#reads += 1;
    const wanted = Math.max(minVersion, this.#announced);
    const { copy } = this;
    if (copy !== null && this.#has(wanted, age)) {
      if (this.#ageMs >= agesOf(copy).freshMs) this.#refreshBehind(env, ctx);
      return copy;
    }
    this.#waits += 1;
    const mayContinue = age === 'usableMs' ? copy !== null : this.#isConfirmed;
    await this.#untilThere(env, ctx, () => this.#has(wanted, age), mayContinue);
    return this.copy;
  }

  /** Whether the directory has answered this isolate. Until then, the copy comes from the store. */
  get #isConfirmed(): boolean {
    return this.#copy.answered > 0;
  }

  get #ageMs(): number {
    return steadyClock.now() - this.#copy.confirmedAt;
  }

  /** Whether the copy has at least that version and is not too old. */
  #has(version: number, age: ConfigAge): boolean {
    const { copy } = this;
    return copy !== null && copy.snapshot.version >= version && this.#ageMs < agesOf(copy)[age];
  }

  /** Whether a query is running. An older one may be stuck in an instance that no longer exists. */
  #isAsking(lostAfterMs = DIRECTORY_TIMEOUT_MS): boolean {
    return this.#query.isOpen && steadyClock.now() - this.#query.at < lostAfterMs;
  }

  #refreshBehind(env: Env, ctx: Background): void {
    const isDue = steadyClock.now() - this.#query.at >= ASK_EVERY_MS;
    // No request waits for this query, so the earlier one may take until its answer is discarded.
    if (isDue && !this.#isAsking(LATE_MS)) ctx.waitUntil(this.#ask(env));
  }

  /**
   * Waits until the directory has answered and `isThere` is true, for at most a second. One request queries, and the
   * others check for its answer. After a failed wait, requests that can continue without an answer do not wait.
   */
  async #untilThere(
    env: Env,
    ctx: Background,
    isThere: () => boolean,
    mayContinue: boolean,
  ): Promise<void> {
    const startedAt = steadyClock.now();
    if (mayContinue && startedAt - this.#waitFailedAt < IN_VAIN_MS) {
      return this.#refreshBehind(env, ctx);
    }
    const untilAt = startedAt + DIRECTORY_TIMEOUT_MS;
    while (!isThere() && steadyClock.now() < untilAt) {
      if (this.#isAsking()) {
        await pause(LOOK_EVERY_MS);
        continue;
      }
      const isStoreSlow = this.copy === null && !(await this.#startFromStore(env));
      const answering = this.#ask(env);
      // Other requests wait for the answer even if this client disconnects.
      ctx.waitUntil(answering);
      // The loop then checks whether the store or the directory answers first.
      if (isStoreSlow) continue;
      if (isThere()) return;
      await within(untilAt - steadyClock.now(), answering).catch(() => {});
      if (this.#queryFailedAt < startedAt) break;
      // An object that was reset answers the next query.
      await pause(RETRY_PAUSE_MS);
    }
    if (!isThere()) this.#waitFailedAt = steadyClock.now();
  }

  /** Asks the directory for a newer configuration than the copy. */
  async #ask(env: Env): Promise<void> {
    const query = { number: this.#query.number + 1, at: steadyClock.now(), isOpen: true };
    this.#query = query;
    const wanted = this.#announced;
    const known = this.copy?.snapshot.tag ?? null;
    try {
      const answer = directoryOf(env).snapshot(known, this.#storedTag);
      this.#copy.takeAnswer(await within(LATE_MS, answer), known, query);
      this.#storedTag = undefined;
      this.#waitFailedAt = -Infinity;
    } catch (error) {
      this.#queryFailedAt = steadyClock.now();
      logEvent('directory_unreachable', { error: String(error) });
    }
    // If that version was not available either, later calls need not all wait for it.
    if (this.#announced === wanted) this.#announced = 0;
    query.isOpen = false;
  }

  /** Reads the store before the first query. Returns whether the store answered in time, also without a copy. */
  #startFromStore(env: Env): Promise<boolean> {
    this.#query = { ...this.#query, at: steadyClock.now(), isOpen: true };
    return within(STORE_FIRST_MS, this.#readStore(env)).then(
      () => true,
      () => false,
    );
  }

  /** Reads the copy in the store, whose age is unknown: it serves calls that reach a pool only. */
  async #readStore(env: Env): Promise<void> {
    if (snapshotStoreOf(env) === null) return;
    this.#storeReadAt = steadyClock.now();
    const answeredBefore = this.#copy.answered;
    const stored = await storedSnapshot(env);
    this.#storedTag = stored?.tag ?? null;
    if (stored === null) return;
    const confirmedAt = steadyClock.now() - AGES.sureMs;
    this.#copy.takeStored(stored, { answeredBefore, sent: this.#query.number, confirmedAt });
  }
}

function agesOf({ snapshot }: RoutingTable): typeof AGES {
  return snapshot.version === 0 ? AGES_OF_EMPTY : AGES;
}

export const isolateConfig = new IsolateConfig();
