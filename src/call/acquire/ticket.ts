import { steadyClock } from '../../runtime/steady-clock.ts';
import type { KnownCall } from '../call.ts';
import type { Ticket } from './admission.ts';
import { Rounds } from './rounds.ts';

/** Time between two tickets of one millisecond. */
const TICK_MS = 0.001;

let last = 0;

/** Makes the ticket of a call. */
export function newTicket({ headers, caller }: Pick<KnownCall, 'headers' | 'caller'>): Ticket {
  const { maxWaitMs, lane, weight: slots, agent, agentStartedAt, parents } = headers;
  const { keyLanes, keyTimeoutMs } = caller;
  const of = { lane, keyLanes, keyTimeoutMs, slots, agent, agentStartedAt, parents };
  return { enqueuedAt: ticketTime(), maxWaitMs, ...of, rounds: new Rounds() };
}

/**
 * The time of a new ticket by the isolate's clock: no two of an isolate are the same, so that after a
 * reset of the group, when all ask again at once, they come out in the order in which they came.
 */
export function ticketTime(): number {
  last = Math.max(steadyClock.now(), last + TICK_MS);
  return last;
}
