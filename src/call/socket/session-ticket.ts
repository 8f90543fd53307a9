import type { CallTicket } from '../acquire/admission.ts';
import { newTicket } from '../acquire/ticket.ts';
import type { AuthenticatedCall } from '../call.ts';

/** How long a session waits for its slot where its caller does not say: most clients give an upgrade little longer. */
const UPGRADE_WAIT_MS = 10_000;

/** Makes the ticket of a session. */
export function sessionTicket(known: Pick<AuthenticatedCall, 'headers' | 'caller'>): CallTicket {
  const ticket = newTicket(known);
  return { ...ticket, kind: 'session', maxWaitMs: ticket.maxWaitMs ?? UPGRADE_WAIT_MS };
}
