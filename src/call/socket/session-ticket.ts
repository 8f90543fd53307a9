import type { CallTicket } from '../acquire/admission.ts';
import { newTicket } from '../acquire/ticket.ts';
import type { AuthenticatedCall } from '../call.ts';

/**
 * How long a session waits for its slot if its caller sets no limit. Most clients allow an upgrade little more time.
 */
const UPGRADE_WAIT_MS = 10_000;

export function sessionTicket(known: Pick<AuthenticatedCall, 'headers' | 'caller'>): CallTicket {
  const ticket = newTicket(known);
  return { ...ticket, kind: 'session', maxWaitMs: ticket.maxWaitMs ?? UPGRADE_WAIT_MS };
}
