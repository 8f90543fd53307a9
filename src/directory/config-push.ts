/**
 * How a change of the configuration leaves the directory: `ConfigPush` notifies the pools that it affects, and
 * `Publisher` writes the copy with which new isolates start. Running isolates ask for themselves
 * (`src/config/isolate-config.ts`).
 */
import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { logEvent } from '../runtime/log.ts';
import { mapConcurrently, within, pause, steadyClock, type Schedule } from '../runtime/async.ts';
import { storeSnapshot } from '../config/snapshots.ts';
import { snapshotStoreOf, type Env } from '../env.ts';
import type { Alarm } from './store.ts';
import type { PoolList } from './pool-list.ts';

/**
 * Maximum pools notified in one invocation of the directory. Each takes at most two subrequests, and the platform
 * allows a thousand.
 */
const PUSHED_A_ROUND = 400;

/** Maximum pools notified at once. In one process more of them would only delay calls. */
const AT_ONCE = 100;
const AT_ONCE_IN_ONE_PROCESS = 2;

/** Time limit for a pool's answer. After it the pool is notified again. */
const ANSWER_LOST_MS = 2_000;

/**
 * Delays before a failed notification is repeated, doubled from the first to the maximum. After `LATER_TIMES` failures
 * no isolate can have an older copy of the configuration, and the longer delay applies.
 */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 4_000;
const RETRY_LATER_MS = 30_000;
const LATER_TIMES = 80;

/** How long after its notification a pool is notified again if it receives no calls any more but is still in use. */
const IN_USE_RETRY_MS = 30_000;

/** Delay of the alarm that continues if the instance ends before it has notified all pools. */
const SAFETY_MS = 3_000;

/** How much later than the timer the alarm is set, where there is a timer. */
const ALARM_LATE_MS = 3_000;

interface ConfigPushParts {
  readonly list: PoolList;
  readonly alarm: Alarm;
  /** Returns the version that pools of a group must have. */
  readonly version: (group: string) => number;
  /** Whether a pool is resting. A resting pool reads the directory before it accepts a new call. */
  readonly isResting: (pool: PlacedPool) => boolean;
  readonly isOneProcess: boolean;
  readonly after: Schedule;
  readonly waitUntil: (work: Promise<unknown>) => void;
  /**
   * Sends a pool its current definition. Returns false if the pool must be notified again later because it is still in
   * use.
   */
  readonly notify: (pool: PlacedPool) => Promise<boolean>;
}

/**
 * Notifies every listed pool of every change that affects it, unless the pool is resting. One invocation notifies some
 * hundred pools. The object's alarm starts the next one for the remaining and failed ones.
 *
 * The version that each pool received is stored in its row, so a reset or a failure skips no pool.
 */
export class ConfigPush {
  readonly #parts: ConfigPushParts;
  /** Consecutive failures and the time of the next attempt, by pool. 0 failures means that the pool is still in use. */
  readonly #retries = new Map<string, { readonly times: number; readonly retryAt: number }>();

  #cancelTimer: (() => void) | null = null;

  constructor(parts: ConfigPushParts) {
    this.#parts = parts;
    // The previous instance may have ended midway, and standalone workerd keeps no alarm beyond its process.
    if (this.#behind().length > 0) this.#armIn(0);
  }

  /** Starts to notify pools of a change. Must be called in the turn of that change. */
  begin(): Promise<void> {
    this.#armIn(SAFETY_MS);
    // All copies are older than this change, regardless of earlier failures.
    this.#retries.clear();
    return this.round();
  }

  /** Notifies pools that are behind, as many as one invocation may, and sets the alarm for the others. */
  async round(): Promise<void> {
    const now = steadyClock.now();
    const due = this.#behind().filter((pool) => this.#retryAt(pool) <= now);
    const atOnce = this.#parts.isOneProcess ? AT_ONCE_IN_ONE_PROCESS : AT_ONCE;
    await mapConcurrently(due.slice(0, PUSHED_A_ROUND), atOnce, (pool) => this.#notify(pool));
    this.#continue();
  }

  async #notify(pool: PlacedPool): Promise<void> {
    const { list, version, notify, after } = this.#parts;
    const key = poolKey(pool);
    const wanted = version(pool.group);
    try {
      if (await within(ANSWER_LOST_MS, notify(pool), after)) {
        this.#retries.delete(key);
        list.noteReceived(pool, wanted);
      } else this.#retries.set(key, { times: 0, retryAt: steadyClock.now() + IN_USE_RETRY_MS });
    } catch {
      const times = (this.#retries.get(key)?.times ?? 0) + 1;
      this.#retries.set(key, { times, retryAt: steadyClock.now() + retryDelayMs(times) });
    }
  }

  #continue(): void {
    const behind = this.#behind();
    const failed = behind.filter((pool) => (this.#retries.get(poolKey(pool))?.times ?? 0) > 0);
    if (failed.length > 0) logEvent('pools_not_told', { pools: failed.length });
    if (behind.length === 0) {
      this.#retries.clear();
      this.#cancelTimer?.();
      this.#parts.alarm.clear();
    } else {
      this.#armIn(Math.min(...behind.map((pool) => this.#retryAt(pool))) - steadyClock.now());
    }
  }

  #behind(): PlacedPool[] {
    const { list, version, isResting } = this.#parts;
    return list.behind(version).filter((pool) => !isResting(pool));
  }

  #retryAt(pool: PlacedPool): number {
    return this.#retries.get(poolKey(pool))?.retryAt ?? 0;
  }

  /**
   * Sets the alarm, which uses the wall clock and is late after that was set back. In a single process a timer is used
   * as well, which is not late.
   */
  #armIn(ms: number): void {
    const { alarm, after, isOneProcess, waitUntil } = this.#parts;
    const inMs = Math.max(0, ms);
    if (isOneProcess) {
      this.#cancelTimer?.();
      this.#cancelTimer = after(inMs, () => waitUntil(this.round()));
    }
    alarm.set(Date.now() + inMs + (isOneProcess ? ALARM_LATE_MS : 0));
  }
}

/** Returns the delay before the next attempt after so many consecutive failures. */
function retryDelayMs(times: number): number {
  if (times > LATER_TIMES) return RETRY_LATER_MS;
  return Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (times - 1));
}

/** Minimum time between two writes. The store accepts one write per second and key. */
const WRITE_EVERY_MS = 1_000;

/** Minimum time between two repairs. The store may return the previous value for that long. */
const REPAIR_EVERY_MS = 60_000;

/**
 * Maintains the copy of the configuration that new isolates read. A lost write is repaired when an isolate reports a
 * missing or outdated copy.
 */
export class Publisher {
  readonly #env: Env;
  readonly #snapshot: () => ConfigSnapshot;
  readonly #waitUntil: (work: Promise<unknown>) => void;
  #isWriting = false;
  #repairedAt = -Infinity;
  /** Tag of the last written copy, or of the one from before this instance. Isolates report if that was not written. */
  #written: string | undefined;

  constructor(
    env: Env,
    snapshot: () => ConfigSnapshot,
    waitUntil: (work: Promise<unknown>) => void,
  ) {
    this.#env = env;
    this.#snapshot = snapshot;
    this.#waitUntil = waitUntil;
    this.#written = snapshot().tag;
  }

  /** Writes the copy if it changed. */
  publish(): void {
    if (this.#isWriting || snapshotStoreOf(this.#env) === null) return;
    const { version, tag } = this.#snapshot();
    // Version 0 is not published: the empty configuration would allow every request.
    if (version === 0 || tag === this.#written) return;
    this.#isWriting = true;
    this.#waitUntil(this.#write());
  }

  /** Writes the copy again because an isolate found another one, or none (null). */
  repair(found: string | null): void {
    const now = steadyClock.now();
    if (found === this.#snapshot().tag || now - this.#repairedAt < REPAIR_EVERY_MS) return;
    this.#repairedAt = now;
    this.#written = undefined;
    this.publish();
  }

  async #write(): Promise<void> {
    const snapshot = this.#snapshot();
    this.#written = snapshot.tag;
    try {
      await storeSnapshot(this.#env, snapshot);
    } catch (error) {
      logEvent('snapshot_unwritten', { error: String(error) });
    }
    await pause(WRITE_EVERY_MS);
    this.#isWriting = false;
    this.publish();
  }
}
