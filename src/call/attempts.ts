import type { ErrorReply } from '../contract/reasons.ts';
import type { Ticket } from './acquire/admission.ts';
import type { PlaceListener } from './acquire/ask.ts';
import { keyFor } from './identity/authenticate.ts';
import { asAsked, type Leg, type SpillStop } from './candidate.ts';
import { relocate, type Incoming } from './locate.ts';
import { send } from './send.ts';
import { unreachable } from './forward.ts';
import { routingTable } from '../config/snapshots.ts';
import { goTo, mayServeElsewhere, planSpill, ticketUntilNext, withBodyFor } from './spill/spill.ts';
import { inSpillOrder, type SpillOrder } from './spill/spill-order.ts';
import { Tries } from './tries.ts';
import { pause } from '../runtime/background.ts';

/** So often a call is routed anew because its group moved, before that counts as a fault. */
const MOVES_MAX = 20;
const MOVE_PAUSE_MS = 100;

/**
 * The way of one call until somebody serves it or refuses it for good: it is sent again when its group
 * moved while it waited, when its upstream refused it and waiting helps, and elsewhere where the operator
 * says so.
 */
export async function journey(
  first: Leg,
  ticket: Ticket,
  incoming: Omit<Incoming, 'table'>,
  listener: PlaceListener | null,
): Promise<Response | ErrorReply | 'left'> {
  const tries = new Tries(first.call.request.headers);
  const { stops, afterMs, order } = await planSpill(first);
  let leg = first;
  let moves = 0;
  const end = (refusal: ErrorReply | 'left'): ErrorReply | 'left' => {
    leg.located.body.discard();
    return refusal === 'left' ? refusal : { ...refusal, tries: tries.sent };
  };
  const ticketHere = (): Ticket => (stops.length > 0 ? ticketUntilNext(ticket, afterMs) : ticket);
  let here = ticketHere();
  for (;;) {
    const hasNext = stops.length > 0;
    const sent = await send({ ...leg, ticket: here, tries, listener, hasNext });
    if (sent === 'left' || sent instanceof Response) return sent;
    leg = { ...leg, located: sent.located };
    if (sent.kind === 'moved') {
      moves += 1;
      const rerouted = await reroute(leg, incoming, sent.configVersion, moves);
      if (rerouted === 'left' || 'reason' in rerouted) return rerouted;
      leg = rerouted;
      continue;
    }
    if (sent.kind === 'again' && sent.where !== 'elsewhere') {
      if (sent.where === 'here later') await pause(tries.pauseMs());
      continue;
    }
    const refusal =
      sent.kind === 'refused' ? sent.refusal : unreachable(leg.located.upstream.id, null);
    if (sent.kind === 'refused' && !mayServeElsewhere(refusal.reason)) return end(refusal);
    const next = await nextLeg(stops, order, leg);
    if (next === null || next === 'left' || 'reason' in next) return end(next ?? refusal);
    leg = next;
    here = ticketHere();
  }
}

/** The call at the next stop that it can go to, which is taken from the list. Null: there is none. */
async function nextLeg(
  stops: SpillStop[],
  order: SpillOrder,
  leg: Leg,
): Promise<Leg | ErrorReply | null | 'left'> {
  // What it was called at the last stop is of no concern to the next.
  let from = asAsked(leg);
  // Only now: most calls never go elsewhere, and pools are asked for the order.
  const ordered = await inSpillOrder(stops.splice(0), order, from);
  for (const [index, stop] of ordered.entries()) {
    const ready = await withBodyFor(stop, from);
    if (ready === 'left' || 'reason' in ready) return ready;
    from = ready;
    const there = await goTo(stop, from);
    if (there === null) continue;
    stops.push(...ordered.slice(index + 1));
    return there;
  }
  from.located.body.discard();
  return null;
}

/** The call by a newer configuration. Of a refused one no body is left. */
async function reroute(
  leg: Leg,
  incoming: Omit<Incoming, 'table'>,
  configVersion: number,
  moves: number,
): Promise<Leg | ErrorReply | 'left'> {
  const { call, caller, located, spilledFrom } = leg;
  if (moves >= MOVES_MAX) {
    located.body.discard();
    const message = 'The configuration of the group could not be read. Try again in a moment.';
    return { reason: 'limiter_unavailable', message };
  }
  if (moves > 1) await pause(MOVE_PAUSE_MS);
  const table = (await routingTable(call.env, call.ctx, configVersion)) ?? call.table;
  const again = await relocate({ ...incoming, table }, located);
  if (again === 'left' || 'reason' in again) return again;
  const key = await keyFor(again.upstream, caller, table, call.env, spilledFrom !== null);
  if ('reason' in key) {
    again.body.discard();
    return key;
  }
  return { call: { ...call, table }, caller, located: again, key, spilledFrom };
}
