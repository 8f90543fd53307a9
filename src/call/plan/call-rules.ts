import type { RoutingTable } from '../../config/snapshots.ts';
import { groupSchema } from '../../contract/config/group.ts';
import type { GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { OnSaturated } from '../../contract/config/members.ts';
import { countsReports, countsTokens } from '../../routing/group-limits.ts';
import { onSaturatedAt, type Placement } from '../../routing/placement.ts';
import type { HoldLimits } from '../../upstream/transfer/watched-pipe.ts';

const DEFAULTS = groupSchema.parse({ name: 'defaults' });

export interface CallRules {
  readonly hold: HoldLimits;
  readonly retries: GroupConfig['retries'];
  readonly feedForward: GroupConfig['feed_forward'];
  readonly onSaturated: OnSaturated;
  /** False if a group rejects calls that would have to wait. */
  readonly mayWait: boolean;
  /** Whether a group needs the tokens that the call uses, or its cost. */
  readonly isMetered: boolean;
  /** The group whose costs include the reported usage, if nothing else is metered. null if there is none. */
  readonly billed: string | null;
}

/**
 * The rules of a call in all its groups. Limits are the strictest of all groups. Rules about the upstream come from the
 * narrowest group that represents it.
 */
export function callRules(
  placements: readonly Placement[],
  withMembers: string | null = null,
): CallRules {
  const holds = placements.map(({ config }) => (config ?? DEFAULTS).holds);
  const about =
    withMembers === null
      ? placements.find(({ isOfProvider }) => isOfProvider)
      : placements.find(({ group }) => group === withMembers);
  const ofProvider = about?.config ?? DEFAULTS;
  const billed = placements.find(({ isOfProvider }) => isOfProvider);
  const allSaturated = placements.map(onSaturatedAt);
  return {
    hold: {
      idleMs: strictest(holds.map((each) => each.idle_ms)),
      stalledMs: strictest(holds.map((each) => each.stalled_ms)),
      uploadMinBytesPerS: Math.max(...holds.map((each) => each.upload_min_bytes_per_s)),
      maxHoldMs: Math.min(...holds.map((each) => each.max_hold_ms)),
      maxRunMs: Math.min(...holds.map((each) => each.max_run_ms)),
    },
    retries: ofProvider.retries,
    feedForward: ofProvider.feed_forward,
    mayWait: !allSaturated.includes('reject'),
    onSaturated: allSaturated.find((does) => typeof does === 'object') ?? 'queue',
    isMetered: placements.some(({ config }) => config !== null && countsTokens(config)),
    billed: billed !== undefined && countsReports(billed.config) ? billed.group : null,
  };
}

/** The longest silence that all groups of an upstream allow, for a connection that does not belong to a group yet. */
export function idleMsAt({ routes, snapshot }: RoutingTable, upstream: Upstream): number | null {
  const names = new Set(routes.groupsOf(upstream));
  const own = snapshot.config.groups.filter(({ name }) => names.has(name));
  return strictest([DEFAULTS, ...own].map(({ holds }) => holds.idle_ms));
}

/** The smallest limit. null if none is set. */
function strictest(bounds: readonly (number | null)[]): number | null {
  const set = bounds.filter((bound) => bound !== null);
  return set.length === 0 ? null : Math.min(...set);
}
