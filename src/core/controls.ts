import { closedBreaker, rebase as rebaseBreaker, type Breaker } from './parts/breaker.ts';
import { emptyCeiling, rebase as rebaseCeiling, type Ceiling } from './parts/ceiling.ts';
import { earlier, instant, type InstantMs } from './words/ids.ts';
import { emptyPause, rebase as rebasePause, type Pause } from './parts/pause.ts';
import { emptyRates, rebase as rebaseRates, type Rates } from './parts/rates.ts';
import { emptySpend, type Spend } from './parts/spend.ts';
import type { GroupSettings } from './words/settings.ts';
import { emptyTokenFactors, type TokenFactors } from './parts/token-factors.ts';

/**
 * What a group has used of its limits, slots aside, and what it has learned of its upstream. Kept in one
 * row, so that a reset neither gives a second helping nor forgets a lesson.
 */
export interface Controls {
  readonly rates: Rates;
  readonly spend: Spend;
  readonly ceiling: Ceiling;
  readonly pause: Pause;
  readonly breaker: Breaker;
  readonly factors: TokenFactors;
  /** When the upstream last refused as too many what was within the configured limit; 0: never. */
  lagSeenAt: InstantMs;
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
    lagSeenAt: instant(0),
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
