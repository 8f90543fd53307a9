import type { GroupSettings } from '../words/settings.ts';
import { LANES, type Lane } from '../words/ticket.ts';

/** Minimum credit for a turn. A little less than 1, because shares such as 0.1 add up inexactly. */
const ONE_TURN = 1 - 1e-9;

/** Maximum credit, with which a lane catches up after it could not be served for a while. */
const CREDIT_MAX = 2;

interface LaneState {
  /** Credit of the lower lanes, in turns. */
  readonly laneCredit: Record<Lane, number>;
  /** Lengths of the lanes. It only matters which are 0. */
  readonly queue: { readonly lanes: Readonly<Record<Lane, { readonly length: number }>> };
  readonly settings: Pick<GroupSettings, 'laneShares'>;
}

/** Ranks the lanes. A lane that is owed a turn goes first, by the largest credit. Then they go by priority. */
export function laneTurns({ laneCredit }: Pick<LaneState, 'laneCredit'>): Record<Lane, number> {
  const owed = LANES.filter((lane) => laneCredit[lane] >= ONE_TURN).toSorted(
    (a, b) => laneCredit[b] - laneCredit[a],
  );
  const turn = (lane: Lane, index: number): number => {
    const place = owed.indexOf(lane);
    return place >= 0 ? place - LANES.length : index;
  };
  return { high: turn('high', 0), normal: turn('normal', 1), low: turn('low', 2) };
}

/**
 * Notes a grant to a lane, which pays one turn. Every lane with waiters earns its share of a turn. The granted lane
 * earns it too, so that shares refer to all grants. So a lane gets its share while it has waiters, without timers. A
 * lane with share 0 earns nothing and may starve.
 */
export function noteLaneGrant(state: LaneState, granted: Lane): void {
  const { laneCredit, queue, settings } = state;
  laneCredit[granted] = Math.max(0, laneCredit[granted] - 1);
  for (const lane of LANES) {
    if (queue.lanes[lane].length === 0) continue;
    laneCredit[lane] = Math.min(CREDIT_MAX, laneCredit[lane] + settings.laneShares[lane]);
  }
}
