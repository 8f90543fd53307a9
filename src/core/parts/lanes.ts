import type { GroupSettings } from '../words/settings.ts';
import { LANES, type Lane } from '../words/ticket.ts';

/** Minimum credit for a turn: a little less than 1, because shares such as 0.1 add up inexactly. */
const ONE_TURN = 1 - 1e-9;

/** Maximum credit, with which a lane catches up that could not be served for a while. */
const CREDIT_MAX = 2;

/** The part of a group's state that the lanes look at. */
interface LaneState {
  /** Turns that lower lanes are owed. */
  readonly laneCredit: Record<Lane, number>;
  /** Lengths of the lanes; it only counts which are 0. */
  readonly queue: { readonly lanes: Readonly<Record<Lane, { readonly length: number }>> };
  readonly settings: Pick<GroupSettings, 'laneShares'>;
}

/**
 * Ranks the lanes: a lane that is owed a turn goes first, the one with most credit before the
 * others; then by priority.
 */
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
 * Notes a grant to a lane, which pays a turn: every lane where somebody waits earns its share of one, the
 * granted one too, or its share would be one of what the others get and not of all grants. So a lane gets
 * its share for as long as it has waiters, without timers. A share of 0 earns nothing, and may starve.
 */
export function noteLaneGrant(state: LaneState, granted: Lane): void {
  const { laneCredit, queue, settings } = state;
  laneCredit[granted] = Math.max(0, laneCredit[granted] - 1);
  for (const lane of LANES) {
    if (queue.lanes[lane].length === 0) continue;
    laneCredit[lane] = Math.min(CREDIT_MAX, laneCredit[lane] + settings.laneShares[lane]);
  }
}
