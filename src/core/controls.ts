import { closedBreaker, type Breaker } from './parts/breaker.ts';
import { emptyCeiling, type Ceiling } from './parts/ceiling.ts';
import { instant, type InstantMs } from './words/ids.ts';
import { emptyPause, type Pause } from './parts/pause.ts';
import { emptyRates, type Rates } from './parts/rates.ts';
import { emptySpend, type Spend } from './parts/spend.ts';
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
