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
 * Maximum transit time of an acquire call. A Worker whose clock seems to be behind by less counts as synchronous: a
 * busy object takes seconds to read a message, and that time must not extend the caller's wait.
 */
const TRANSIT_MS_MAX = 4_000;

/**
 * Maximum by which a Worker's clock may be ahead without its times being converted. Clocks ignore smaller steps back,
 * and the caller still receives its answer before its Worker gives up, 2 s after the deadline.
 */
const AHEAD_MS_MAX = 1_000;

/**
 * Builds the core's ticket from an acquire call that arrived at `now`. If the Worker's clock differs, its times are
 * converted.
 *
 * @param aheadMs how far the clock of `now` is ahead of the wall clock
 */
export function ticketFrom(request: AcquireRequest, now: InstantMs, aheadMs = 0): Ticket {
  const { deadlineAt, timeoutMs, agentStartedAt, parents } = request;
  const skewMs = skewOf(request, now, aheadMs);
  const byOurs = (at: number): InstantMs => instant(at - skewMs);
  return {
    id: ticketId(request.ticketId),
    holder: holderOf(request),
    lane: request.lane,
    slots: request.slots,
    enqueuedAt: byOurs(request.enqueuedAt),
    agentStartedAt: agentStartedAt === null ? null : byOurs(agentStartedAt),
    deadlineAt: deadlineAt === null ? null : byOurs(deadlineAt),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    wait: request.wait,
    isTry: request.isTry,
    waitsElsewhere: request.waitsElsewhere,
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
 * Returns how far a Worker's clock is ahead of the object's. Both follow the wall clock and are ahead of it by the
 * steps back that each has noticed. Any further difference of `sentAt` is transit time, unless it exceeds the maximum.
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
 * Converts the expiry of a lease to the clock of its holder, which sent `sentAt`. The result is never later than the
 * expiry, because the transit time counts as elapsed.
 */
export function expiryBy(
  sentAt: number | undefined,
  arrivedAt: InstantMs,
  expiresAt: number,
): number {
  return sentAt === undefined ? expiresAt : sentAt + expiresAt - arrivedAt;
}

export function claimFrom(request: ResumeRequest): Claim {
  const { nested, lent: prefetched, slots, lane } = request;
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

export function toldFrom({ known, used, peak, ended }: PrefetchReport): KeeperReport {
  return {
    known,
    used,
    peak,
    ended: ended.map(({ last, ...calls }) => ({
      ...calls,
      last: last.map(([id, beganMs, endedMs, requestId]) => ({
        leaseId: leaseId(id),
        beganMs,
        endedMs,
        ...(requestId === undefined ? {} : { requestId }),
      })),
    })),
  };
}

/** Builds the claims of returned prefetched slots, which have no holder any more. */
export function claimsFrom({ slots, hasLapsed }: GiveBackRequest): Claim[] {
  const noHolder = { caller: '', tenant: '', agent: null, upstream: '', model: null };
  return slots.map(({ slot, attachment }) => {
    const id = leaseId(slot);
    const of = { leaseId: id, ticketId: ticketOf(id), holder: noHolder, lane: 'normal' as const };
    const none = { nested: null, heirOf: [], reserved: null };
    return { ...of, ...none, slots: 1, attachment, hasLapsed, heldMs: 0 };
  });
}

/** Maximum length of a session's hash. Workers send half of it. */
const SESSION_LENGTH_MAX = 64;

function holderOf(from: AcquireRequest | ResumeRequest): Holder {
  const { caller, tenant, agent, upstream, model, isolate, kind } = from;
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
