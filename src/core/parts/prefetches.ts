import type { InstantMs, LeaseId } from '../words/ids.ts';
import type { Holder, Lane } from '../words/ticket.ts';
import { BoundedMap } from './bounded-map.ts';
import type { ReportedCost } from './costs.ts';

/**
 * Slots that are prefetched to isolates, which start calls on them without an acquire call. Each counts as in use until
 * it is returned, becomes the lease of one call, or expires.
 */

/** The prefetched slots of one isolate from one instance of the group. */
export interface Prefetch {
  readonly id: LeaseId;
  readonly isolate: string;
  readonly slots: Set<LeaseId>;
  /** Slots in use by calls at the keeper's last report. */
  used: number;
  /** Slots of other calls that were at the upstream then, or when the first slot was prefetched. */
  others: number;
  /** When its slots expire unless they are renewed. */
  until: InstantMs;
  /** The answer that keeps it. Only the disposal of that answer ends the keeping. 0 if there is no such answer yet. */
  attachment: number;
  /** When its keeper first reported fewer slots than these. null if it has all of them. */
  missingSince: InstantMs | null;
  /** Whether its isolate was asked to return it. */
  isRecalled: boolean;
}

/**
 * Slots that an isolate receives together with a grant. They count as in use until it returns them, they become leases
 * of calls, or no keeper renews them. No answer holds them.
 */
export interface PrefetchedShare {
  readonly loan: LeaseId;
  readonly slots: readonly LeaseId[];
  /** As for a lease. It identifies the instance that prefetched a claimed slot. */
  readonly attachment: number;
}

/** Grants to an isolate in the current second of the clock, and in the one before it. */
interface GrantPace {
  second: number;
  granted: number;
  before: number;
}

export interface PrefetchState {
  readonly loans: Map<LeaseId, Prefetch>;
  /** The prefetched slots of each isolate that may grow. */
  readonly growing: Map<string, Prefetch>;
  /** Prefetched slots, and those of them without a call, according to the last reports. */
  slots: number;
  idle: number;
  readonly paces: BoundedMap<string, GrantPace>;
}

/** Successful calls of one kind on prefetched slots, as reported by their keeper. */
export interface ReportedCalls {
  readonly holder: Holder;
  readonly lane: Lane;
  readonly status: number | null;
  readonly calls: number;
  /** Sum of their hold times. */
  readonly heldMs: number;
  /** The last of them, one by one. */
  readonly last: readonly ReportedCall[];
  /** The use that the provider reported, by team and model. Absent if none of them counts in the costs of the group. */
  readonly costs?: readonly ReportedCost[];
}

/** One of them: how many milliseconds ago it began and ended, and the upstream's own id of it, if that sent one. */
export type ReportedCall = readonly [
  leaseId: LeaseId,
  beganMs: number,
  endedMs: number,
  requestId?: string,
];

export interface KeeperReport {
  /** Slots that the isolate has. Slots in transit or lost on the way are not included. */
  readonly known: number;
  readonly used: number;
  /** The highest number in use at the start of any call that has ended. */
  readonly peak: number;
  readonly ended: readonly ReportedCalls[];
}

const PACES_MAX = 1_000;

export function noPrefetching(): PrefetchState {
  return {
    loans: new Map(),
    growing: new Map(),
    slots: 0,
    idle: 0,
    paces: new BoundedMap(PACES_MAX),
  };
}

export function notePace({ paces }: PrefetchState, isolate: string, now: InstantMs): void {
  const second = Math.floor(now / 1_000);
  const pace = paces.get(isolate);
  if (pace?.second === second) {
    pace.granted += 1;
    return;
  }
  const before = pace?.second === second - 1 ? pace.granted : 0;
  paces.set(isolate, { second, granted: 1, before });
}

/** Returns how many grants an isolate had in about the last second. */
export function paceOf({ paces }: PrefetchState, isolate: string, now: InstantMs): number {
  const pace = paces.get(isolate);
  if (pace === undefined) return 0;
  const secondsAgo = Math.floor(now / 1_000) - pace.second;
  if (secondsAgo === 0) return Math.max(pace.granted, pace.before);
  return secondsAgo === 1 ? pace.granted : 0;
}

/** Changes the prefetched slots of an isolate, and the sums with them. */
export function changePrefetch(
  prefetching: PrefetchState,
  prefetch: Prefetch,
  change: () => void,
): void {
  const { size } = prefetch.slots;
  const idle = idleOf(prefetch);
  change();
  prefetching.slots += prefetch.slots.size - size;
  prefetching.idle += idleOf(prefetch) - idle;
}

function idleOf({ slots, used }: Prefetch): number {
  return Math.max(0, slots.size - used);
}
