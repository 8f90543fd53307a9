import { directoryOf, type Env } from '../env.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { DirectoryRpc } from '../contract/rpc/directory-rpc.ts';
import type { PoolIdentity } from './definition.ts';
import type { GroupStore } from './store.ts';

/** Delay before a pool of a full group asks again to be listed. */
const LIST_AGAIN_MS = 60_000;

/** Value of the row `listed` while the directory notifies the pool of every change. */
const REPORTED = 'told';

export interface ListingParts {
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
export class PoolListing {
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
