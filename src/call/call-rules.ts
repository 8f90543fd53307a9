import type { RoutingTable } from '../config/snapshots.ts';
import { groupSchema } from '../contract/config/group.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import {
  MAX_RUN_MS,
  UPLOAD_MIN_BYTES_PER_S,
  type OnSaturated,
} from '../contract/config/reactions.ts';
import { countsReports, countsTokens } from '../routing/metered.ts';
import { onSaturatedAt, type Placement } from '../routing/placement.ts';
import type { HoldLimits } from '../upstream/transfer/hold-limits.ts';

/** Rules of a group that nobody configured. */
const DEFAULTS = groupSchema.parse({ name: 'defaults' });

/** Rules that the groups of a call have for it while it is under way. */
export interface CallRules {
  readonly hold: HoldLimits;
  readonly retries: GroupConfig['retries'];
  readonly feedForward: GroupConfig['feed_forward'];
  readonly onSaturated: OnSaturated;
  /** False: some group would rather refuse a call than let it wait. */
  readonly mayWait: boolean;
  /** Whether some group needs to know how many tokens the call uses, or what it costs. */
  readonly isMetered: boolean;
  /** Group in whose costs the usage counts that the answer reports, if nothing else is metered. Null: none. */
  readonly billed: string | null;
}

/**
 * The rules of a call in all its groups. Bounds are the strictest of all; what is about the upstream is
 * said by the narrowest group that stands for it.
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
      // A directory of the version before knows nothing of it.
      stalledMs: strictest(holds.map((each) => each.stalled_ms ?? null)),
      // As above.
      uploadMinBytesPerS: Math.max(
        ...holds.map((each) => each.upload_min_bytes_per_s ?? UPLOAD_MIN_BYTES_PER_S),
      ),
      maxHoldMs: Math.min(...holds.map((each) => each.max_hold_ms)),
      // As above.
      maxRunMs: Math.min(...holds.map((each) => each.max_run_ms ?? MAX_RUN_MS)),
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

/** Null: nobody sets a bound. */
function strictest(bounds: readonly (number | null)[]): number | null {
  const set = bounds.filter((bound) => bound !== null);
  return set.length === 0 ? null : Math.min(...set);
}
