import { keptAliveWaitMs } from '../client-timeouts.ts';
import { shorterWait } from '../caller-headers.ts';
import { steadyClock } from '../../runtime/clock.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { Keepalive } from '../keepalive.ts';
import type { CallTicket } from './admission.ts';
import { Rounds } from './rounds.ts';

/** Interval between two tickets of the same millisecond. */
const TICK_MS = 0.001;

let last = 0;

export function newTicket({
  headers,
  caller,
}: Pick<AuthenticatedCall, 'headers' | 'caller'>): CallTicket {
  const { maxWaitMs, lane, weight: slots, agent, agentStartedAt, parents } = headers;
  const { keyLanes, keyTimeoutMs } = caller;
  const of = { lane, keyLanes, keyTimeoutMs, slots, agent, agentStartedAt, parents };
  return { enqueuedAt: ticketTime(), maxWaitMs, ...of, rounds: new Rounds() };
}

/**
 * The ticket of a call whose client receives comments while it is queued. They reset timeouts that the next bytes end.
 */
export function ticketKeptAlive(
  ticket: CallTicket,
  { request, headers }: Pick<AuthenticatedCall, 'request' | 'headers'>,
  { afterMs, everyMs }: Pick<Keepalive, 'afterMs' | 'everyMs'>,
): CallTicket {
  const ofClient = keptAliveWaitMs(request.headers, Math.max(afterMs, everyMs));
  return { ...ticket, maxWaitMs: shorterWait(headers.chosenWaitMs, ofClient) };
}

/**
 * The time of a new ticket by the isolate's clock. No two of an isolate are equal, so that calls keep their order when
 * all ask again after a reset of the group.
 */
export function ticketTime(): number {
  last = Math.max(steadyClock.now(), last + TICK_MS);
  return last;
}
