import type { HeldCall } from '../../upstream/transfer/held-call.ts';
import { reportCut } from '../acquire/report-cut.ts';
import { countInFlight } from '../calls-in-flight.ts';
import { departures } from '../isolate.ts';
import { rejected, type Rejected } from '../result.ts';
import type { Sending } from '../sending.ts';
import { carrySession, type Opened } from './session.ts';
import { SocketUsage } from './socket-usage.ts';
import { unserved } from './upgrade.ts';

/**
 * Starts a session between both sides, and settles it once the upstream has released it. Returns the 101 for its
 * caller.
 */
export function passSession({ candidate, metering, admission }: Sending, opened: Opened): Response {
  const { call, located } = candidate;
  const { held, answer } = opened;
  call.body.answered();
  const usage = metering === null ? null : new SocketUsage(located.operation.shape);
  const { response, done } = carrySession(opened, candidate, usage);
  const settled = done.then(({ outcome, cutBy }) => {
    reportCut(admission, answer.status, cutBy);
    const settle = usage?.isKnown === true ? metering?.settlement(usage) : undefined;
    return admission.release(outcome, settle);
  });
  countInFlight(
    departures.watch(call.request, settled, () => held.cut('left')),
    call.ctx,
  );
  return response;
}

/**
 * Refuses a session whose upstream has answered it like a GET, because the caller may not be allowed to read that
 * answer.
 */
export function notSwitched(
  { candidate: { call }, admission }: Sending,
  held: HeldCall,
  answer: Response,
): Rejected {
  held.giveUp();
  call.ctx.waitUntil(Promise.allSettled([answer.body?.cancel(), admission.release('refused')]));
  return rejected(unserved(call.url));
}
