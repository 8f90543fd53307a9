import type {
  AcquireRequest,
  GiveBackRequest,
  PrefetchReport,
  ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import {
  instant,
  leaseId,
  memberId,
  ticketId,
  ticketOf,
  type InstantMs,
} from '../core/words/ids.ts';
import type { KeeperReport } from '../core/parts/prefetches.ts';
import type { Claim, OrphanedPrefetchedSlot } from '../core/orphaned.ts';
import type { Holder, Ticket } from '../core/words/ticket.ts';

/**
 * Longest transit time of an acquire call. A Worker whose clock seems to be behind by less has the same time: a busy object
 * takes seconds to read a message, and must not let its caller wait longer for it.
 */
const TRANSIT_MS_MAX = 4_000;

/**
 * Maximum by which the clock of a Worker may be ahead without its instants being converted. A clock takes no notice of
 * smaller steps back, and the caller still gets its answer before its Worker gives up, 2 s after the deadline.
 */
const AHEAD_MS_MAX = 1_000;

/**
 * Makes the core's ticket of an acquire call that came at `now`. Fields that older Workers do not send get
 * their meaning here. Where the clock of the Worker shows another time, its instants are converted.
 *
 * @param aheadMs how far the clock that `now` is by is ahead of the wall clock
 */
export function ticketFrom(request: AcquireRequest, now: InstantMs, aheadMs = 0): Ticket {
  const { deadlineAt, timeoutMs, agentStartedAt = null, parents = [] } = request;
  const skewMs = skewOf(request, now, aheadMs);
  const byOurs = (at: number): InstantMs => instant(at - skewMs);
  return {
    id: ticketId(request.ticketId),
    holder: holderOf(request),
    lane: request.lane ?? 'normal',
    slots: request.slots ?? 1,
    enqueuedAt: byOurs(request.enqueuedAt),
    agentStartedAt: agentStartedAt === null ? null : byOurs(agentStartedAt),
    deadlineAt: deadlineAt === null ? null : byOurs(deadlineAt),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    wait: request.wait,
    isTry: request.isTry ?? false,
    waitsElsewhere: request.waitsElsewhere ?? false,
    ...(request.needs !== undefined && { needs: request.needs }),
    ...(request.hadTurn === true && { hadTurn: true }),
    parents: parents.map(leaseId),
    estimate: request.estimate ?? null,
    mayBorrow: request.mayBorrow ?? false,
    excluded: (request.excluded ?? []).map(memberId),
    excludedForNow: (request.excludedForNow ?? []).map(memberId),
    isById: request.byId ?? false,
    ...(request.mayNameSession === true && { mayNameSession: true }),
  };
}

/**
 * Computes how far the clock of a Worker is ahead of the object's. Both go by the wall clock, each as far ahead of it as it
 * has noticed steps back. What `sentAt` differs beyond that is the transit time, unless it is more than that can be.
 */
function skewOf(
  { sentAt, clockAheadMs = 0 }: AcquireRequest,
  now: InstantMs,
  aheadMs: number,
): number {
  if (sentAt === undefined) return 0;
  const skewMs = clockAheadMs - aheadMs;
  const restMs = sentAt - now - skewMs;
  return restMs < -TRANSIT_MS_MAX || restMs > AHEAD_MS_MAX ? sentAt - now : skewMs;
}

/**
 * Converts the expiry of a lease to the clock of its holder, which sent `sentAt`. Nothing is later by it than it is: what
 * the message took in transit counts as time that has passed.
 */
export function expiryBy(
  sentAt: number | undefined,
  arrivedAt: InstantMs,
  expiresAt: number,
): number {
  return sentAt === undefined ? expiresAt : sentAt + expiresAt - arrivedAt;
}

/** Makes the core's claim of what a holder tells of its lease. */
export function claimFrom(request: ResumeRequest): Claim {
  const { nested, lent: prefetched, slots = 1, lane = 'normal' } = request;
  return {
    leaseId: leaseId(request.leaseId),
    ticketId: ticketId(request.ticketId),
    holder: holderOf(request),
    lane,
    slots,
    attachment: request.attachment ?? null,
    hasLapsed: request.hasLapsed ?? false,
    heirOf: (request.heirOf ?? []).map(leaseId),
    heldMs: request.heldMs ?? 0,
    nested: nested === undefined ? null : { in: leaseId(nested.in), slots: nested.slots },
    reserved: request.reserved ?? null,
    isById: request.byId ?? false,
    ...(request.member === undefined ? {} : { member: memberId(request.member) }),
    ...(prefetched === undefined ? {} : { lent: lentFrom(prefetched) }),
  };
}

function lentFrom({
  loan,
  slot,
  told,
}: NonNullable<ResumeRequest['lent']>): OrphanedPrefetchedSlot {
  const of = { loan: leaseId(loan), slot: leaseId(slot) };
  return told === undefined ? of : { ...of, told: toldFrom(told) };
}

/** Makes what the core notes of a loan. */
export function toldFrom({ known, used, peak, ended }: PrefetchReport): KeeperReport {
  return {
    known,
    used,
    peak,
    ended: ended.map(({ last, lane = 'normal', tenant, ...calls }) => ({
      ...calls,
      tenant: tenant ?? calls.caller,
      lane,
      last: last.map(([id, beganMs, endedMs, requestId]) => ({
        leaseId: leaseId(id),
        beganMs,
        endedMs,
        ...(requestId === undefined ? {} : { requestId }),
      })),
    })),
  };
}

/** Makes the claims of lent slots that are given back. Nobody holds them any more. */
export function claimsFrom({ slots, hasLapsed }: GiveBackRequest): Claim[] {
  const nobody = { caller: '', tenant: '', agent: null, upstream: '', model: null };
  return slots.map(({ slot, attachment }) => {
    const id = leaseId(slot);
    const of = { leaseId: id, ticketId: ticketOf(id), holder: nobody, lane: 'normal' as const };
    const none = { nested: null, heirOf: [], reserved: null };
    return { ...of, ...none, slots: 1, attachment, hasLapsed, heldMs: 0 };
  });
}

/** Maximum length of the hash of a session. Workers send half of it. */
const SESSION_LENGTH_MAX = 64;

/** Names the holder that an acquire call, or one that takes its lease up again, speaks for. */
function holderOf(from: AcquireRequest | ResumeRequest): Holder {
  const { caller, tenant = caller, agent, upstream, model, isolate, kind } = from;
  const { tier, credential, session, isUnread = false } = from;
  return {
    caller,
    tenant,
    agent,
    upstream,
    model,
    ...(isolate === undefined ? {} : { isolate }),
    ...(kind === undefined ? {} : { kind }),
    ...(tier === undefined ? {} : { tier }),
    ...(credential === undefined ? {} : { credential }),
    ...(session === undefined ? {} : { session: session.slice(0, SESSION_LENGTH_MAX) }),
    ...(isUnread && { isUnread }),
  };
}
