import type { MemberId } from './words/ids.ts';
import type { BreakerSettings } from './words/member.ts';
import type { CeilingSettings } from './parts/ceiling.ts';
import { noEnds, type RecentEnds } from './parts/recent-ends.ts';
import type { Lessons } from './parts/reports.ts';
import type { ScopeLessons } from './parts/scope-lessons.ts';
import type { Scope } from './words/scope.ts';

export interface SlotSums {
  slotsInUse: number;
  slotsCooling: number;
  slotsWaitingElsewhere: number;
  slotsRefused: number;
}

export interface LimiterSettings extends CeilingSettings {
  readonly breaker: BreakerSettings;
  readonly probesPauses: boolean;
}

/**
 * Lessons about an upstream that hold for a set of calls, and the slots that these calls use. The set is all calls of a
 * member, or those of one scope at it.
 */
export interface Limiter extends SlotSums {
  readonly id: MemberId | null;
  readonly controls: Lessons;
  readonly settings: LimiterSettings;
  readonly recentEnds: RecentEnds;
  /** Slots that an earlier instance may have granted and that no call has reclaimed. */
  readonly unclaimed: number;
}

/** The number of calls that a limiter had at the upstream when a lease was granted. */
export interface AtGrant {
  /** Slots at the upstream, including its own. 0 if no longer known. */
  slotsAtGrant: number;
  /** The same, including slots that had ended and may still have counted at the upstream. */
  slotsCounted: number;
  /** Time since the end of the calls that leave it no room if the upstream still counts them. */
  gapMs: number;
}

export class ScopeLimiter implements Limiter {
  readonly id: MemberId | null = null;
  readonly scope: Scope;
  readonly controls: ScopeLessons;
  readonly recentEnds: RecentEnds = noEnds();
  readonly unclaimed = 0;
  slotsInUse = 0;
  slotsCooling = 0;
  slotsWaitingElsewhere = 0;
  slotsRefused = 0;
  readonly #ofMember: () => LimiterSettings;

  constructor(controls: ScopeLessons, ofMember: () => LimiterSettings) {
    this.#ofMember = ofMember;
    this.controls = controls;
    this.scope = controls.scope;
  }

  /** A scope has no configured limit. It never has more slots than its member. */
  get settings(): LimiterSettings {
    const { slotsMax, isAdaptive, breaker, probesPauses } = this.#ofMember();
    return { slotsMax, isAdaptive, isHard: true, breaker, probesPauses };
  }
}

export interface LeaseInScope extends AtGrant {
  readonly limiter: ScopeLimiter;
}

export interface CountedLease {
  readonly slots: number;
  readonly phase: 'held' | 'revoking' | 'cooling';
  readonly waitsElsewhere: boolean;
  readonly isRefused: boolean;
}

export function countSlots(sums: SlotSums, lease: CountedLease, sign: 1 | -1): void {
  const slots = sign * lease.slots;
  sums.slotsInUse += slots;
  if (lease.phase === 'cooling') sums.slotsCooling += slots;
  if (lease.waitsElsewhere) sums.slotsWaitingElsewhere += slots;
  if (lease.isRefused) sums.slotsRefused += slots;
}
