import type { InstantMs, LeaseId } from '../words/ids.ts';
import type { Lane } from '../words/ticket.ts';
import { BoundedMap } from './bounded-map.ts';
import type { ReportedCost } from './costs.ts';

/**
 * Slots that are lent to isolates, which start calls on them without asking. Each is in use from when it is lent
 * until it is given back, becomes the lease of one call, or lapses.
 */

/** The slots that one isolate has by one instance of the group. */
export interface Prefetch {
  readonly id: LeaseId;
  readonly isolate: string;
  readonly slots: Set<LeaseId>;
  /** Slots that calls ran on when its keeper last told. */
  used: number;
  /** Slots of other calls that were at the upstream then, or when it was lent the first. */
  others: number;
  /** When its slots lapse unless it is renewed. */
  until: InstantMs;
  /** The answer by which somebody keeps it. Only the disposal of that one ends the keeping; 0: nobody has kept it yet. */
  attachment: number;
  /** Since when its keeper tells of fewer slots than these; null: it knows all of them. */
  missingSince: InstantMs | null;
  /** Its isolate was told to give it back. */
  isRecalled: boolean;
}

/** Slots that go to an isolate together with a grant. */
export interface PrefetchedShare {
  readonly loan: LeaseId;
  readonly slots: readonly LeaseId[];
  /** As a lease's: a claim of a slot tells by it which instance has lent it. */
  readonly attachment: number;
}

/** Grants to an isolate in a second of the clock, and in the one before it. */
interface GrantPace {
  second: number;
  granted: number;
  before: number;
}

export interface PrefetchState {
  readonly loans: Map<LeaseId, Prefetch>;
  /** The loan of an isolate that may grow. */
  readonly growing: Map<string, Prefetch>;
  /** Slots that are lent, and those of them that no call runs on, as far as keepers have told. */
  slots: number;
  idle: number;
  readonly paces: BoundedMap<string, GrantPace>;
}

/** Calls of one kind that ended well on slots of a loan, as its keeper tells of them. */
export interface ReportedCalls {
  readonly tenant: string;
  readonly agent: string | null;
  readonly caller: string;
  readonly upstream: string;
  readonly model: string | null;
  readonly lane: Lane;
  readonly status: number | null;
  readonly calls: number;
  /** How long they held their slots, together. */
  readonly heldMs: number;
  /** The last of them, one by one. */
  readonly last: readonly ReportedCall[];
  /** The use that the provider reported, by team and model. Absent: none of them stands in the costs of the group. */
  readonly costs?: readonly ReportedCost[];
}

export interface ReportedCall {
  readonly leaseId: LeaseId;
  /** How long ago it began and ended. */
  readonly beganMs: number;
  readonly endedMs: number;
  /** The upstream's own id of it. Absent: it named none. */
  readonly requestId?: string;
}

/** The report of a keeper on its loan. */
export interface KeeperReport {
  /** Slots of it that the isolate has: what is on its way to it, and what got lost on one, it does not know. */
  readonly known: number;
  /** Slots that calls run on. */
  readonly used: number;
  /** The most that did as one of those began that have ended. */
  readonly peak: number;
  readonly ended: readonly ReportedCalls[];
}

/** Maximum isolates whose pace is known. */
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

/** Counts a grant to an isolate. */
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

/** Reads how many grants an isolate had in about the last second. */
export function paceOf({ paces }: PrefetchState, isolate: string, now: InstantMs): number {
  const pace = paces.get(isolate);
  if (pace === undefined) return 0;
  const secondsAgo = Math.floor(now / 1_000) - pace.second;
  if (secondsAgo === 0) return Math.max(pace.granted, pace.before);
  return secondsAgo === 1 ? pace.granted : 0;
}

/** Changes a loan, and the sums of all with it. */
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
