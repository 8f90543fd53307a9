import type { GroupConfig } from '../contract/config/config.ts';
import { directoryOf, type Env } from '../env.ts';
import type { DirectoryRpc } from '../contract/rpc/directory-rpc.ts';
import type { PoolWatchRequest } from '../contract/rpc/feed-rpc.ts';
import type { AssumedLimit, GroupDefinition } from '../contract/rpc/group-rpc.ts';
import type { PresentPool, Woken } from '../contract/rpc/presence-rpc.ts';
import type { Schedule } from '../runtime/call-clock.ts';
import { logEvent } from '../runtime/log.ts';
import { within } from '../runtime/within.ts';
import { definitionFrom, isRetired, type Definition, type PoolIdentity } from './definition.ts';
import type { GroupStore } from './store.ts';

/** Delay before a pool of a full group asks again to be listed. */
const LIST_AGAIN_MS = 60_000;
/** How long tickets wait for the directory before the pool continues with its last definition. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** Minimum interval at which a paused pool that receives no pushes reads the directory on behalf of its waiters. */
const REFRESH_EVERY_MS = 2_000;

/**
 * Maximum age of a pool's definition when it decides about a new call, if the pool receives no pushes or the call was
 * routed by an older version.
 */
const KNOWN_MS_MAX = 4_000;

/** Value of the row `listed` while the directory notifies the pool of every change. */
const REPORTED = 'told';

/** Called when the definition changes. `moved` means that calls may be routed differently. */
type OnChange = (moved: boolean) => void;

interface DirectoryLinkParts {
  readonly env: Env;
  readonly store: GroupStore;
  readonly identity: PoolIdentity;
  /** Time by the pool's own clock. */
  readonly now: () => number;
  readonly after: Schedule;
  readonly waitUntil: (work: Promise<unknown>) => void;
  readonly onChange: OnChange;
  /** Returns the pool's state for the directory to store. */
  readonly said: () => string;
  /** Returns the pool's costs for the directory to store, or null if there are none. */
  readonly costs: () => string | null;
  readonly idleMs: () => number;
  /** Whether the directory considers the pool in use and notifies it of changes. */
  readonly isInWindow: () => boolean;
  readonly nextWindow: () => number;
  /** Called when the directory begins to store the pool's reports. */
  readonly onListed: () => void;
  /** Called when the directory has opened a window. */
  readonly onOpened: (window: number) => void;
  /** Called when the dashboards' hub wants the pool to push its changes. */
  readonly onWatched: (watch: PoolWatchRequest) => void;
  /** Whether the pool is unverified. The object that contains it then updates its definition before each call. */
  readonly isUnverified: boolean;
}

/** Keeps a pool's definition up to date with the directory. */
export class DirectoryLink {
  readonly #parts: DirectoryLinkParts;
  #definition: Definition;
  #pushed: GroupDefinition | null;
  #catchingUp: Promise<boolean> | null = null;
  /** Whether the definition was recent enough to decide about new calls when the directory was last asked. */
  #wasFresh = false;
  /**
   * Whether the directory notifies this pool of every change, and the pool has read the version from which that holds.
   */
  #listed: boolean;
  #hadSuccess: boolean;
  #isListing = false;
  #listAgainAt = -Infinity;
  #refreshAt = -Infinity;
  #readAt = -Infinity;
  /** Answers and pushes received from the directory so far. */
  #received = 0;
  /** Whether a new call was routed by an older version and the directory has not sent a newer one since. */
  #isContradicted = false;
  /** Serializes messages to the directory: a late `unlist` must not undo a `list`. */
  #reported: Promise<unknown> = Promise.resolve();

  constructor(parts: DirectoryLinkParts) {
    this.#parts = parts;
    const { store } = parts;
    const pushed = store.recall('definition');
    const assumed = store.recall('assumed');
    const listed = store.recall('listed');
    this.#listed = listed === REPORTED;
    // The row is written with the first success.
    this.#hadSuccess = listed !== null;
    this.#pushed = pushed === null ? null : (JSON.parse(pushed) as GroupDefinition);
    this.#definition = definitionFrom(
      this.#pushed,
      assumed === null ? null : (JSON.parse(assumed) as AssumedLimit),
    );
  }

  get definition(): Definition {
    return this.#definition;
  }

  /** The definition as the directory sent it, or null if it has sent none. */
  get pushed(): GroupDefinition | null {
    return this.#pushed;
  }

  /** The pool's partition, or null if its group is not partitioned. */
  get partition(): string | null {
    return this.#parts.identity.partition;
  }

  /** Whether the pool had a success, in this or an earlier instance. */
  get hadSuccess(): boolean {
    return this.#hadSuccess;
  }

  /** Whether the group was configured and is no longer. */
  get isRetired(): boolean {
    return isRetired(this.#parts.identity, this.#definition);
  }

  /**
   * Reads the directory for a waiter of a paused pool that receives no pushes. Waiters bring no newer version, so an
   * ended pause would otherwise remain in force for all of them.
   */
  refreshIfPaused(): void {
    const now = this.#parts.now();
    const { paused } = this.#definition.switches;
    if (!paused || this.#listed || now < this.#refreshAt) return;
    this.#refreshAt = now + REFRESH_EVERY_MS;
    this.#parts.waitUntil(this.catchUp());
  }

  /**
   * Whether the directory must be read before deciding about a new call. The directory may not notify this pool, and a
   * Worker may have routed the call by a copy that is minutes old. If the call brings an older version than the pool's,
   * the pool's version may be the obsolete one: a new directory starts at 0, and a restored one further back.
   */
  mustRead(configVersion: number): boolean {
    const isOlder = configVersion < this.#definition.version;
    const isReported = this.#listed && this.#parts.isInWindow();
    if (this.#parts.isUnverified || (isReported && !isOlder)) return false;
    // Calls that arrive during the read wait for its answer, unless it is read for another reason.
    return this.#catchingUp === null ? !this.#isFresh : isOlder || !this.#wasFresh;
  }

  get #isFresh(): boolean {
    return this.#parts.now() - this.#readAt <= KNOWN_MS_MAX;
  }

  /** Reads the directory for a ticket that was routed by another version. Returns false if the read failed. */
  catchUp(configVersion = Infinity): Promise<boolean> {
    if (configVersion < this.#definition.version) this.#isContradicted = true;
    if (this.#catchingUp !== null) return this.#catchingUp;
    this.#wasFresh = this.#isFresh;
    // Set even if the read fails. The last definition is better than a rejection, and not every new call should wait
    // for the directory.
    this.#readAt = this.#parts.now();
    this.#catchingUp = this.#readDirectory().finally(() => {
      this.#catchingUp = null;
    });
    return this.#catchingUp;
  }

  /**
   * Reports to the directory that the pool is in use, and applies its answer. In a window no call waits for this,
   * otherwise new calls do. Returns false on failure.
   */
  wake(): Promise<boolean> {
    return this.#parts.isInWindow() ? this.#readDirectory(true) : this.catchUp();
  }

  /** Reads the directory. An answer that is too late for waiting calls is still applied. */
  async #readDirectory(asWake = !this.#parts.isInWindow()): Promise<boolean> {
    try {
      const before = this.#received;
      const reading = asWake && this.isKept ? this.#wake(before) : this.#read(before);
      await within(DIRECTORY_TIMEOUT_MS, reading, this.#parts.after);
      return true;
    } catch (error) {
      logEvent('directory_unreachable', {
        group: this.#parts.identity.group,
        error: String(error),
      });
      return false;
    }
  }

  /** Whether the directory stores the pool's reports. It does not for a pool whose key had no success yet. */
  get isKept(): boolean {
    const { isUnverified, identity } = this.#parts;
    if (isUnverified || this.isRetired) return false;
    if (this.#listed) return true;
    // For a new pool the directory decides whether its group is configured.
    const { version, config } = this.#definition;
    return identity.partition === null && (version === 0 || config !== null);
  }

  /**
   * Reports to the directory that the pool rests. The next new call is decided by the directory's definition at that
   * time.
   */
  async rest(window: number): Promise<void> {
    this.#readAt = -Infinity;
    const { env, after } = this.#parts;
    await within(DIRECTORY_TIMEOUT_MS, directoryOf(env).rest(this.#present(window)), after);
  }

  async #read(receivedBefore: number): Promise<void> {
    const { env, identity } = this.#parts;
    const definition = await directoryOf(env).definition(identity.group);
    this.#take({ definition, isListed: false }, receivedBefore);
  }

  /** Reads the directory with the message that the pool is in use. */
  async #wake(receivedBefore: number): Promise<void> {
    const { env, nextWindow, onOpened, onWatched } = this.#parts;
    const window = nextWindow();
    const woken = await directoryOf(env).wake(this.#present(window));
    // The pool rested for so long that the directory removed it from the list.
    if (!woken.isListed) this.#setListed(false);
    this.#take(woken, receivedBefore);
    if (this.isKept) onOpened(window);
    if (woken.watch !== undefined) onWatched(woken.watch);
  }

  #present(window: number): PresentPool {
    const { identity, idleMs, said, costs } = this.#parts;
    const { config } = this.#definition;
    const place = config === null ? {} : { jurisdiction: config.jurisdiction };
    const spent = costs();
    const ofCosts = spent === null ? {} : { costs: spent };
    return { ...identity, ...place, window, idleMs: idleMs(), said: said(), ...ofCosts };
  }

  /**
   * Applies an answer of the directory. An older version counts only if a new call was routed by an older version too.
   * It does not count if another message arrived since the request, because answers may be late.
   */
  #take({ definition: answer, isListed }: Woken, receivedBefore: number): void {
    const isBack = this.#isContradicted && answer.version < this.#definition.version;
    this.#isContradicted = false;
    if (!isBack) {
      const isNews = answer.version > this.#definition.version;
      this.adopt(answer);
      // The pool was not notified of that version, so it may be on the list of a directory that no longer exists.
      if (isNews && this.#listed && !isListed && !this.isRetired) this.#beginListing();
      return;
    }
    if (this.#received !== receivedBefore) {
      this.#readAt = -Infinity; // the next new call reads again
      return;
    }
    this.#received += 1;
    // Another directory does not list this pool, and would not notify it of changes.
    this.#setListed(false);
    this.#define(answer, true);
  }

  /** Applies a definition that is newer, or that says for the same version that the pool receives no calls. */
  adopt(pushed: GroupDefinition): void {
    this.#readAt = this.#parts.now();
    this.#received += 1;
    const { version, routingVersion, takesNoCalls } = this.#definition;
    const isNews = pushed.version > version;
    const ends = pushed.version === version && pushed.takesNoCalls === true && !takesNoCalls;
    if (isNews || ends) this.#define(pushed, pushed.routingVersion > routingVersion);
  }

  #define(definition: GroupDefinition, moved: boolean): void {
    this.#pushed = definition;
    this.#definition = definitionFrom(definition, this.#definition.assumed);
    this.#parts.store.remember('definition', JSON.stringify(definition));
    this.#parts.onChange(moved);
  }

  /** Applies the limit of an automatic group, which only the Worker's tables contain. */
  assume(assumed: AssumedLimit | null): void {
    if (assumed === null) return;
    const known = this.#definition.assumed;
    if (JSON.stringify(known) === JSON.stringify(assumed)) return;
    this.#definition = { ...this.#definition, assumed };
    this.#parts.store.remember('assumed', JSON.stringify(assumed));
    this.#parts.onChange(false);
  }

  /** Records a 2xx. The first one lists the pool, so a key that no provider accepts is never listed. */
  noteSuccess(): void {
    if (!this.#hadSuccess) {
      this.#hadSuccess = true;
      // Written before the directory answers, so that a reset meanwhile does not lose the success.
      this.#parts.store.remember('listed', 'false');
    }
    if (this.#listed || this.#parts.now() < this.#listAgainAt) return;
    this.#beginListing();
  }

  #beginListing(): void {
    if (this.#isListing) return;
    this.#isListing = true;
    const listed = this.#send(() => this.#list());
    this.#parts.waitUntil(
      listed
        .catch(() => {})
        .finally(() => {
          this.#isListing = false;
        }),
    );
  }

  async #list(): Promise<void> {
    const isListed = await directoryOf(this.#parts.env).list(this.#parts.identity);
    if (isListed === false) {
      this.#setListed(false);
      this.#listAgainAt = this.#parts.now() + LIST_AGAIN_MS;
      return;
    }
    // The pool was not notified of a change before that.
    if (await this.#readDirectory()) this.#setListed(true);
  }

  /** Removes an empty, retired pool from the list. */
  leave(): void {
    if (!this.#listed || !this.isRetired) return;
    const { identity, costs, waitUntil } = this.#parts;
    waitUntil(this.#unlist(identity, costs() ?? undefined).catch(() => {}));
  }

  /** Removes the pool from the list until its next 2xx, even if the pool did not know that it was listed. */
  async forget(jurisdiction: GroupConfig['jurisdiction']): Promise<void> {
    const { identity, costs } = this.#parts;
    await this.#unlist({ ...identity, jurisdiction }, costs() ?? undefined);
  }

  /**
   * The pool counts as not notified from now on, even if the message fails. If it is still listed, notifications have
   * no effect.
   */
  #unlist(...[pool, costs]: Parameters<DirectoryRpc['unlist']>): Promise<void> {
    this.#setListed(false);
    return this.#send(() => {
      this.#setListed(false); // it may have been listed just before
      return directoryOf(this.#parts.env).unlist(pool, costs);
    });
  }

  #send<T>(work: () => Promise<T>): Promise<T> {
    const sent = this.#reported.then(work);
    this.#reported = sent.catch(() => {});
    return sent;
  }

  #setListed(listed: boolean): void {
    if (this.#listed === listed) return;
    this.#listed = listed;
    this.#parts.store.remember('listed', listed ? REPORTED : String(listed));
    if (listed) this.#parts.onListed();
  }
}
