import type { InstantMs } from '../words/ids.ts';
import {
  addSpent,
  PERIODS,
  type Correction,
  type NewCorrection,
  type Period,
  type Spend,
  type Spent,
} from './spend.ts';

/**
 * Corrections of the spend of a budget, by an operator. Each is relative, so it is correct also while calls are settled. The
 * applied change is kept with it: an undo reverses exactly that.
 */

/** Maximum number of kept corrections, the newest ones. Older corrections cannot be undone. */
export const CORRECTIONS_MAX = 20;

/** Lists the kept corrections, newest first. */
export function correctionsOf({ corrections = [] }: Spend): readonly Correction[] {
  return corrections.toReversed();
}

/** Corrects the spend, once for each id. */
export function correctSpend(spend: Spend, wanted: NewCorrection, now: InstantMs): void {
  const { corrections = [], total } = spend;
  if (corrections.some(({ id }) => id === wanted.id)) return;
  addSpent(total, 0, now);
  const applied = { hour: 0, day: 0, month: 0 };
  for (const period of PERIODS.slice(PERIODS.indexOf(wanted.period))) {
    applied[period] = changeBy(total, period, wanted.usd);
  }
  const beganAt = { ...total.beganAt };
  const made = { ...wanted, at: now, applied, beganAt, undoneAt: null };
  spend.corrections = [...corrections, made].slice(-CORRECTIONS_MAX);
}

/** Undoes a correction, once, in the periods that are still current. */
export function undoCorrection(spend: Spend, id: string, now: InstantMs): void {
  const { corrections = [], total } = spend;
  const found = corrections.find((each) => each.id === id);
  if (found === undefined || found.undoneAt !== null) return;
  addSpent(total, 0, now);
  for (const period of PERIODS) {
    const isCurrent = total.beganAt[period] === found.beganAt[period];
    if (isCurrent) changeBy(total, period, -found.applied[period]);
  }
  found.undoneAt = now;
}

/** Changes the spend of a period, and returns the applied change. */
function changeBy(spent: Spent, period: Period, usd: number): number {
  const before = spent.usd[period];
  spent.usd[period] = Math.max(0, before + usd);
  return spent.usd[period] - before;
}
