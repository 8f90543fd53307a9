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

/** How long a pool whose group has as many as it may have waits before it asks again to be listed. */
const LIST_AGAIN_MS = 60_000;
/** How long tickets wait for the directory before the pool goes on with what it knows. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** How long a paused pool that the directory tells nothing does not read it again for those who wait. */
const HEAR_EVERY_MS = 2_000;

/**
 * How old the knowledge of a pool may be when a newcomer is decided about, if the directory tells the pool nothing or the
 * newcomer was routed by an older version.
 */
const KNOWN_MS_MAX = 4_000;

/** Value of the row `listed`. Releases up to 0.1.0 wrote `true`, and were not told of every change. */
const REPORTED = 'told';

/** Told when the definition changed; `moved`: calls may go another way than before. */
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
  /** How the pool is, as the directory keeps it. */
  readonly said: () => string;
  /** Makes what the directory keeps of its costs; null: it has none. */
  readonly costs: () => string | null;
  readonly idleMs: () => number;
  /** The directory knows that the pool is in use, and tells it of changes. */
  readonly isInWindow: () => boolean;
  /** Names the window that the pool asks the directory for. */
  readonly nextWindow: () => number;
  /** Told when the directory begins to keep what the pool says. */
  readonly onListed: () => void;
  /** Told when the directory knows of a window. */
  readonly onOpened: (window: number) => void;
  /** Told when the hub of the dashboards wants to hear of the pool. */
  readonly onWatched: (watch: PoolWatchRequest) => void;
  /** Where the pool is on trial, the object around it brings its definition up to date before each call. */
  readonly isOnTrial: boolean;
}

/** A pool's knowledge of its configuration, and its way to keep up with the directory. */
export class DirectoryLink {
  readonly #parts: DirectoryLinkParts;
  #definition: Definition;
  /** The same as the directory gave it. Null: it gave none. */
  #pushed: GroupDefinition | null;
  #catchingUp: Promise<boolean> | null = null;
  /** Knowledge when the directory was asked: young enough to decide about newcomers. */
  #wasFresh = false;
  /** The directory tells this pool of every change, and it has read what held when that began. */
  #listed: boolean;
  #hadSuccess: boolean;
  #isListing = false;
  #listAgainAt = -Infinity;
  #hearAgainAt = -Infinity;
  #readAt = -Infinity;
  /** Answers and pushes that the directory has sent so far. */
  #heard = 0;
  /** A newcomer was routed by an older version, and the directory has not said since that it has a newer one. */
  #isContradicted = false;
  /** Messages to the directory, one after the other: a late `unlist` must not undo a `list`. */
  #reported: Promise<unknown> = Promise.resolve();

  constructor(parts: DirectoryLinkParts) {
    this.#parts = parts;
    const { store } = parts;
    const pushed = store.recall('definition');
    const assumed = store.recall('assumed');
    const listed = store.recall('listed');
    this.#listed = listed === REPORTED;
    // It is written with the first success.
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

  /** The definition as the directory gave it. Null: it gave none. */
  get pushed(): GroupDefinition | null {
    return this.#pushed;
  }

  /** The partition that the pool is of; null: its group is not split. */
  get partition(): string | null {
    return this.#parts.identity.partition;
  }

  /** The pool had a success, in this instance or in one before. */
  get hadSuccess(): boolean {
    return this.#hadSuccess;
  }

  /** The group was configured once and is no more. */
  get isRetired(): boolean {
    return isRetired(this.#parts.identity, this.#definition);
  }

  /**
   * Has the directory read where it pushes nothing to a paused pool, for somebody who waits and asks again:
   * nobody who waits brings a newer version along, and a pause that has ended would hold for all of them.
   */
  hear(): void {
    const now = this.#parts.now();
    const { paused } = this.#definition.switches;
    if (!paused || this.#listed || now < this.#hearAgainAt) return;
    this.#hearAgainAt = now + HEAR_EVERY_MS;
    this.#parts.waitUntil(this.catchUp());
  }

  /**
   * Tells whether the directory is to be read before a newcomer is decided about. It need not tell this pool of changes,
   * and a Worker may have routed the call by a copy that is minutes old. And where the call brings an older version than
   * the pool's, it may be the pool's that nobody has any more: a new directory begins at 0, a restored one further back.
   */
  isToRead(configVersion: number): boolean {
    const isOlder = configVersion < this.#definition.version;
    const isReported = this.#listed && this.#parts.isInWindow();
    if (this.#parts.isOnTrial || (isReported && !isOlder)) return false;
    // Who comes while it is read waits for that answer, too, unless it is read for something else.
    return this.#catchingUp === null ? !this.#isFresh : isOlder || !this.#wasFresh;
  }

  get #isFresh(): boolean {
    return this.#parts.now() - this.#readAt <= KNOWN_MS_MAX;
  }

  /** Reads the directory, for a ticket that was routed by another version than this one, or nobody knows. False: in vain. */
  catchUp(configVersion = Infinity): Promise<boolean> {
    if (configVersion < this.#definition.version) this.#isContradicted = true;
    if (this.#catchingUp !== null) return this.#catchingUp;
    this.#wasFresh = this.#isFresh;
    // Also where it fails: what is known is better than a refusal, and not every newcomer is to wait for it.
    this.#readAt = this.#parts.now();
    this.#catchingUp = this.#readDirectory().finally(() => {
      this.#catchingUp = null;
    });
    return this.#catchingUp;
  }

  /**
   * Tells the directory that the pool is in use, and takes over what it answers. In a window nobody waits for it; else
   * newcomers do. False: in vain.
   */
  wake(): Promise<boolean> {
    return this.#parts.isInWindow() ? this.#readDirectory(true) : this.catchUp();
  }

  /** Reads the directory. An answer that comes too late for those who wait is taken over nevertheless. */
  async #readDirectory(isWord = !this.#parts.isInWindow()): Promise<boolean> {
    try {
      const before = this.#heard;
      const reading = isWord && this.isKept ? this.#wake(before) : this.#read(before);
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

  /** Whether the directory keeps what the pool says of its use: not of one whose key had no success yet. */
  get isKept(): boolean {
    const { isOnTrial: isUnverified, identity } = this.#parts;
    if (isUnverified || this.isRetired) return false;
    if (this.#listed) return true;
    // The directory knows whether a new one is of a group that is configured.
    const { version, config } = this.#definition;
    return identity.partition === null && (version === 0 || config !== null);
  }

  /** Tells the directory that nobody uses the pool. The next newcomer is decided about by what that says then. */
  async rest(window: number): Promise<void> {
    this.#readAt = -Infinity;
    const { env, after } = this.#parts;
    await within(DIRECTORY_TIMEOUT_MS, directoryOf(env).rest(this.#present(window)), after);
  }

  async #read(heardBefore: number): Promise<void> {
    const { env, identity } = this.#parts;
    const definition = await directoryOf(env).definition(identity.group);
    this.#take({ definition, isListed: false }, heardBefore);
  }

  /** Reads the directory by the message that the pool is in use. */
  async #wake(heardBefore: number): Promise<void> {
    const { env, nextWindow, onOpened, onWatched } = this.#parts;
    const window = nextWindow();
    const woken = await directoryOf(env).wake(this.#present(window));
    // It rested for so long that the directory took it off the list.
    if (!woken.isListed) this.#setListed(false);
    this.#take(woken, heardBefore);
    if (this.isKept) onOpened(window);
    if (woken.watch !== undefined) onWatched(woken.watch);
  }

  #present(window: number): PresentPool {
    const { identity, idleMs, said, costs } = this.#parts;
    const { config } = this.#definition;
    const place = config === null ? {} : { jurisdiction: config.jurisdiction };
    const told = costs();
    const ofCosts = told === null ? {} : { costs: told };
    return { ...identity, ...place, window, idleMs: idleMs(), said: said(), ...ofCosts };
  }

  /**
   * Takes an answer of the directory over. One that is older than what is known counts where a newcomer says so too, unless
   * the directory was heard of since it was asked: answers may come late.
   */
  #take({ definition: answer, isListed }: Woken, heardBefore: number): void {
    const isBack = this.#isContradicted && answer.version < this.#definition.version;
    this.#isContradicted = false;
    if (!isBack) {
      const isNews = answer.version > this.#definition.version;
      this.adopt(answer);
      // Nobody has told it of that: it may be on the list of a directory that is no more.
      if (isNews && this.#listed && !isListed && !this.isRetired) this.#beginListing();
      return;
    }
    if (this.#heard !== heardBefore) {
      this.#readAt = -Infinity; // the next newcomer settles it
      return;
    }
    this.#heard += 1;
    // Another directory does not know this pool, and would tell it of no change.
    this.#setListed(false);
    this.#define(answer, true);
  }

  /** Takes a definition over that is newer, or that says of the same version that the pool takes no calls. */
  adopt(pushed: GroupDefinition): void {
    this.#readAt = this.#parts.now();
    this.#heard += 1;
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

  /** Takes over the limit of an automatic group, which only the Worker's tables know. */
  assume(assumed: AssumedLimit | null): void {
    if (assumed === null) return;
    const known = this.#definition.assumed;
    if (JSON.stringify(known) === JSON.stringify(assumed)) return;
    this.#definition = { ...this.#definition, assumed };
    this.#parts.store.remember('assumed', JSON.stringify(assumed));
    this.#parts.onChange(false);
  }

  /** Notes a 2xx. The first gets the pool listed: a key that no provider accepts never does. */
  proved(): void {
    if (!this.#hadSuccess) {
      this.#hadSuccess = true;
      // Before the directory answers: an instance that is reset meanwhile must not be taken for one without a success.
      this.#parts.store.remember('listed', 'false');
    }
    if (this.#listed || this.#parts.now() < this.#listAgainAt) return;
    this.#beginListing();
  }

  #beginListing(): void {
    if (this.#isListing) return;
    this.#isListing = true;
    const listed = this.#tell(() => this.#list());
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
    // Of a change before that nobody has told it.
    if (await this.#readDirectory()) this.#setListed(true);
  }

  /** Takes a retired pool that has become empty off the list. */
  leave(): void {
    if (!this.#listed || !this.isRetired) return;
    const { identity, costs, waitUntil } = this.#parts;
    waitUntil(this.#unlist(identity, costs() ?? undefined).catch(() => {}));
  }

  /** Takes the pool off the list until its next 2xx, even if the pool did not know that it was listed. */
  async forget(jurisdiction: GroupConfig['jurisdiction']): Promise<void> {
    const { identity, costs } = this.#parts;
    await this.#unlist({ ...identity, jurisdiction }, costs() ?? undefined);
  }

  /** Counts as not told from now on, also if the message fails: one that is listed still is only told in vain. */
  #unlist(...[pool, costs]: Parameters<DirectoryRpc['unlist']>): Promise<void> {
    this.#setListed(false);
    return this.#tell(() => {
      this.#setListed(false); // it may have been listed just before
      return directoryOf(this.#parts.env).unlist(pool, costs);
    });
  }

  #tell<T>(work: () => Promise<T>): Promise<T> {
    const told = this.#reported.then(work);
    this.#reported = told.catch(() => {});
    return told;
  }

  #setListed(listed: boolean): void {
    if (this.#listed === listed) return;
    this.#listed = listed;
    this.#parts.store.remember('listed', listed ? REPORTED : String(listed));
    if (listed) this.#parts.onListed();
  }
}
