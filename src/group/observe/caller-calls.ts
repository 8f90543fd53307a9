import type { CallerCalls } from '../../contract/rpc/group-rpc.ts';
import type { WaiterInfo } from '../../contract/status.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { GroupState } from '../../core/state.ts';
import { waiterInfos } from './status.ts';

/** Minimum interval at which the queue is sorted for callers, because they may ask at any rate. */
const ORDERED_EVERY_MS = 1_000;

/** Returns callers' own calls in a pool. */
export class CallerView {
  #orderedAt = -Infinity;
  #infos = new Map<string, WaiterInfo>();

  /** Returns the calls of one caller. Places in the queue may be a second old. */
  callsOf(caller: string, state: GroupState, now: InstantMs): Omit<CallerCalls, 'status'> {
    const held = [...state.leases.values()].filter(
      ({ holder, phase }) => holder.caller === caller && phase !== 'cooling',
    );
    const tickets = [...state.queue.byTicket.values()]
      .filter(({ ticket }) => ticket.holder.caller === caller)
      .map(({ ticket }) => ticket.id);
    return {
      in_flight: held.length,
      slots_in_use: held.reduce((slots, lease) => slots + lease.slots, 0),
      waiters: tickets.length === 0 ? [] : this.#waiters(tickets, state, now),
    };
  }

  #waiters(tickets: readonly string[], state: GroupState, now: InstantMs): WaiterInfo[] {
    const isOld = now - this.#orderedAt >= ORDERED_EVERY_MS;
    if (isOld || tickets.some((ticket) => !this.#infos.has(ticket))) {
      this.#infos = new Map(waiterInfos(state, now).map((info) => [info.ticket, info]));
      this.#orderedAt = now;
    }
    return tickets
      .flatMap((ticket) => this.#infos.get(ticket) ?? [])
      .toSorted((a, b) => a.position - b.position);
  }
}
