import { routingTable } from '../config/snapshots.ts';
import { pause } from '../runtime/background.ts';
import type { Ticket } from './acquire/admission.ts';
import type { PlaceListener } from './acquire/slices.ts';
import { relocate } from './locate.ts';
import { planAt, type Candidate } from './plan.ts';
import { never, rejected, type FinalResult, type Left, type Rejected } from './result.ts';
import {
  atOtherPlaces,
  mayServeElsewhere,
  nextCandidate,
  planSpill,
  ticketUntilNext,
} from './spill/spill.ts';
import { Tries } from './tries.ts';
import { unreachable } from './unreachable.ts';
import { tryAt } from './try-at.ts';

/** Maximum reroutes caused by moving groups before the call fails. */
const MOVES_MAX = 20;
const MOVE_PAUSE_MS = 100;

/**
 * Tries a call until somebody serves it or it is rejected for good: again when its group moved while it
 * waited or when its upstream refused it and waiting helps, and elsewhere where the operator says so.
 */
export async function attempts(
  first: Candidate,
  ticket: Ticket,
  listener: PlaceListener | null,
): Promise<FinalResult> {
  const tries = new Tries(first.call.request.headers);
  const spill = await planSpill(first);
  let candidate = first;
  let moves = 0;
  const ticketHere = (): Ticket =>
    spill.next.length > 0 ? ticketUntilNext(ticket, spill.afterMs) : ticket;
  let here = ticketHere();
  for (;;) {
    const hasNext = spill.next.length > 0;
    const { upstream } = candidate.located;
    const hasOtherPlace = hasNext && atOtherPlaces(spill, upstream).length > 0;
    const turn = { ticket: here, tries, listener, hasNext, hasOtherPlace };
    const result = await tryAt(candidate, turn);
    let failure: Rejected;
    switch (result.kind) {
      case 'answered':
      case 'left':
        return result;
      case 'moved': {
        moves += 1;
        const rerouted = await reroute(candidate, result.configVersion, moves);
        if (rerouted.kind !== 'planned') return rerouted;
        candidate = rerouted;
        continue;
      }
      case 'again':
        if (result.where === 'here later') await pause(tries.pauseMs());
        if (result.where === 'here' || result.where === 'here later') continue;
        if (result.where === 'other place') spill.next = atOtherPlaces(spill, upstream);
        failure = unreachable(upstream.id, null);
        break;
      case 'rejected':
        if (!mayServeElsewhere(result.reply.reason)) return withTries(result, tries);
        failure = result;
        break;
      default:
        return never(result);
    }
    const next = await nextCandidate(spill, candidate);
    if (next === null) return withTries(failure, tries);
    if (next.kind === 'rejected') return withTries(next, tries);
    if (next.kind === 'left') return next;
    candidate = next;
    here = ticketHere();
  }
}

function withTries({ reply }: Rejected, { sent }: Tries): Rejected {
  return rejected({ ...reply, tries: sent });
}

/** Plans a call anew by a newer configuration. */
async function reroute(
  { call: before, located, spilledFrom }: Candidate,
  configVersion: number,
  moves: number,
): Promise<Candidate | Rejected | Left> {
  if (moves >= MOVES_MAX) {
    const message = 'The configuration of the group could not be read. Try again in a moment.';
    return rejected({ reason: 'limiter_unavailable', message });
  }
  if (moves > 1) await pause(MOVE_PAUSE_MS);
  const table = (await routingTable(before.env, before.ctx, configVersion)) ?? before.table;
  const call = { ...before, table };
  const again = await relocate(call, located);
  return again.kind === 'located' ? planAt(call, again, spilledFrom) : again;
}
