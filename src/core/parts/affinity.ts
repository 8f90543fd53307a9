import { after, instant, type InstantMs, type MemberId } from '../words/ids.ts';
import { AFFINITIES_MAX, type AffinitySettings } from '../words/settings.ts';
import type { Holder } from '../words/ticket.ts';
import { BoundedMap } from './bounded-map.ts';

/** Where a call should run again, and which members have refused it. */

/**
 * The members to which agents or callers have an affinity, because their prompts are cached there. It is kept in memory
 * only. After a reset it is learned again from reclaimed leases.
 */
export type Affinity = BoundedMap<string, { readonly member: MemberId; readonly until: InstantMs }>;

export function noAffinity(): Affinity {
  return new BoundedMap(AFFINITIES_MAX);
}

/** Returns the key that calls with one affinity share. null if the call has no affinity. */
function keyOf({ by }: AffinitySettings, { tenant, agent, caller }: Holder): string | null {
  if (by === 'agent') return agent === null ? null : JSON.stringify([tenant, agent]);
  return by === 'caller' ? caller : null;
}

/** Returns the member to which a call has an affinity, and when that expires. null if there is none. */
export function homeOf(
  affinity: Affinity,
  settings: AffinitySettings,
  holder: Holder,
  now: InstantMs,
): { readonly member: MemberId; readonly until: InstantMs } | null {
  const key = keyOf(settings, holder);
  const known = key === null ? undefined : affinity.get(key);
  return known === undefined || now >= known.until ? null : known;
}

/**
 * Notes where a call runs.
 *
 * @param mayStay whether the member is of the first tier with an enabled member. An affinity to a later tier is not
 * renewed, so that calls return once the first tier has room
 */
export function noteRun(
  affinity: Affinity,
  settings: AffinitySettings,
  holder: Holder,
  { member, mayStay }: { readonly member: MemberId; readonly mayStay: boolean },
  now: InstantMs,
): void {
  const key = keyOf(settings, holder);
  if (key === null) return;
  const known = affinity.get(key);
  if (known?.member === member && now < known.until && !mayStay) return;
  affinity.set(key, { member, until: after(now, settings.forMs) });
}

/**
 * Calls that the upstream refused for concurrency, counted since it last accepted one that was granted later. From its
 * second refusal on, a call lets those with fewer refusals go first. If the capacity of the upstream has fallen below
 * what is in flight, each free slot may cost a refusal, and otherwise the oldest call would meet all of them. Kept in
 * memory only. After a reset, age alone decides.
 */
export interface RepeatRefusals {
  /** By the call, or by the call and the member that refused it. */
  readonly refusals: Map<string, number>;
  refusalsMax: number;
  refusedAt: InstantMs;
}

/** Maximum number of remembered calls. Beyond that all are forgotten, and age alone decides. */
const TICKETS_MAX = 1_000;

export function noRepeatRefusals(): RepeatRefusals {
  return { refusals: new Map(), refusalsMax: 0, refusedAt: instant(0) };
}

/** Notes that the upstream refused a call for too many concurrent calls. */
export function noteRepeatRefusal(
  repeatRefusals: RepeatRefusals,
  call: string,
  now: InstantMs,
): void {
  const { refusals } = repeatRefusals;
  if (refusals.size >= TICKETS_MAX) forgetRepeatRefusals(repeatRefusals);
  const count = refusalsOf(repeatRefusals, call) + 1;
  refusals.set(call, count);
  repeatRefusals.refusalsMax = Math.max(repeatRefusals.refusalsMax, count);
  repeatRefusals.refusedAt = now;
}

/** Notes that the upstream accepted a call. If it was granted after the last refusal, there is room again. */
export function noteTaken(repeatRefusals: RepeatRefusals, grantedAt: InstantMs): void {
  if (grantedAt > repeatRefusals.refusedAt) forgetRepeatRefusals(repeatRefusals);
}

/** Returns the number of refusals of a call since there was last room. */
export function refusalsOf({ refusals }: RepeatRefusals, call: string): number {
  return refusals.get(call) ?? 0;
}

/** Forgets all counts, so that age alone decides again. */
export function forgetRepeatRefusals(repeatRefusals: RepeatRefusals): void {
  repeatRefusals.refusals.clear();
  repeatRefusals.refusalsMax = 0;
}
