import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { Ticket } from '../../src/core/words/ticket.ts';
import { byAge, type NaiveWaiter } from './naive-order.ts';

/** Of the lowest lane below, of the tenant with most waiters there, the youngest. */
export function worstBelow(
  { lane }: NaiveWaiter,
  waiters: readonly NaiveWaiter[],
): NaiveWaiter | null {
  const lanes = ['high', 'normal', 'low'];
  const below = waiters.filter((each) => lanes.indexOf(each.lane) > lanes.indexOf(lane));
  const lowest = Math.max(...below.map((each) => lanes.indexOf(each.lane)));
  const there = below.filter((each) => lanes.indexOf(each.lane) === lowest);
  const backlog = ({ ticket }: NaiveWaiter) =>
    there.filter((each) => each.ticket.holder.tenant === ticket.holder.tenant).length;
  const most = Math.max(...there.map(backlog));
  return (
    there
      .filter((each) => backlog(each) === most)
      .toSorted(byAge)
      .at(-1) ?? null
  );
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
