import type { Breaker } from './parts/breaker.ts';
import type { Ceiling } from './parts/ceiling.ts';
import type { Controls } from './controls.ts';
import { after, instant, type InstantMs } from './words/ids.ts';
import type { Pause } from './parts/pause.ts';
import { rebase as rebaseRates } from './parts/rates.ts';
import { HOLD_MAX_MS, LEASE_TTL_MS, type GroupSettings } from './words/settings.ts';
import type { Lease } from './state.ts';

/** The instants in the row of a lease. */
type RowInstants = Pick<Lease, 'grantedAt' | 'extendedUntil'> & {
  readonly coolingUntil: InstantMs | null;
};

/**
 * Rows may tell of the future: the clock that they were written by was ahead, and has been set back since.
 * What began later than now begins now, and lasts as long as it was to.
 */

/** The row of a lease, as the present clock would have written it. */
export function rebasedRow<Row extends RowInstants>(row: Row, now: InstantMs): Row {
  const { grantedAt, coolingUntil, extendedUntil } = row;
  const within = (at: InstantMs | null, ms: number): InstantMs | null =>
    at === null ? null : earlier(at, after(now, ms));
  return {
    ...row,
    grantedAt: earlier(grantedAt, now),
    coolingUntil: within(coolingUntil, HOLD_MAX_MS),
    extendedUntil: within(extendedUntil, LEASE_TTL_MS),
  };
}

/** What was used and learned, as the present clock would have noted it. Budgets go by the calendar. */
export function rebaseControls(controls: Controls, settings: GroupSettings, now: InstantMs): void {
  rebaseRates(controls.rates, settings.rates, now);
  rebaseCeiling(controls.ceiling, now);
  rebasePause(controls.pause, now);
  rebaseBreaker(controls.breaker, now);
  controls.lagSeenAt = earlier(controls.lagSeenAt, now);
}

function rebaseCeiling(ceiling: Ceiling, now: InstantMs): void {
  const { evidence } = ceiling;
  ceiling.lastCutAt = earlier(ceiling.lastCutAt, now);
  ceiling.lastRiseAt = earlier(ceiling.lastRiseAt, now);
  ceiling.lastProbeAt = earlier(ceiling.lastProbeAt, now);
  evidence.servedAt = earlier(evidence.servedAt, now);
  evidence.refusedAt = earlier(evidence.refusedAt, now);
  const { refusal } = evidence;
  if (refusal !== null) evidence.refusal = { ...refusal, at: earlier(refusal.at, now) };
}

function rebasePause(pause: Pause, now: InstantMs): void {
  const aheadMs = Math.max(0, pause.notedAt - now);
  pause.notedAt = instant(pause.notedAt - aheadMs);
  pause.until = instant(pause.until - aheadMs);
}

function rebaseBreaker(breaker: Breaker, now: InstantMs): void {
  const aheadMs = Math.max(0, breaker.openedAt - now);
  breaker.openedAt = instant(breaker.openedAt - aheadMs);
  breaker.openUntil = instant(breaker.openUntil - aheadMs);
  breaker.results = breaker.results.map((each) => ({ ...each, at: earlier(each.at, now) }));
}

function earlier(at: InstantMs, other: InstantMs): InstantMs {
  return instant(Math.min(at, other));
}
