import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import { byAge, type NaiveWaiter } from './naive-order.ts';

type Weights = GroupSettings['weights'];

/** The youngest waiter of the tenant with the most waiters for its weight in the lowest lane below the new one's. */
export function worstBelow(
  { lane }: NaiveWaiter,
  waiters: readonly NaiveWaiter[],
  weights: Weights,
): NaiveWaiter | null {
  const lanes = ['high', 'normal', 'low'];
  const below = waiters.filter((each) => lanes.indexOf(each.lane) > lanes.indexOf(lane));
  const lowest = Math.max(...below.map((each) => lanes.indexOf(each.lane)));
  const there = below.filter((each) => lanes.indexOf(each.lane) === lowest);
  return youngest(there, Math.max(...there.map((each) => backlog(each, there, weights))), weights);
}

/** The youngest waiter of the tenant with the most waiters for its weight in the same lane, unless the new one's has as many. */
export function aboveItsShare(
  newcomer: NaiveWaiter,
  waiters: readonly NaiveWaiter[],
  weights: Weights,
): NaiveWaiter | null {
  const there = waiters.filter(({ lane }) => lane === newcomer.lane);
  const most = Math.max(...there.map((each) => backlog(each, there, weights)));
  return backlog(newcomer, there, weights) === most ? null : youngest(there, most, weights);
}

function youngest(
  waiters: readonly NaiveWaiter[],
  most: number,
  weights: Weights,
): NaiveWaiter | null {
  const longest = waiters.filter((each) => backlog(each, waiters, weights) === most);
  return longest.toSorted(byAge).at(-1) ?? null;
}

function backlog(
  { ticket }: NaiveWaiter,
  waiters: readonly NaiveWaiter[],
  weights: Weights,
): number {
  const { tenant } = ticket.holder;
  const own = waiters.filter((each) => each.ticket.holder.tenant === tenant);
  return own.length / (Object.entries(weights).find(([name]) => name === tenant)?.[1] ?? 1);
}

/** Finds whose call reached Headgate last. */
export function lastOf(waiters: readonly NaiveWaiter[]): NaiveWaiter | null {
  const byCall = (a: NaiveWaiter, b: NaiveWaiter) =>
    a.enqueuedAt - b.enqueuedAt || a.arrival - b.arrival;
  return waiters.toSorted(byCall).at(-1) ?? null;
}

/** The rejection of a ticket that could never have all its slots, or null. */
export function tooWide({ slots, holder }: Ticket, settings: GroupSettings): string | null {
  const { slotsMax, slotsPerCallMax, slotsMaxEach, slotsMaxEachAgent } = settings;
  const ofAgent = holder.agent === null ? 0 : slotsMaxEachAgent;
  const bounds = [slotsMax, slotsPerCallMax, slotsMaxEach, ofAgent];
  return bounds.some((bound) => bound > 0 && slots > bound) ? 'never_fits' : null;
}
