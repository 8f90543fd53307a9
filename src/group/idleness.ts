import { queueLength } from '../core/parts/queue.ts';
import { nextChangeAt } from '../core/parts/breaker.ts';
import type { Lessons } from '../core/parts/reports.ts';
import { NEVER, type GroupState } from '../core/state.ts';
import { hasUse } from '../core/take-over.ts';
import { earlier, type InstantMs } from '../core/words/ids.ts';

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

/** Whether a pause or an open breaker still holds calls. */
function isStoppedFor({ pause, breaker }: Lessons, now: InstantMs): boolean {
  const opensAt = nextChangeAt(breaker, now);
  return now < pause.until || (opensAt !== NEVER && now < opensAt);
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
