import { steadyClock } from '../../runtime/async.ts';
import { keptAliveWaitMs, shorterWait } from '../request/caller-headers.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { Rounds, type CallTicket } from './admission.ts';

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
  { afterMs, everyMs }: { readonly afterMs: number; readonly everyMs: number },
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

/**
 * How long a session waits for its slot if its caller sets no limit. Most clients allow an upgrade little more time.
 */
const UPGRADE_WAIT_MS = 10_000;

export function sessionTicket(known: Pick<AuthenticatedCall, 'headers' | 'caller'>): CallTicket {
  const ticket = newTicket(known);
  return { ...ticket, kind: 'session', maxWaitMs: ticket.maxWaitMs ?? UPGRADE_WAIT_MS };
}
