import { tableSince } from '../config/snapshots.ts';
import type { Reason } from '../contract/reasons.ts';
import type { Placement } from '../routing/placement.ts';
import { pause } from '../runtime/background.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { waitsUntil, type CallTicket } from './acquire/admission.ts';
import type { PositionListener } from './acquire/slices.ts';
import { identify } from './identity/authenticate.ts';
import { relocate } from './locate.ts';
import { isForLackOfRoom } from './members/last-answer.ts';
import { mayAskWaitable } from './members/where-next-member.ts';
import { traceError } from './observe/trace.ts';
import { planAt, type Candidate } from './plan.ts';
import {
  LEFT,
  never,
  rejected,
  type NotServed,
  type FinalResult,
  type CallerLeft,
  type Rejected,
} from './result.ts';
import {
  mayServeElsewhere,
  nextCandidate,
  planSpill,
  ticketUntilNext,
  type SpillPlan,
} from './spill/spill.ts';
import { isSamePlace, CallAttempts } from './call-attempts.ts';
import { closed, unreachable } from './unreachable.ts';
import { attemptAt } from './attempt-at.ts';

/** Maximum reroutes caused by moving groups before the call fails. */
const MOVES_MAX = 20;
const MOVE_PAUSE_MS = 100;
const MOVE_PAUSE_MS_MAX = 1_000;

/** How long a call that left a slow member waits for another one before it returns. */
const AFTER_SLOW_WAIT_MS = 1_000;

/** The next step of a call whose own upstream, where it begins again by a newer configuration, has refused its address. */
const GOES_ON: NotServed = { kind: 'again', where: 'other place' };

/**
 * Tries a call until somebody serves it or it is rejected for good: again when its group moved while it
 * waited or when its upstream refused it and waiting helps, and elsewhere where the operator says so.
 */
export async function attemptCall(
  first: Candidate,
  ticket: CallTicket,
  listener: PositionListener | null,
): Promise<FinalResult> {
  const attempts = new CallAttempts(first.call.request.headers);
  let spill = await planSpill(first);
  let candidate = first;
  let moves = 0;
  const ticketHere = (): CallTicket => {
    const { keyLanes, keyTimeoutMs } = candidate.call.caller;
    const own = keyLanes === ticket.keyLanes ? ticket : { ...ticket, keyLanes, keyTimeoutMs };
    return spill.next.length > 0 ? ticketUntilNext(own, spill.afterMs) : own;
  };
  let here = ticketHere();
  for (;;) {
    const hasNext = spill.next.length > 0;
    const { upstream } = candidate.located;
    const hasOtherPlace = spill.next.some(({ entry }) => !isSamePlace(entry.upstream, upstream));
    const firstTokenMs = hasNext ? spill.firstTokenMs : null;
    const turn = { ticket: here, tries: attempts, listener, hasNext, firstTokenMs, hasOtherPlace };
    // Where it goes by members, the place that it was called at is none of theirs for certain.
    const mayGo = candidate.members !== null || attempts.mayGoTo(upstream);
    const result = mayGo ? await attemptAt(candidate, turn) : GOES_ON;
    let failure: Rejected;
    switch (result.kind) {
      case 'answered':
      case 'left':
        return result;
      case 'moved': {
        moves += 1;
        const rerouted = await reroute(candidate, ticket, result.configVersion, moves);
        if (rerouted.kind === 'rejected') return { ...rerouted, isByNewer: true };
        if (rerouted.kind !== 'planned') return rerouted;
        candidate = rerouted;
        spill = withoutClosed(await planSpill(candidate), attempts);
        here = ticketHere();
        continue;
      }
      case 'again':
        if (result.where === 'here later') await pause(attempts.pauseMs(), candidate.call.after);
        // The other members may be ejected or full for longer than the slow one needs.
        if (result.where === 'here' && result.isSlow === true) {
          here = ticketUntilNext(here, AFTER_SLOW_WAIT_MS);
        }
        if (result.where === 'here' || result.where === 'here later') continue;
        failure = unreachable(upstream.id, result.isSlow === true ? 'slow' : null);
        if (result.where === 'other place') {
          failure = closed(upstream.id);
          attempts.noteClosed(upstream);
          spill = withoutClosed(spill, attempts);
        }
        break;
      case 'rejected':
        if (mayBeOfOthers(candidate, result) && mayAskWaitable(attempts)) continue;
        if (
          !hasNext &&
          isOfMembersLeft(candidate, result) &&
          attempts.refusedMembers.forgetSlow()
        ) {
          here = ticketHere();
          continue;
        }
        failure = moves > 0 ? { ...result, isByNewer: true } : result;
        if (!mayServeElsewhere(result.reply.reason)) return lastWord(failure, attempts);
        break;
      default:
        return never(result);
    }
    const next = await nextCandidate(spill, candidate);
    if (next === null) return lastWord(failure, attempts);
    if (next.kind === 'rejected') return lastWord(next, attempts);
    if (next.kind === 'left') return next;
    candidate = next;
    here = ticketHere();
  }
}

/** Reasons for which a group rejects a call at the members that are left, while one that refused it may take it soon. */
const OF_MEMBERS_LEFT: ReadonlySet<Reason> = new Set<Reason>([
  'members_out',
  'paused',
  'upstream_limited',
  'breaker_open',
  'infeasible',
]);

/** Tells whether a group has rejected a call for what other members than those that refused it are like. */
function mayBeOfOthers({ members }: Candidate, { reply }: Rejected): boolean {
  return members !== null && OF_MEMBERS_LEFT.has(reply.reason);
}

/** Returns whether a group rejected a call because none of the remaining members accepts it. */
function isOfMembersLeft({ members }: Candidate, { reply }: Rejected): boolean {
  return members !== null && isForLackOfRoom(reply.reason);
}

function withoutClosed(plan: SpillPlan, attempts: CallAttempts): SpillPlan {
  return { ...plan, next: plan.next.filter(({ entry }) => attempts.mayGoTo(entry.upstream)) };
}

/** Reasons why a requeued call was rejected before it started again. */
const OF_QUEUE: ReadonlySet<Reason> = new Set<Reason>([
  'queue_timeout',
  'queue_full',
  'infeasible',
  'busy',
]);

/** Ends a call that was not served: with a member's refusal if no other member has room, otherwise with a rejection. */
function lastWord(
  result: Rejected,
  { sent, lastRefusal, refusalWords }: CallAttempts,
): FinalResult {
  const { reply } = result;
  if (lastRefusal !== null && isForLackOfRoom(reply.reason)) {
    traceError(lastRefusal.kind);
    return lastRefusal.answer;
  }
  const isReported = refusalWords !== null && OF_QUEUE.has(reply.reason);
  const said = isReported ? ` The upstream refused the call before: "${refusalWords}"` : '';
  return { ...result, reply: { ...reply, message: `${reply.message}${said}`, tries: sent } };
}

/**
 * Decides a call anew by a newer configuration, from who calls on: the key may be revoked, the way another one. One that
 * had spilled begins at its own upstream again. Without that version it goes nowhere.
 */
async function reroute(
  { call: before, located, spilledFrom, placements }: Candidate,
  ticket: CallTicket,
  configVersion: number,
  moves: number,
): Promise<Candidate | Rejected | CallerLeft> {
  if (moves >= MOVES_MAX) return unread();
  const untilAt = patienceOf(ticket, placements);
  const table = await tableSince(before, configVersion, untilAt);
  if (table === null) return before.signal.aborted ? LEFT : unread();
  const isNews = table !== before.table;
  // The pool and the directory do not agree, and the pool reads that once in a few seconds at the most.
  if (!isNews && moves > 1 && steadyClock.now() >= untilAt) return unread();
  if (moves > 1) await pause(isNews ? MOVE_PAUSE_MS : pauseMs(moves), before.after);
  const { request, query, body } = before;
  const identified = await identify(table, request.headers, query);
  if (identified.kind === 'rejected') return identified;
  const call = { ...before, table, caller: identified.caller };
  body.restore();
  const again = await relocate(call, spilledFrom ?? located);
  return again.kind === 'located' ? planAt(call, again) : again;
}

function pauseMs(moves: number): number {
  return Math.min(MOVE_PAUSE_MS_MAX, MOVE_PAUSE_MS * 2 ** (moves - 2));
}

function unread(): Rejected {
  const message = 'The configuration of the group could not be read. Try again in a moment.';
  return rejected({ reason: 'limiter_unavailable', message });
}

/** Tells until when a call waits at the most, as far as is known. */
function patienceOf(ticket: CallTicket, placements: readonly Placement[]): number {
  return Math.min(...placements.map((placement) => waitsUntil(ticket, placement)));
}
