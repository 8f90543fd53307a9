import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { Reason } from '../../contract/reasons.ts';
import type { Placement } from '../../routing/placement.ts';
import { pause, steadyClock } from '../../runtime/async.ts';
import { waitsUntil, type CallTicket } from '../acquire/admission.ts';
import { identify } from '../identity/authenticate.ts';
import { isForLackOfRoom } from '../answer/refused.ts';
import { mayAskWaitable } from '../attempts/where-next.ts';
import { traceError } from '../observe/trace.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { Candidate } from '../plan/plan.ts';
import {
  LEFT,
  never,
  rejected,
  closed,
  unreachable,
  type AttemptResult,
  type NotServed,
  type FinalResult,
  type CallerLeft,
  type Rejected,
} from '../results/result.ts';
import {
  isSamePlace,
  type CallAttempts,
  type CandidateAttempt,
} from '../attempts/call-attempts.ts';
import {
  mayServeElsewhere,
  nextCandidate,
  NO_SPILL,
  planSpill,
  ticketUntilNext,
  type SpillPlan,
} from './spill.ts';

/** Maximum reroutes caused by moving groups before the call fails. */
const MOVES_MAX = 20;
const MOVE_PAUSE_MS = 100;
const MOVE_PAUSE_MS_MAX = 1_000;

/** How long a call that left a slow member waits for another one before it returns to the slow one. */
const AFTER_SLOW_WAIT_MS = 1_000;

/**
 * The next step if the configuration moved a call back to its own upstream, whose address has refused the call before.
 */
const GOES_ON: NotServed = { kind: 'again', where: 'other place' };

/**
 * What one kind of call adds to the driver: a call over HTTP, a turn on a WebSocket, or a lease. `End` is the answer
 * that ends a call of this kind.
 */
export interface CallAdapter<End extends { readonly kind: 'answered' }> {
  /** Whether its calls may go to the upstreams to which their groups spill. */
  readonly spills: boolean;
  /** Latest time until which the call waits for a newer configuration. Infinity leaves that to its groups. */
  readonly untilAt: number;
  /** Plans the call again at its own upstream, by the configuration of `call`. */
  plan(call: AuthenticatedCall, before: Candidate): Promise<Candidate | Rejected | CallerLeft>;
  /** Acquires the slots of a candidate and uses them. */
  attempt(candidate: Candidate, attempt: CandidateAttempt<End>): Promise<AttemptResult<End>>;
}

/**
 * Attempts a call until an attempt answers it or it is finally rejected. It repeats an attempt if the group moved
 * during the wait, or if the upstream refused the call and waiting helps. It goes to another upstream where the
 * configuration allows that.
 */
export async function drive<End extends { readonly kind: 'answered' }>(
  first: Candidate,
  { ticket, attempts, listener }: Pick<CandidateAttempt<End>, 'ticket' | 'attempts' | 'listener'>,
  adapter: CallAdapter<End>,
): Promise<FinalResult<End>> {
  const spillOf = (from: Candidate) => (adapter.spills ? planSpill(from) : NO_SPILL);
  let spill = await spillOf(first);
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
    const turn = { ticket: here, attempts, listener, hasNext, firstTokenMs, hasOtherPlace };
    // A call with members goes to their addresses, so the upstream that it names does not matter.
    const mayGo = candidate.members !== null || attempts.mayGoTo(upstream);
    const result = mayGo ? await adapter.attempt(candidate, turn) : GOES_ON;
    let failure: Rejected;
    switch (result.kind) {
      case 'answered':
      case 'left':
        return result;
      case 'moved': {
        moves += 1;
        const rerouted = await reroute(candidate, ticket, result.configVersion, moves, adapter);
        if (rerouted.kind === 'rejected') return { ...rerouted, isByNewer: true };
        if (rerouted.kind !== 'planned') return rerouted;
        candidate = rerouted;
        spill = withoutClosed(await spillOf(candidate), attempts);
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
        if (!mayServeElsewhere(result.reply.reason)) return finalResult(failure, attempts);
        break;
      default:
        return never(result);
    }
    const next = await nextCandidate(spill, candidate);
    if (next === null) return finalResult(failure, attempts);
    if (next.kind === 'rejected') return finalResult(next, attempts);
    if (next.kind === 'left') return next;
    ({ candidate, spill } = next);
    here = ticketHere();
  }
}

/**
 * Reasons for which a group rejects a call at its remaining members, although a member that refused it may accept it
 * soon.
 */
const OF_MEMBERS_LEFT: ReadonlySet<Reason> = new Set<Reason>([
  'members_out',
  'paused',
  'upstream_limited',
  'breaker_open',
  'infeasible',
]);

/** Returns whether a group may have rejected a call because of the state of members that have not refused it. */
function mayBeOfOthers({ members }: Candidate, { reply }: Rejected): boolean {
  return members !== null && OF_MEMBERS_LEFT.has(reply.reason);
}

/** Returns whether a group rejected a call because no remaining member accepts it. */
function isOfMembersLeft({ members }: Candidate, { reply }: Rejected): boolean {
  return members !== null && isForLackOfRoom(reply.reason);
}

function withoutClosed(plan: SpillPlan, attempts: CallAttempts<unknown>): SpillPlan {
  return { ...plan, next: plan.next.filter(({ entry }) => attempts.mayGoTo(entry.upstream)) };
}

/** Reasons why a requeued call was rejected before it started again. */
const OF_QUEUE: ReadonlySet<Reason> = new Set<Reason>([
  'queue_timeout',
  'queue_full',
  'infeasible',
  'busy',
]);

/**
 * The final result of a call that was not served: a member's refusal if no other member has room, otherwise a
 * rejection.
 */
function finalResult<End>(
  result: Rejected,
  { sent, lastRefusal, refusalWords }: CallAttempts<End>,
): End | Rejected {
  const { reply } = result;
  if (lastRefusal !== null && isForLackOfRoom(reply.reason)) {
    traceError(lastRefusal.kind);
    return lastRefusal.answer;
  }
  const isReported = refusalWords !== null && OF_QUEUE.has(reply.reason);
  const earlier = isReported ? ` The upstream refused an earlier attempt: "${refusalWords}"` : '';
  return { ...result, reply: { ...reply, message: `${reply.message}${earlier}`, attempts: sent } };
}

/**
 * Decides a call again by a newer configuration, beginning with its caller, whose key may have been revoked. A call
 * that had spilled starts at its own upstream again. Without the newer version the call is rejected.
 */
async function reroute(
  before: Candidate,
  ticket: CallTicket,
  configVersion: number,
  moves: number,
  { plan, untilAt: latestAt }: Pick<CallAdapter<never>, 'plan' | 'untilAt'>,
): Promise<Candidate | Rejected | CallerLeft> {
  if (moves >= MOVES_MAX) return unreadConfig();
  const { call, placements } = before;
  const untilAt = Math.min(patienceOf(ticket, placements), latestAt);
  const table = await isolateConfig.since(call, configVersion, untilAt);
  if (table === null) return call.signal.aborted ? LEFT : unreadConfig();
  const isNews = table !== call.table;
  // The pool and the directory report different versions. The pool refreshes its own within a few seconds.
  if (!isNews && moves > 1 && steadyClock.now() >= untilAt) return unreadConfig();
  if (moves > 1) await pause(isNews ? MOVE_PAUSE_MS : pauseMs(moves), call.after);
  const known = await identifiedBy(table, call);
  return known.kind === 'rejected' ? known : plan(known, before);
}

/** The call by another configuration, with its caller there. */
export async function identifiedBy(
  table: RoutingTable,
  call: AuthenticatedCall,
): Promise<AuthenticatedCall | Rejected> {
  const identified = await identify(table, call.request.headers, call.query);
  if (identified.kind === 'rejected') return { ...identified, isOfKey: true };
  return { ...call, table, caller: identified.caller };
}

function pauseMs(moves: number): number {
  return Math.min(MOVE_PAUSE_MS_MAX, MOVE_PAUSE_MS * 2 ** (moves - 2));
}

function unreadConfig(): Rejected {
  const message = 'The configuration of the group could not be read. Try again in a moment.';
  return rejected({ reason: 'limiter_unavailable', message });
}

/** The latest time until which a call waits, as far as it is known. */
function patienceOf(ticket: CallTicket, placements: readonly Placement[]): number {
  return Math.min(...placements.map((placement) => waitsUntil(ticket, placement)));
}
