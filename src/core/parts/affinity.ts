import { after, type InstantMs, type MemberId } from '../words/ids.ts';
import { AFFINITIES_MAX } from '../words/settings.ts';
import type { AffinitySettings } from '../words/member.ts';
import type { Holder } from '../words/ticket.ts';
import { BoundedMap } from './bounded-map.ts';

/**
 * The members that agents or callers belong to, because their prompts are cached there. Kept in memory only: after a
 * reset it is learned again from the leases that are claimed.
 */
export type Affinity = BoundedMap<string, { readonly member: MemberId; readonly until: InstantMs }>;

/** Makes the affinity of a group of which nobody is known. */
export function noAffinity(): Affinity {
  return new BoundedMap(AFFINITIES_MAX);
}

/** Names what its calls have in common that stay at one member; null: nothing. */
function keyOf({ by }: AffinitySettings, { tenant, agent, caller }: Holder): string | null {
  if (by === 'agent') return agent === null ? null : JSON.stringify([tenant, agent]);
  return by === 'caller' ? caller : null;
}

/** Finds the member that a call belongs to, and until when that is remembered; null: to none. */
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
 * @param mayStay the member is one of the first tier that takes it: those of a later one are used while the others are
 *   full, so who belongs there does so for as long as it said at first
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
