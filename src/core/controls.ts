import type { InstantMs } from './words/ids.ts';
import type { RateSettings } from './words/limits.ts';
import { closedBreaker, rebase as rebaseBreaker, type Breaker } from './parts/breaker.ts';
import { emptyCosts, type Costs } from './parts/costs.ts';
import { emptyCeiling, rebase as rebaseCeiling, type Ceiling } from './parts/ceiling.ts';
import { noLag, rebase as rebaseLag, type Lag } from './parts/lag.ts';
import { noOutage, rebase as rebaseOutage, type Outage } from './parts/outage.ts';
import { emptyPause, rebase as rebasePause, type Pause } from './parts/pause.ts';
import { emptyRates, rebase as rebaseRates, type RateUse } from './parts/rates.ts';
import { emptySpend, rebase as rebaseSpend, type SpendState } from './parts/spend.ts';
import { emptyTokenFactors, type TokenFactors } from './parts/token-factors.ts';
import { noScopes, type Scopes } from './parts/scope-lessons.ts';

/**
 * The part of its limits, except slots, that a member has used, and its lessons about its upstream. For a group with
 * members, also the use over all of them. One row stores them, so a reset grants nothing twice and forgets no lesson.
 */
export interface Controls {
  readonly rates: RateUse;
  readonly spend: SpendState;
  /** Costs of all calls of the group, at all members. A member's own costs stay empty. */
  readonly costs: Costs;
  readonly ceiling: Ceiling;
  readonly pause: Pause;
  readonly breaker: Breaker;
  readonly factors: TokenFactors;
  readonly lag: Lag;
  readonly outage: Outage;
  readonly scopes: Scopes;
}

export function emptyControls(now: InstantMs): Controls {
  return {
    rates: emptyRates(),
    spend: emptySpend(),
    costs: emptyCosts(),
    ceiling: emptyCeiling(now),
    pause: emptyPause(),
    breaker: closedBreaker(),
    factors: emptyTokenFactors(),
    lag: noLag(),
    outage: noOutage(),
    scopes: noScopes(),
  };
}

/** Corrects times that were noted by a clock that was ahead of `now`. */
export function rebaseControls(controls: Controls, rates: RateSettings, now: InstantMs): void {
  rebaseRates(controls.rates, rates, now);
  rebaseSpend(controls.spend, now);
  for (const { ceiling, pause, breaker, lag } of [controls, ...controls.scopes.narrower]) {
    rebaseCeiling(ceiling, now);
    rebasePause(pause, now);
    rebaseBreaker(breaker, now);
    rebaseLag(lag, now);
  }
  rebaseOutage(controls.outage, now);
}
