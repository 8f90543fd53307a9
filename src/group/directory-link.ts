import { steadyClock } from '../runtime/steady-clock.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import { directoryOf, type Env } from '../env.ts';
import type { AssumedLimit, GroupDefinition } from '../contract/rpc/group-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import { definitionFrom, isRetired, type Definition, type PoolIdentity } from './definition.ts';
import type { GroupStore } from './store.ts';

/** How long a pool whose group has as many as it may have waits before it asks again to be listed. */
const LIST_AGAIN_MS = 60_000;
/** How long tickets wait for the directory before the pool goes on with what it knows. */
const DIRECTORY_TIMEOUT_MS = 1_000;

/** How long a pool that the directory tells nothing does not read it again. */
const HEAR_EVERY_MS = 2_000;

/** Told when the definition changed; `moved`: calls may go another way than before. */
type OnChange = (moved: boolean) => void;

/** A pool's knowledge of its configuration, and its way to keep up with the directory. */
export class DirectoryLink {
  readonly #env: Env;
  readonly #store: GroupStore;
  readonly #identity: PoolIdentity;
  readonly #waitUntil: (work: Promise<unknown>) => void;
  readonly #onChange: OnChange;
  #definition: Definition;
  #catchingUp: Promise<void> | null = null;
  #listed: boolean;
  #listAgainAt = 0;
  #hearAgainAt = -Infinity;
  /** Messages to the directory, one after the other: a late `unlist` must not undo a `list`. */
  #told: Promise<unknown> = Promise.resolve();

  constructor(
    env: Env,
    store: GroupStore,
    identity: PoolIdentity,
    waitUntil: (work: Promise<unknown>) => void,
    onChange: OnChange,
  ) {
    this.#env = env;
    this.#store = store;
    this.#identity = identity;
    this.#waitUntil = waitUntil;
    this.#onChange = onChange;
    const pushed = store.recall('definition');
    const assumed = store.recall('assumed');
    this.#listed = store.recall('listed') === 'true';
    this.#definition = definitionFrom(
      pushed === null ? null : (JSON.parse(pushed) as GroupDefinition),
      assumed === null ? null : (JSON.parse(assumed) as AssumedLimit),
    );
  }

  get definition(): Definition {
    return this.#definition;
  }

  /** The group was configured once and is no more. */
  get isRetired(): boolean {
    return isRetired(this.#identity, this.#definition);
  }

  /**
   * Has the directory read where it pushes nothing to a paused pool, for somebody who waits and asks again:
   * nobody who waits brings a newer version along, and a pause that has ended would hold for all of them.
   */
  hear(): void {
    const now = steadyClock.now();
    const { paused } = this.#definition.switches;
    if (!paused || this.#listed || now < this.#hearAgainAt) return;
    this.#hearAgainAt = now + HEAR_EVERY_MS;
    this.#waitUntil(this.catchUp());
  }

  /** Reads the directory, for a ticket that was routed by a newer configuration than this one. */
  async catchUp(): Promise<void> {
    this.#catchingUp ??= this.#readDirectory().finally(() => {
      this.#catchingUp = null;
    });
    await this.#catchingUp;
  }

  /** Reads the directory. An answer that comes too late for those who wait is taken over nevertheless. */
  async #readDirectory(): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error('no answer in time')), DIRECTORY_TIMEOUT_MS);
    try {
      const reading = directoryOf(this.#env).definition(this.#identity.group);
      await Promise.race([reading.then((definition) => this.adopt(definition)), late]);
    } catch (error) {
      // Out of reach: what is known is better than a refusal, and the next ticket tries again.
      logEvent('directory_unreachable', { group: this.#identity.group, error: String(error) });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes a definition over, unless it is not newer. */
  adopt(pushed: GroupDefinition): void {
    if (pushed.version <= this.#definition.version) return;
    const moved = pushed.routingVersion > this.#definition.routingVersion;
    this.#definition = definitionFrom(pushed, this.#definition.assumed);
    this.#store.remember('definition', JSON.stringify(pushed));
    this.#onChange(moved);
  }

  /** Takes over the limit of an automatic group, which only the Worker's tables know. */
  assume(assumed: AssumedLimit | null): void {
    if (assumed === null) return;
    const known = this.#definition.assumed;
    if (known?.slotsMax === assumed.slotsMax && known.source === assumed.source) return;
    this.#definition = { ...this.#definition, assumed };
    this.#store.remember('assumed', JSON.stringify(assumed));
    this.#onChange(false);
  }

  /** Notes a 2xx. The first gets the pool listed: a key that no provider accepts never does. */
  proved(): void {
    if (this.#listed) return;
    if (steadyClock.now() < this.#listAgainAt) return;
    this.#setListed(true);
    const listed = this.#tell(() => directoryOf(this.#env).list(this.#identity));
    this.#waitUntil(
      listed
        .then((isListed) => {
          if (isListed !== false) return;
          this.#listAgainAt = steadyClock.now() + LIST_AGAIN_MS;
          this.#setListed(false);
        })
        .catch(() => this.#setListed(false)),
    );
  }

  /** Takes a retired pool that has become empty off the list. */
  leave(): void {
    if (!this.#listed || !this.isRetired) return;
    this.#setListed(false);
    const left = this.#tell(() => directoryOf(this.#env).unlist(this.#identity));
    this.#waitUntil(left.catch(() => this.#setListed(true)));
  }

  /** Takes the pool off the list until its next 2xx, also where it did not know that it is there. */
  async forget(jurisdiction: GroupConfig['jurisdiction']): Promise<void> {
    this.#setListed(false);
    await this.#tell(() => directoryOf(this.#env).unlist({ ...this.#identity, jurisdiction }));
  }

  #tell<T>(work: () => Promise<T>): Promise<T> {
    const told = this.#told.then(work);
    this.#told = told.catch(() => {});
    return told;
  }

  #setListed(listed: boolean): void {
    if (this.#listed === listed) return;
    this.#listed = listed;
    this.#store.remember('listed', String(listed));
  }
}
