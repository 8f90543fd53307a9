import { after, type InstantMs, type MemberId } from '../words/ids.ts';
import { AFFINITIES_MAX } from '../words/settings.ts';
import type { AffinitySettings } from '../words/member.ts';
import type { Holder } from '../words/ticket.ts';
import { BoundedMap } from './bounded-map.ts';

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
