import type { Bound } from '../core/parts/bound.ts';
import type { GroupState } from '../core/state.ts';
import { after, type InstantMs } from '../core/words/ids.ts';
import { isForgettable } from './idleness.ts';
import type { GroupStore } from './store.ts';

/**
 * Minimum and maximum time after its first write, and after each look, until it is checked whether a pool is to be removed. In
 * between it is the time since the last use: a limit of a day remembers a call for a day, and each alarm is paid for.
 */
const LOOK_AFTER_MS_MIN = 60_000;
const LOOK_AFTER_MS_MAX = 3_600_000;

interface RemovalParts {
  readonly state: GroupState;
  readonly store: GroupStore;
  /** A value that a caller sent made the pool, and the pool is in its own object. */
  readonly isRemovable: boolean;
  readonly hadSuccess: () => boolean;
  readonly now: () => InstantMs;
  /** How long the pool has not been in use, in this instance and those before. */
  readonly idleMs: () => number;
  /** Has the object woken, also if it is no more in memory by then. */
  readonly setAlarm: (at: InstantMs) => void;
  readonly deleteAll: () => Promise<void>;
}

/**
 * Removes a pool that never had a success, once it is not in use and nothing of it is worth remembering. It is stored while it
 * is in use: its limit is what an operator promised, and a reset must not give it out twice. An object without storage is none.
 */
export class Removal {
  readonly #parts: RemovalParts;
  #isAlarmSet = false;

  constructor(parts: RemovalParts) {
    this.#parts = parts;
  }

  /** Notes that the pool has written something. */
  noteWritten(): void {
    if (this.#isAlarmSet || !this.#isUnproved) return;
    this.#look();
  }

  /** Removes the pool at its alarm, or looks again later. False: the alarm is about something else. */
  async atAlarm(): Promise<boolean> {
    if (!this.#isUnproved || !this.#parts.store.isOpen) return false;
    const { state, store, now, deleteAll } = this.#parts;
    if (!isForgettable(state, now())) {
      this.#look();
      return true;
    }
    this.#isAlarmSet = false;
    store.close();
    forgetWrites(state.bound);
    await deleteAll();
    return true;
  }

  get #isUnproved(): boolean {
    return this.#parts.isRemovable && !this.#parts.hadSuccess();
  }

  #look(): void {
    const { now, idleMs, setAlarm } = this.#parts;
    this.#isAlarmSet = true;
    setAlarm(after(now(), Math.min(Math.max(idleMs(), LOOK_AFTER_MS_MIN), LOOK_AFTER_MS_MAX)));
  }
}

/** Has the next grant wait for a write: nothing on disk covers it. */
function forgetWrites(bound: Bound): void {
  bound.confirmed = null;
  bound.inFlight = [];
}
