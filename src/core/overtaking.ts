import { instant, type InstantMs } from './words/ids.ts';
import type { CallUsage } from './words/usage.ts';
import { isNamedAgent } from './parts/accounts.ts';
import { demandOf } from './parts/demand.ts';
import { nextChangeAt, rampSlotsMax } from './parts/pause.ts';
import type { Waiter } from './parts/queue.ts';
import { exceededBy, fillInTime, isSpare, sparesBeside } from './parts/rates.ts';
import { budgetBlock } from './parts/spend.ts';
import { roomAt, slotsLearned } from './capacity.ts';
import type { Member } from './member.ts';
import { isSplit } from './members.ts';
import { nextWaiter } from './order.ts';
import { NEVER, type GroupState } from './state.ts';

/** Maximum number of waiters behind the next one that are considered. */
const LOOKED_AT_MAX = 16;

/** The least that a call uses. If even that is not spare, no waiter is considered. */
const LEAST: CallUsage = { requests: 1, inputTokens: 1, outputTokens: 0 };

/** The next waiter, which lacks only time, and the instant at which it has room. */
interface First {
  readonly waiter: Waiter;
  readonly at: InstantMs;
}

/** The waiter that may overtake. null if there is none before `at`. */
interface Overtaker {
  readonly waiter: Waiter | null;
  readonly at: InstantMs;
}

const NONE: Overtaker = { waiter: null, at: NEVER };

/**
 * Finds a smaller call that uses what the next waiter leaves of the limits and does not delay it. So large calls are
 * not starved, and no spare capacity is wasted.
 */
export function findOvertaker(state: GroupState, first: First, now: InstantMs): Overtaker {
  const [member] = state.serving;
  // If the next waiter waits for one of several members, later waiters may use the other members already.
  if (member === undefined || isSplit(state)) return NONE;
  const { settings, controls } = member;
  // Permits of the breaker, probes of a pause and slots of a ramp go to the next waiter.
  const isClosed = controls.breaker.phase === 'closed' && controls.pause.waitMs === 0;
  if (state.settings.isDryRun || first.at === NEVER || !isClosed) return NONE;
  const slotsMax = slotsLearned(state);
  if (rampSlotsMax(controls.pause, slotsMax, now) < slotsMax) {
    return { waiter: null, at: nextChangeAt(controls.pause, slotsMax, now) };
  }
  const expected = { demand: first.waiter.demand, at: first.at };
  const spares = sparesBeside(controls.rates, settings.rates, expected);
  if (!isSpare(settings.rates, spares, LEAST)) return NONE;
  if (!fillInTime(controls.rates, settings.rates, LEAST, expected, now)) return NONE;
  const passedOver = new Set([first.waiter]);
  let soonest: number = NEVER;
  while (passedOver.size <= LOOKED_AT_MAX) {
    const waiter = nextWaiter(state, now, passedOver);
    if (waiter === undefined) break;
    waiter.demand = demandOf(state.controls.factors, state.guessRates, waiter.ticket);
    const isSmall = isSpare(settings.rates, spares, waiter.demand);
    const at = isSmall ? roomBeside(state, member, waiter, first, now) : NEVER;
    if (at <= now) return { waiter, at };
    soonest = Math.min(soonest, at);
    passedOver.add(waiter);
  }
  return { waiter: null, at: instant(soonest) };
}

/** Returns when a waiter has room that the next waiter does not need. NEVER if not before the next waiter starts. */
function roomBeside(
  state: GroupState,
  member: Member,
  waiter: Waiter,
  first: First,
  now: InstantMs,
): InstantMs {
  const { settings, controls } = member;
  const { rates, budgets } = settings;
  const { demand } = waiter;
  const { slots, usd } = demand;
  const both = slots + first.waiter.demand.slots;
  if (state.slotsInUse + both > slotsLearned(state) || !areUnderCaps(state, waiter, first, both)) {
    return NEVER;
  }
  const usdOfBoth = usd + first.waiter.demand.usd;
  if (usd > 0 && budgetBlock(controls.spend, budgets, usdOfBoth, now) !== null) return NEVER;
  if (waiter.ticket.waitsElsewhere || exceededBy(rates, demand) !== null) return NEVER;
  const at = roomAt(state, member, { ...demand, slots: both }, now);
  const expected = { demand: first.waiter.demand, at: first.at };
  const isInTime = at < first.at && fillInTime(controls.rates, rates, demand, expected, at);
  return isInTime ? at : NEVER;
}

/** Whether the caps of the next waiter still have room for it after the other one has started. */
function areUnderCaps(
  { settings }: GroupState,
  { tenant, agent }: Waiter,
  { waiter: first }: First,
  slots: number,
): boolean {
  if (first.tenant !== tenant) return true;
  if (tenant.slots + slots > settings.slotsMaxEach) return false;
  if (first.agent !== agent || !isNamedAgent(agent)) return true;
  return agent.slots + slots <= settings.slotsMaxEachAgent;
}
