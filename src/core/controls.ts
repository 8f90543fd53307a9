import type { InstantMs } from './words/ids.ts';
import type { GroupSettings } from './words/settings.ts';
import { closedBreaker, rebase as rebaseBreaker, type Breaker } from './parts/breaker.ts';
import { emptyCeiling, rebase as rebaseCeiling, type Ceiling } from './parts/ceiling.ts';
import { noLag, rebase as rebaseLag, type Lag } from './parts/lag.ts';
import { emptyPause, rebase as rebasePause, type Pause } from './parts/pause.ts';
import { emptyRates, rebase as rebaseRates, type Rates } from './parts/rates.ts';
import { emptySpend, type Spend } from './parts/spend.ts';
import { emptyTokenFactors, type TokenFactors } from './parts/token-factors.ts';

/**
 * The part of its limits that a group has used, slots aside, and its lessons about its upstream. Kept in one
 * row, so that a reset neither gives a second helping nor forgets a lesson.
 */
export interface Controls {
  readonly rates: Rates;
  readonly spend: Spend;
  readonly ceiling: Ceiling;
  readonly pause: Pause;
  readonly breaker: Breaker;
  readonly factors: TokenFactors;
  readonly lag: Lag;
}

/** The controls of a group that has not made a call. */
export function emptyControls(now: InstantMs): Controls {
  return {
    rates: emptyRates(),
    spend: emptySpend(),
    ceiling: emptyCeiling(now),
    pause: emptyPause(),
    breaker: closedBreaker(),
    factors: emptyTokenFactors(),
    lag: noLag(),
  };
}

/** Brings what was used and learned by a clock that was ahead back to now. Budgets go by the calendar. */
export function rebaseControls(controls: Controls, settings: GroupSettings, now: InstantMs): void {
  rebaseRates(controls.rates, settings.rates, now);
  rebaseCeiling(controls.ceiling, now);
  rebasePause(controls.pause, now);
  rebaseBreaker(controls.breaker, now);
  rebaseLag(controls.lag, now);
}
