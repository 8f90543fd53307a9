import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { logEvent } from '../runtime/log.ts';
import { mapConcurrently } from '../runtime/map-concurrently.ts';
import type { Schedule } from '../runtime/call-clock.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { within } from '../runtime/within.ts';
import type { Alarm } from './alarms.ts';
import type { PoolList } from './pool-list.ts';

/**
 * Maximum of pools told in one invocation of the directory. Each is two subrequests at the most, and a thousand are
 * allowed.
 */
const PUSHED_A_ROUND = 400;

/** Maximum of pools told at once; in one process more would only make calls wait. */
const AT_ONCE = 100;
const AT_ONCE_IN_ONE_PROCESS = 2;

/** How long a pool may take to hear of a change before it is told again. */
const ANSWER_LOST_MS = 2_000;

/**
 * How long after a failure a pool is told again: the first time, at the most while an isolate may have a copy from before
 * the change, and when it has failed so often that none has.
 */
const AGAIN_MS = 1_000;
const AGAIN_MS_MAX = 4_000;
const AGAIN_LATER_MS = 30_000;
const LATER_TIMES = 80;

/** How long after it was told a pool is told again that takes no calls any more and is still in use. */
const IN_USE_AGAIN_MS = 30_000;

/** How long after a change the alarm goes off if the instance did not live to tell everybody. */
const SAFETY_MS = 3_000;

/** How much later than the timer the alarm is set, where there is a timer. */
const ALARM_LATE_MS = 3_000;

interface ConfigPushParts {
  readonly list: PoolList;
  readonly alarm: Alarm;
  /** The version that a pool of a group must know. */
  readonly version: (group: string) => number;
  /** Whether a pool rests, and reads the directory before it takes a newcomer. */
  readonly isLeftAlone: (pool: PlacedPool) => boolean;
  readonly isOneProcess: boolean;
  readonly after: Schedule;
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Tells a pool what holds now. False: it is to be told again later, because it is still in use. */
  readonly tell: (pool: PlacedPool) => Promise<boolean>;
}

/**
 * Tells every listed pool of every change that concerns it, unless it rests, some hundred in an invocation: those that are left, and those that could not
 * be told, in the next ones, which the object's alarm begins. What each was told is in its row, so that neither a reset
 * nor a failure leaves one behind.
 */
export class ConfigPush {
  readonly #parts: ConfigPushParts;
  /** Failures in a row (0: it is still in use), and when the next try is due, by pool. */
  readonly #again = new Map<string, { readonly times: number; readonly againAt: number }>();

  #cancelTimer: (() => void) | null = null;

  constructor(parts: ConfigPushParts) {
    this.#parts = parts;
    // The instance before may have ended in between, and workerd by itself keeps no alarm beyond its process.
    if (this.#behind().length > 0) this.#armIn(0);
  }

  /** Tells of a change, in the turn of which this is called. */
  begin(): Promise<void> {
    this.#armIn(SAFETY_MS);
    // Copies are of before this change, however long one has failed.
    this.#again.clear();
    return this.round();
  }

  /** Tells pools that are behind, as many as one invocation may, and has the alarm go on with the others. */
  async round(): Promise<void> {
    const now = steadyClock.now();
    const due = this.#behind().filter((pool) => this.#againAt(pool) <= now);
    const atOnce = this.#parts.isOneProcess ? AT_ONCE_IN_ONE_PROCESS : AT_ONCE;
    await mapConcurrently(due.slice(0, PUSHED_A_ROUND), atOnce, (pool) => this.#report(pool));
    this.#goOn();
  }

  async #report(pool: PlacedPool): Promise<void> {
    const { list, version, tell: report, after } = this.#parts;
    const key = poolKey(pool);
    const told = version(pool.group);
    try {
      if (await within(ANSWER_LOST_MS, report(pool), after)) {
        this.#again.delete(key);
        list.noteTold(pool, told);
      } else this.#again.set(key, { times: 0, againAt: steadyClock.now() + IN_USE_AGAIN_MS });
    } catch {
      const times = (this.#again.get(key)?.times ?? 0) + 1;
      this.#again.set(key, { times, againAt: steadyClock.now() + againAfter(times) });
    }
  }

  #goOn(): void {
    const behind = this.#behind();
    const failed = behind.filter((pool) => (this.#again.get(poolKey(pool))?.times ?? 0) > 0);
    if (failed.length > 0) logEvent('pools_not_told', { pools: failed.length });
    if (behind.length === 0) {
      this.#again.clear();
      this.#cancelTimer?.();
      this.#parts.alarm.clear();
    } else {
      this.#armIn(Math.min(...behind.map((pool) => this.#againAt(pool))) - steadyClock.now());
    }
  }

  #behind(): PlacedPool[] {
    const { list, version, isLeftAlone } = this.#parts;
    return list.behind(version).filter((pool) => !isLeftAlone(pool));
  }

  #againAt(pool: PlacedPool): number {
    return this.#again.get(poolKey(pool))?.againAt ?? 0;
  }

  /** Sets the alarm, which uses the wall clock and is late after that was set back. In one process a timer is not. */
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

/** Computes how long after so many failures in a row a pool is told again. */
function againAfter(times: number): number {
  if (times > LATER_TIMES) return AGAIN_LATER_MS;
  return Math.min(AGAIN_MS_MAX, AGAIN_MS * 2 ** (times - 1));
}
