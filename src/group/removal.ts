import type { Bound } from '../core/parts/bound.ts';
import type { GroupState } from '../core/state.ts';
import { after, type InstantMs } from '../core/words/ids.ts';
import { isForgettable } from './idleness.ts';
import type { GroupStore } from './store.ts';

/**
 * Bounds of the delay before a pool is checked for removal. In between, the delay is the time since the last use: a
 * daily limit counts a call for a day, and each alarm costs money.
 */
const LOOK_AFTER_MS_MIN = 60_000;
const LOOK_AFTER_MS_MAX = 3_600_000;

interface RemovalParts {
  readonly state: GroupState;
  readonly store: GroupStore;
  /** Whether a caller's value created the pool and the pool is in its own object. */
  readonly isRemovable: boolean;
  readonly hadSuccess: () => boolean;
  readonly now: () => InstantMs;
  /** How long the pool has been unused, in this and earlier instances. */
  readonly idleMs: () => number;
  /** Sets the alarm, which wakes an unloaded object. */
  readonly setAlarm: (at: InstantMs) => void;
  readonly deleteAll: () => Promise<void>;
}

/**
 * Removes a pool that never had a success, once it is unused and has no state worth keeping.
 *
 * It is stored while it is in use, because an operator set its limit and a reset must not grant it twice. Without
 * storage the object no longer exists.
 */
export class Removal {
  readonly #parts: RemovalParts;
  #isAlarmSet = false;

  constructor(parts: RemovalParts) {
    this.#parts = parts;
  }

  /** Schedules the first check after a write. */
  noteWritten(): void {
    if (this.#isAlarmSet || !this.#isUnverified) return;
    this.#scheduleCheck();
  }

  /** Removes the pool at its alarm, or schedules another check. Returns false if the alarm has another purpose. */
  async atAlarm(): Promise<boolean> {
    if (!this.#isUnverified || !this.#parts.store.isOpen) return false;
    const { state, store, now, deleteAll } = this.#parts;
    if (!isForgettable(state, now())) {
      this.#scheduleCheck();
      return true;
    }
    this.#isAlarmSet = false;
    store.close();
    forgetWrites(state.bound);
    await deleteAll();
    return true;
  }

  get #isUnverified(): boolean {
    return this.#parts.isRemovable && !this.#parts.hadSuccess();
  }

  #scheduleCheck(): void {
    const { now, idleMs, setAlarm } = this.#parts;
    this.#isAlarmSet = true;
    setAlarm(after(now(), Math.min(Math.max(idleMs(), LOOK_AFTER_MS_MIN), LOOK_AFTER_MS_MAX)));
  }
}

/** Makes the next grant wait for a write, because no row covers it. */
function forgetWrites(bound: Bound): void {
  bound.confirmed = null;
  bound.inFlight = [];
}
