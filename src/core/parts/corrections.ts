import type { InstantMs } from '../words/ids.ts';
import {
  addSpent,
  PERIODS,
  type Correction,
  type NewCorrection,
  type Period,
  type SpendState,
} from './spend.ts';

/**
 * Corrections of a budget's spend by an operator. Each is relative, so it is correct even while calls are settled. It
 * stores the spend before it, so that an undo can compute the spend without it.
 */

/** Maximum number of kept corrections, the newest ones. Older corrections cannot be undone. */
export const CORRECTIONS_MAX = 20;

/** Lists the kept corrections, newest first. */
export function correctionsOf({ corrections = [] }: SpendState): readonly Correction[] {
  return corrections.toReversed();
}

/** Corrects the spend. The id must be new. */
export function correctSpend(spend: SpendState, wanted: NewCorrection, now: InstantMs): void {
  const { corrections = [], total } = spend;
  addSpent(total, 0, now);
  const nothing = { hour: 0, day: 0, month: 0 };
  const [before, beganAt] = [{ ...total.usd }, { ...total.beganAt }];
  const made: Correction = {
    ...wanted,
    at: now,
    before,
    applied: nothing,
    beganAt,
    undoneAt: null,
  };
  for (const period of PERIODS) total.usd[period] = recount(period, [made], total.usd[period]);
  spend.corrections = [...corrections, made].slice(-CORRECTIONS_MAX);
}

/**
 * Reverts a correction, once, in the periods that are still current. The spend is then as if the correction had never
 * been made. Returns false if no correction has that id.
 */
export function undoCorrection(spend: SpendState, id: string, now: InstantMs): boolean {
  const { corrections = [], total } = spend;
  const index = corrections.findIndex((each) => each.id === id);
  const found = corrections[index];
  if (found === undefined) return false;
  if (found.undoneAt !== null) return true;
  found.undoneAt = now;
  addSpent(total, 0, now);
  for (const period of PERIODS) {
    if (total.beganAt[period] !== found.beganAt[period]) continue;
    total.usd[period] = recount(period, corrections.slice(index), total.usd[period]);
  }
  return true;
}

/**
 * Computes the spend of a period from the amount before the first of these corrections. Calls settled between them
 * count as they came. Each correction in force changes the sum, which never falls below 0.
 *
 * @param spent the current spend
 */
function recount(period: Period, corrections: readonly Correction[], spent: number): number {
  let usd = corrections[0]?.before[period] ?? spent;
  for (const [index, each] of corrections.entries()) {
    const { before, applied } = each;
    const until = corrections[index + 1]?.before[period] ?? spent;
    const settled = until - before[period] - applied[period];
    const corrected = holdsIn(each, period) ? Math.max(0, usd + each.usd) : usd;
    before[period] = usd;
    applied[period] = corrected - usd;
    usd = corrected + settled;
  }
  return usd;
}

function holdsIn({ undoneAt, period: shortest }: Correction, period: Period): boolean {
  return undoneAt === null && PERIODS.indexOf(shortest) <= PERIODS.indexOf(period);
}
