import { queueLength } from '../core/parts/queue.ts';
import { nextChangeAt } from '../core/parts/breaker.ts';
import type { Lessons } from '../core/parts/lessons.ts';
import { NEVER, type GroupState } from '../core/state.ts';
import { isUntouched } from '../core/parts/rates.ts';
import { hasSpent } from '../core/parts/spend.ts';
import { earlier, type InstantMs } from '../core/words/ids.ts';
import { pause, type Schedule } from '../runtime/async.ts';

/** Whether a pool is in use, and how its use and its rest are reported to the directory. */

/** Whether a call holds a slot, waits for one, or may hold one. */
export function isInUse({ leases, queue, unclaimed: orphaned, lending }: GroupState): boolean {
  return leases.size + queueLength(queue) + orphaned.slots + lending.slots > 0;
}

/**
 * Whether a pool has no state worth keeping: it is not in use, its upstream stops no calls of any scope, and it has
 * used no part of its limits that still counts.
 */
export function isForgettable(state: GroupState, now: InstantMs): boolean {
  if (isInUse(state)) return false;
  // A refusal of one model or tier is learned in its scope, not in the member's own controls.
  const isStopped = state.serving.some(
    ({ controls }) =>
      isStoppedFor(controls, now) ||
      controls.scopes.narrower.some((lessons) => isStoppedFor(lessons, now)),
  );
  return !isStopped && !hasUse(state, now);
}

/** Whether the group has used any part of its limits that still counts. */
function hasUse(state: GroupState, now: InstantMs): boolean {
  const ledgers = [
    { controls: state.controls, settings: state.settings },
    ...state.members.values(),
  ];
  return ledgers.some(
    ({ controls: { rates, spend }, settings }) =>
      hasSpent(spend, now) || !isUntouched(rates, settings.rates, now),
  );
}

/** Whether a pause or an open breaker still holds calls. */
function isStoppedFor({ pause: paused, breaker }: Lessons, now: InstantMs): boolean {
  const opensAt = nextChangeAt(breaker, now);
  return now < paused.until || (opensAt !== NEVER && now < opensAt);
}

/**
 * Tracks since when a pool is unused. The value outlives the instance: an idle object is unloaded within minutes, and
 * its last write of the bound is when it was last used.
 */
export class Idleness {
  /** null while the pool is in use. */
  #since: InstantMs | null;

  /** @param lastUsedAt when an earlier instance last used it. null means unknown, and counts as now. */
  constructor(lastUsedAt: InstantMs | null, now: InstantMs) {
    this.#since = lastUsedAt === null ? now : earlier(lastUsedAt, now);
  }

  note(state: GroupState, now: InstantMs): void {
    if (isInUse(state)) this.#since = null;
    else this.#since ??= now;
  }

  forMs(now: InstantMs): number {
    return this.#since === null ? 0 : Math.max(0, now - this.#since);
  }
}

/** Delay before a failed message is repeated, and number of attempts at the end of a window. */
const RETRY_MS = 1_000;
const ATTEMPTS = 3;

interface PresenceParts {
  readonly now: () => InstantMs;
  readonly after: Schedule;
  /** Whether a call holds a slot, waits for one, or waits for the end of a pause. */
  readonly isInUse: () => boolean;
  /** How long the pool has been unused, including the time of earlier instances. */
  readonly idleMs: () => number;
  /** Whether the directory stores the pool's reports. */
  readonly isKept: () => boolean;
  readonly windowMs: number;
  /** Sets the alarm for the end of a window, which wakes an unloaded object. null clears it. */
  readonly setAlarm: (at: number | null) => void;
  /** Reports to the directory that the pool is in use, and applies its answer. Returns false on failure. */
  readonly wake: () => Promise<boolean>;
  /** Reports to the directory that the pool rests, which ends windows up to this one. */
  readonly rest: (window: number) => Promise<void>;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/**
 * Reports to the directory that the pool is in use, at most once per window, and at the end of a window that it rests.
 * In a window the directory notifies the pool of changes. A resting pool reads the directory before it accepts a new
 * call.
 *
 * Whether a window is open depends on messages and on the alarm for its end, not on a clock. It opens when the
 * directory has answered, and ends before the directory is notified. A window is named by its end, and later ones have
 * larger names.
 */
export class Presence {
  readonly #parts: PresenceParts;
  /** The end of the window, or null if the pool rests or its state is unknown. */
  #endsAt: number | null = null;
  #requested = -Infinity;
  /** Windows up to this one have ended. */
  #over = -Infinity;
  #isSending = false;
  #retryAt = -Infinity;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
  }

  /** Whether the directory notifies this pool of changes. */
  get isInWindow(): boolean {
    return this.#endsAt !== null;
  }

  /**
   * Continues the window that an earlier instance opened, if its alarm is still set. An alarm that is due may already
   * have fired.
   */
  recall(alarmAt: number | null): void {
    const { now, windowMs } = this.#parts;
    if (alarmAt === null || alarmAt <= now()) return;
    // The wall clock was set back since the alarm was set, so the alarm would fire late.
    if (alarmAt > now() + windowMs) return this.#open(now() + windowMs);
    this.#endsAt = alarmAt;
    this.#requested = alarmAt;
  }

  nextWindow(): number {
    const { now, windowMs } = this.#parts;
    this.#requested = Math.max(now() + windowMs, this.#requested + 1);
    return this.#requested;
  }

  /** Records that the directory opened a window and returned the current definition. The answer may be late. */
  opened(window: number): void {
    if (window > Math.max(this.#over, this.#endsAt ?? this.#parts.now())) this.#open(window);
  }

  /** Handles an event. `isNews` means that it may have changed what the directory stores of a resting pool. */
  note(isNews: boolean): void {
    const { isInUse: inUse, isKept, now, wake, waitUntil } = this.#parts;
    if (!isKept()) {
      this.#leave();
      return;
    }
    if (this.#isOpen() || this.#isSending || now() < this.#retryAt) return;
    if (!isNews && !inUse()) return;
    this.#isSending = true;
    const sent = wake().then((isReported) => {
      this.#isSending = false;
      if (!isReported) this.#retryAt = now() + RETRY_MS;
    });
    waitUntil(sent);
  }

  /** Reports at the end of a window whether the pool is still in use. */
  async end(): Promise<void> {
    const { isInUse: inUse, idleMs, isKept, windowMs } = this.#parts;
    if (!isKept()) return this.#leave();
    return inUse() || idleMs() < windowMs / 2 ? this.#extend() : this.#rest();
  }

  async #extend(): Promise<void> {
    for (let attempts = 1; attempts <= ATTEMPTS; attempts += 1) {
      if (await this.#parts.wake()) return;
      if (attempts < ATTEMPTS) await pause(RETRY_MS, this.#parts.after);
    }
    // The directory was not notified of the end of the window, so it still considers the pool in use.
    if (this.#endsAt !== null) this.#open(this.nextWindow());
  }

  async #rest(): Promise<void> {
    const { now, windowMs, rest } = this.#parts;
    // An instance that was started by the alarm does not know the window. It ended just now, and later ones end after
    // this.
    const window = this.#endsAt ?? now() + windowMs / 2;
    // Set now, because the message may arrive even if its answer is lost.
    this.#endsAt = null;
    this.#over = window;
    this.#requested = Math.max(this.#requested, window);
    for (let attempts = 1; attempts <= ATTEMPTS && !this.isInWindow; attempts += 1) {
      try {
        return await rest(window);
      } catch {
        if (attempts < ATTEMPTS) await pause(RETRY_MS, this.#parts.after);
      }
    }
  }

  #open(window: number): void {
    this.#endsAt = window;
    this.#parts.setAlarm(window);
  }

  /** Whether the window is open by the pool's own clock too, because the alarm for its end may be late. */
  #isOpen(): boolean {
    return this.#endsAt !== null && this.#parts.now() < this.#endsAt;
  }

  #leave(): void {
    if (this.#endsAt === null) return;
    this.#endsAt = null;
    this.#parts.setAlarm(null);
  }
}
