import { directoryOf, type Env } from '../env.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { DirectoryRpc, PresentPool } from '../contract/rpc/directory-rpc.ts';
import type { PoolWatchRequest } from '../contract/rpc/feed-rpc.ts';
import type { AssumedLimit, GroupDefinition } from '../contract/rpc/group-rpc.ts';
import { within, type Schedule } from '../runtime/async.ts';
import { logEvent } from '../runtime/log.ts';
import { definitionFrom, isRetired, type PoolIdentity, type Definition } from './definition.ts';
import type { GroupStore } from './store.ts';

/** Delay before a pool of a full group asks again to be listed. */
const LIST_AGAIN_MS = 60_000;

/** Value of the row `listed` while the directory notifies the pool of every change. */
const REPORTED = 'told';

interface ListingParts {
  readonly env: Env;
  readonly store: GroupStore;
  readonly identity: PoolIdentity;
  /** Time by the pool's own clock. */
  readonly now: () => number;
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Returns the pool's costs for the directory to store, or null if there are none. */
  readonly costs: () => string | null;
  /** Called when the directory begins to store the pool's reports. */
  readonly onListed: () => void;
}

/**
 * The pool's place on the directory's list. The directory notifies listed pools of every change, and shows them in the
 * status. The first 2xx lists a pool, so a key that no provider accepts is never listed.
 */
class PoolListing {
  readonly #parts: ListingParts;
  readonly #readDefinition: () => Promise<boolean>;
  #isListed: boolean;
  #hadSuccess: boolean;
  #isJoining = false;
  #joinAgainAt = -Infinity;
  /** Serializes messages to the directory: a late `unlist` must not undo a `list`. */
  #sent: Promise<unknown> = Promise.resolve();

  /** @param readDefinition asks the directory for the definition. Returns false on failure */
  constructor(parts: ListingParts, readDefinition: () => Promise<boolean>) {
    this.#parts = parts;
    this.#readDefinition = readDefinition;
    const stored = parts.store.recall('listed');
    this.#isListed = stored === REPORTED;
    // The row is written with the first success.
    this.#hadSuccess = stored !== null;
  }

  /** Whether the directory notifies the pool of every change, and the pool has read the version since which it does. */
  get isListed(): boolean {
    return this.#isListed;
  }

  /** Whether the pool had a success, in this or an earlier instance. */
  get hadSuccess(): boolean {
    return this.#hadSuccess;
  }

  /** Records a 2xx, and joins the list if the pool is not on it. */
  noteSuccess(): void {
    if (!this.#hadSuccess) {
      this.#hadSuccess = true;
      // Written before the directory answers, so that a reset meanwhile does not lose the success.
      this.#parts.store.remember('listed', 'false');
    }
    if (!this.#isListed && this.#parts.now() >= this.#joinAgainAt) this.join();
  }

  /** Asks the directory to list the pool, also if it may be on the list of a directory that no longer exists. */
  join(): void {
    if (this.#isJoining) return;
    this.#isJoining = true;
    const joined = this.#send(() => this.#join());
    this.#parts.waitUntil(
      joined
        .catch(() => {})
        .finally(() => {
          this.#isJoining = false;
        }),
    );
  }

  async #join(): Promise<void> {
    const { env, identity, now } = this.#parts;
    if (!(await directoryOf(env).list(identity))) {
      this.#set(false);
      this.#joinAgainAt = now() + LIST_AGAIN_MS;
      return;
    }
    // The pool was not notified of a change before that.
    if (await this.#readDefinition()) this.#set(true);
  }

  /** Removes an empty, retired pool from the list. */
  leave(): void {
    const { identity, costs, waitUntil } = this.#parts;
    if (this.#isListed) waitUntil(this.#leave(identity, costs() ?? undefined).catch(() => {}));
  }

  /** Removes the pool from the list until its next 2xx, even if the pool did not know that it was listed. */
  async forget(jurisdiction: GroupConfig['jurisdiction']): Promise<void> {
    const { identity, costs } = this.#parts;
    await this.#leave({ ...identity, jurisdiction }, costs() ?? undefined);
  }

  /**
   * The pool counts as not notified from now on, even if the message fails. If it is still listed, notifications have
   * no effect.
   */
  #leave(...[pool, costs]: Parameters<DirectoryRpc['unlist']>): Promise<void> {
    this.#set(false);
    return this.#send(() => {
      this.#set(false); // it may have been listed just before
      return directoryOf(this.#parts.env).unlist(pool, costs);
    });
  }

  /** Notes that the directory does not list the pool. */
  noteUnlisted(): void {
    this.#set(false);
  }

  #send<T>(work: () => Promise<T>): Promise<T> {
    const sent = this.#sent.then(work);
    this.#sent = sent.catch(() => {});
    return sent;
  }

  #set(isListed: boolean): void {
    if (this.#isListed === isListed) return;
    this.#isListed = isListed;
    this.#parts.store.remember('listed', isListed ? REPORTED : String(isListed));
    if (isListed) this.#parts.onListed();
  }
}

/**
 * A pool's definition: its group's configuration, of the directory's version.
 *
 * Every definition arrives at `take`, which decides by its version whether it applies. Every question to the directory
 * is asked by `#ask`, and its answer arrives at `take` as well.
 *
 * **Who sends a definition.** The directory pushes each change to the listed pools that are in use
 * (`src/directory/config-push.ts`). Pools with unverified keys receive theirs from the object that contains them, and
 * pass it on when they are handed over. A new instance starts with the stored one.
 *
 * **When the pool asks the directory.**
 * - Before a new call that was routed by a newer version.
 * - Before a new call, if the definition is older than 4 s, and the pool receives no pushes or the call was routed by
 *   an older version (`mustRead`).
 * - With the message that it is in use, after it was listed, and before an operator acts on a member.
 * - Every 2 s while it is paused, has waiters and receives no pushes.
 *
 * **Which definition wins.** The one with the higher version. At the same version, one that says that the pool receives
 * no calls. A directory that was restored or created again has a lower version. That one wins only as the answer to a
 * question, if a new call was routed by a lower version too, and if nothing else arrived since the question.
 *
 * **When the directory is out of reach.** Calls wait for it for 1 s. The pool then decides by its last definition, and
 * still takes a late answer. New calls make it ask again after 4 s.
 */

/** How long tickets wait for the directory before the pool continues with its last definition. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** Minimum interval at which a paused pool that receives no pushes reads the directory on behalf of its waiters. */
const REFRESH_EVERY_MS = 2_000;

/**
 * Maximum age of a pool's definition when it decides about a new call, if the pool receives no pushes or the call was
 * routed by an older version.
 */
const KNOWN_MS_MAX = 4_000;

/** What is known about an answer of the directory. */
interface DefinitionAnswer {
  /** Whether the directory notifies the pool of changes, as far as the answer tells. */
  readonly isListed: boolean;
  /** Number of definitions that had arrived when the question was sent. */
  readonly receivedBefore: number;
}

/** Called when the definition changes. `moved` means that calls may be routed differently. */
type OnChange = (moved: boolean) => void;

interface DirectoryLinkParts extends ListingParts {
  readonly after: Schedule;
  readonly onChange: OnChange;
  /** Returns the pool's state for the directory to store. */
  readonly said: () => string;
  readonly idleMs: () => number;
  /** Whether the directory considers the pool in use and notifies it of changes. */
  readonly isInWindow: () => boolean;
  readonly nextWindow: () => number;
  /** Called when the directory has opened a window. */
  readonly onOpened: (window: number) => void;
  /** Called when the dashboards' hub wants the pool to push its changes. */
  readonly onWatched: (watch: PoolWatchRequest) => void;
  /** Whether the pool is unverified. The object that contains it then updates its definition before each call. */
  readonly isUnverified: boolean;
}

/** Keeps a pool's definition up to date with the directory. */
export class DirectoryLink {
  readonly listing: PoolListing;
  readonly #parts: DirectoryLinkParts;
  #definition: Definition;
  #pushed: GroupDefinition | null;
  #catchingUp: Promise<boolean> | null = null;
  /** Whether the definition was recent enough to decide about new calls when the directory was last asked. */
  #wasFresh = false;
  #refreshAt = -Infinity;
  #readAt = -Infinity;
  /** Number of definitions that have arrived so far. */
  #received = 0;
  /** Whether a new call was routed by an older version and the directory has not sent a newer one since. */
  #isContradicted = false;

  constructor(parts: DirectoryLinkParts) {
    this.#parts = parts;
    this.listing = new PoolListing(parts, () => this.#ask());
    const { store } = parts;
    const pushed = store.recall('definition');
    const assumed = store.recall('assumed');
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
    if (!paused || this.listing.isListed || now < this.#refreshAt) return;
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
    const isReported = this.listing.isListed && this.#parts.isInWindow();
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
    this.#catchingUp = this.#ask().finally(() => {
      this.#catchingUp = null;
    });
    return this.#catchingUp;
  }

  /**
   * Reports to the directory that the pool is in use, and applies its answer. In a window no call waits for this,
   * otherwise new calls do. Returns false on failure.
   */
  wake(): Promise<boolean> {
    return this.#parts.isInWindow() ? this.#ask(true) : this.catchUp();
  }

  /**
   * Asks the directory for the definition, with the message that the pool is in use if `asWake`. Returns false on
   * failure. An answer that is too late for waiting calls is still applied.
   */
  async #ask(asWake = !this.#parts.isInWindow()): Promise<boolean> {
    const { identity, after } = this.#parts;
    try {
      await within(DIRECTORY_TIMEOUT_MS, this.#receive(asWake && this.isKept), after);
      return true;
    } catch (error) {
      logEvent('directory_unreachable', { group: identity.group, error: String(error) });
      return false;
    }
  }

  async #receive(asWake: boolean): Promise<void> {
    const { env, identity, nextWindow, onOpened, onWatched } = this.#parts;
    const receivedBefore = this.#received;
    if (!asWake) {
      const read = await directoryOf(env).definition(identity.group);
      return this.take(read, { receivedBefore, isListed: false });
    }
    const window = nextWindow();
    const woken = await directoryOf(env).wake(this.#present(window));
    // The pool rested for so long that the directory removed it from the list.
    if (!woken.isListed) this.listing.noteUnlisted();
    this.take(woken.definition, { receivedBefore, isListed: woken.isListed });
    if (this.isKept) onOpened(window);
    if (woken.watch !== undefined) onWatched(woken.watch);
  }

  /** Whether the directory stores the pool's reports. It does not for a pool whose key had no success yet. */
  get isKept(): boolean {
    const { isUnverified, identity } = this.#parts;
    if (isUnverified || this.isRetired) return false;
    if (this.listing.isListed) return true;
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

  #present(window: number): PresentPool {
    const { identity, idleMs, said, costs } = this.#parts;
    const { config } = this.#definition;
    const place = config === null ? {} : { jurisdiction: config.jurisdiction };
    const spent = costs();
    const ofCosts = spent === null ? {} : { costs: spent };
    return { ...identity, ...place, window, idleMs: idleMs(), said: said(), ...ofCosts };
  }

  /**
   * Applies a definition, whatever sent it, if it wins by the rules above. Only the answer to a question has an
   * `answer`, and only it can bring back a lower version.
   */
  take(definition: GroupDefinition, answer?: DefinitionAnswer): void {
    const { version, routingVersion, takesNoCalls } = this.#definition;
    if (answer !== undefined && this.#isContradicted) {
      this.#isContradicted = false;
      if (definition.version < version) return this.#takeOlder(definition, answer);
    }
    this.#readAt = this.#parts.now();
    this.#received += 1;
    const isNews = definition.version > version;
    const ends =
      definition.version === version && definition.takesNoCalls === true && !takesNoCalls;
    if (isNews || ends) this.#define(definition, definition.routingVersion > routingVersion);
    // The pool was not notified of that version, so it may be on the list of a directory that no longer exists.
    const isMissed = isNews && answer?.isListed === false;
    if (isMissed && this.listing.isListed && !this.isRetired) this.listing.join();
  }

  #takeOlder(definition: GroupDefinition, { receivedBefore }: DefinitionAnswer): void {
    if (this.#received !== receivedBefore) {
      this.#readAt = -Infinity; // the next new call reads again
      return;
    }
    this.#received += 1;
    // Another directory does not list this pool, and would not notify it of changes.
    this.listing.noteUnlisted();
    this.#define(definition, true);
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
}
