import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import { byAge, type NaiveWaiter } from './naive-order.ts';

type Weights = GroupSettings['weights'];

/** The youngest waiter of the tenant with the most waiters for its weight in the lowest lane below the new one's that has any. */
export function worstBelow(
  { lane }: NaiveWaiter,
  waiters: readonly NaiveWaiter[],
  weights: Weights,
): NaiveWaiter | null {
  const lanes = ['high', 'normal', 'low'];
  const below = waiters.filter((each) => lanes.indexOf(each.lane) > lanes.indexOf(lane));
  const lowest = Math.max(...below.filter(mayGo).map((each) => lanes.indexOf(each.lane)));
  const there = below.filter((each) => lanes.indexOf(each.lane) === lowest);
  return youngest(there, mostOf(there.filter(mayGo), there, weights), weights);
}

/** The youngest waiter of the tenant with the most waiters for its weight in the same lane, unless the new one's has as many. */
export function aboveItsShare(
  newcomer: NaiveWaiter,
  waiters: readonly NaiveWaiter[],
  weights: Weights,
): NaiveWaiter | null {
  const there = waiters.filter(({ lane }) => lane === newcomer.lane);
  const most = mostOf(there.filter(mayGo), there, weights);
  return backlog(newcomer, there, weights) === most ? null : youngest(there, most, weights);
}

/** The youngest held waiter of the new one's tenant, in the lowest lane up to its own. */
export function lastHeld(
  newcomer: NaiveWaiter,
  waiters: readonly NaiveWaiter[],
  isHeld: (waiter: NaiveWaiter) => boolean,
): NaiveWaiter | null {
  const lanes = ['high', 'normal', 'low'];
  const { tenant } = newcomer.ticket.holder;
  const held = waiters.filter((each) => {
    const isBelow = lanes.indexOf(each.lane) >= lanes.indexOf(newcomer.lane);
    return each.ticket.holder.tenant === tenant && isBelow && mayGo(each) && isHeld(each);
  });
  const lowest = Math.max(...held.map((each) => lanes.indexOf(each.lane)));
  const there = held.filter((each) => lanes.indexOf(each.lane) === lowest);
  return there.toSorted(byAge).at(-1) ?? null;
}

/** The waiters of the tenants with the most waiters for their weight in a lane. */
export function longestLines(
  lane: NaiveWaiter['lane'],
  waiters: readonly NaiveWaiter[],
  weights: Weights,
): readonly NaiveWaiter[] {
  const there = waiters.filter((each) => each.lane === lane);
  const most = mostOf(there, there, weights);
  return there.filter((each) => backlog(each, there, weights) === most);
}

/** Whether a waiter may lose its place: an operator did not put it first. */
function mayGo({ isPromoted }: NaiveWaiter): boolean {
  return !isPromoted;
}

function mostOf(
  some: readonly NaiveWaiter[],
  waiters: readonly NaiveWaiter[],
  weights: Weights,
): number {
  return Math.max(...some.map((each) => backlog(each, waiters, weights)));
}

function youngest(
  waiters: readonly NaiveWaiter[],
  most: number,
  weights: Weights,
): NaiveWaiter | null {
  const longest = waiters.filter((each) => mayGo(each) && backlog(each, waiters, weights) === most);
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
  return waiters.filter(mayGo).toSorted(byCall).at(-1) ?? null;
}

/** The rejection of a ticket that could never have all its slots, or null. */
export function tooWide({ slots, holder }: Ticket, settings: GroupSettings): string | null {
  const { slotsMax, slotsPerCallMax, slotsMaxEach, slotsMaxEachAgent } = settings;
  const ofAgent = holder.agent === null ? 0 : slotsMaxEachAgent;
  const bounds = [slotsMax, slotsPerCallMax, slotsMaxEach, ofAgent];
  return bounds.some((bound) => bound > 0 && slots > bound) ? 'never_fits' : null;
}
