import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { steadyClock, within } from '../../runtime/async.ts';
import type { Placement, RoutedCall } from '../../routing/placement.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import { leaseIdOf, ticketId as ticketIdOf } from '../../core/words/ids.ts';
import { waitsUntil, type GrantedMember, type CallTicket } from './admission.ts';
import {
  rejected,
  type Settle,
  type CallerLeft,
  type Moved,
  type Rejected,
  type Waited,
} from '../results/result.ts';
import { noteEnd, noteRejection } from '../observe/analytics.ts';
import {
  acquireSlot,
  bypass,
  giveBackBypasses,
  mayBypass,
  type Bypass,
  type SlotRequest,
} from './acquire-slot.ts';
import { isolateId } from '../../runtime/deployment.ts';
import { laneOf } from '../../routing/placed-call.ts';
import { noteByNames, wentByNames, noteBySessions, wentBySessions } from '../plan/call-names.ts';
import { LeaseHolder, type CallLease, type LeaseEnd } from './lease-holder.ts';
import {
  PrefetchedLease,
  takeInPrefetched,
  takePrefetchedSlot,
  type PrefetchContext,
} from './prefetched-slots.ts';
import { changedSince } from '../request/call.ts';
import { isUnverified, poolSource, type PoolSource } from './pools.ts';
import { capped, overloaded, replyTo, unavailable } from './rejections.ts';
import type { AcquireOptions, DeclinedByGroup, GroupSlot } from './ask-groups.ts';
import { holderOf, slotRequest, type AdmitContext } from './slot-request.ts';

const CANCEL_LOST_MS = 3_000;

interface Leased {
  readonly kind: 'leased';
  readonly lease: CallLease;
  /** null if the group has not granted it at a member. */
  readonly member: GrantedMember | null;
}

/** A slot of a call in one group, or the permission to run without one. */
export interface AdmittedSlot extends GroupSlot {
  readonly by: Leased | Bypass;
}

type AdmittedOne = AdmittedSlot | DeclinedByGroup | Rejected | Moved | CallerLeft;

export async function endSlot(
  { placement, by }: AdmittedSlot,
  outcome: LeaseOutcome,
  settle?: Settle,
): Promise<void> {
  switch (by.kind) {
    case 'leased':
      return by.lease.release(outcome, settle?.(placement));
    case 'bypass':
      return by.end();
  }
}

/** Asks one group for the slots of a call. It waits unless `isTry` is set. */
export async function admitOne(
  call: RoutedCall,
  ticket: CallTicket,
  placement: Placement,
  manner: AcquireOptions,
  context: AdmitContext,
): Promise<AdmittedOne> {
  const { env, table, signal, ctx, after, listener, metering, members, names, session } = context;
  const pool = poolSource(env, placement, table);
  const name = poolName(placement.group, placement.partition);
  if (names?.isUnread === true && wentByNames(name)) {
    const ended = await names.read();
    if (ended !== null) return ended;
  }
  const byMembers = members?.group === placement.group ? members : null;
  // Members without a known price are excluded, so only the tier is checked for them.
  const unpriced =
    (byMembers === null ? metering?.rejectUnpriced(placement) : metering?.rejectTier(placement)) ??
    null;
  if (unpriced !== null) {
    const about = { group: placement.group };
    return (await changedSince({ table, env, ctx })) ?? rejected({ ...unpriced, about });
  }
  const access =
    byMembers === null && mayRunOnPrefetched(ticket, placement, manner, context)
      ? { name, pool, ctx, after }
      : null;
  const onPrefetched =
    access === null ? null : runOnPrefetched(access, call, ticket, placement, manner, context);
  if (onPrefetched !== null) {
    const by = { kind: 'leased', lease: onPrefetched, member: null } as const;
    return { kind: 'admitted', placement, by, endGapMs: 0, waited: null, rates: [] };
  }
  if (session?.isUnread === true && !manner.isTry && wentBySessions(name)) {
    const ended = await session.read();
    if (ended !== null) return ended;
  }
  const isolate = access === null ? null : isolateId();
  const request = slotRequest(call, ticket, placement, manner, context, isolate);
  const { holder, lane } = request.ticket;
  const byNewest = () => bypassByNewest(placement, { table, env, ctx });
  const sentAt = steadyClock.now();
  const acquired = await acquireSlot(pool, request, {
    signal,
    after,
    listener,
    until: waitsUntil(ticket, placement),
    bypass: async () => (mayBypass(placement) ? byNewest() : null),
  });
  const endedAt = steadyClock.now();
  const waitedMs = endedAt - sentAt;
  const waitedFor = (reason: WaitReason | undefined): Waited | null =>
    reason === undefined ? null : { group: placement.group, reason, ms: waitedMs };
  const rejectedAs = (reply: ErrorReply): Rejected => {
    noteRejection(env, { group: placement.group, holder, lane }, reply.reason, waitedMs);
    return rejected({ ...reply, about: { group: placement.group } });
  };
  const cancel = (): void => {
    ticket.rounds.noteCancelled();
    ctx.waitUntil(cancelTicket(pool, manner.ticketId));
  };
  switch (acquired.kind) {
    case 'granted': {
      const { lent: slots, member: id, configVersion } = acquired.granted;
      const { rates = [], endGapMs = 0, waitedFor: reason } = acquired.granted;
      if (access !== null && slots !== undefined) {
        takeInPrefetched(access, slots, request.configVersion, sentAt);
      }
      const of = { group: placement.group, holder, lane, ...(id !== undefined && { member: id }) };
      const lease = new LeaseHolder(pool, request, acquired.granted, ctx, after, (end) =>
        noteEnd(env, of, { ...end, waitedMs, heldMs: steadyClock.now() - endedAt }),
      );
      if (acquired.late.length > 0) ctx.waitUntil(lease.adoptLate(acquired.late));
      const member = id === undefined || byMembers === null ? null : { id, configVersion };
      const by = { kind: 'leased', lease, member } as const;
      return { kind: 'admitted', placement, by, endGapMs, waited: waitedFor(reason), rates };
    }
    case 'rejected':
      return {
        ...rejectedAs(replyTo(acquired.rejection, placement)),
        rates: acquired.rates ?? [],
        waited: waitedFor(acquired.waitedFor),
      };
    case 'declined':
      return { kind: 'declined', placement, waitMs: acquired.waitMs ?? Infinity };
    case 'moved':
      return acquired;
    case 'unread': {
      const isOfSession = acquired.of === 'session';
      if (isOfSession) noteBySessions(name);
      else noteByNames(name);
      const ended = (await (isOfSession ? session : names)?.read()) ?? null;
      return ended ?? admitOne(call, ticket, placement, manner, context);
    }
    case 'left':
      cancel();
      return acquired;
    case 'overloaded':
      giveBackBypasses(name, request.passedUnlimited);
      if (acquired.mayBeKnown) cancel();
      // A non-waiting attempt must not keep slots of other groups for one that does not answer.
      if (manner.isTry) return { kind: 'declined', placement, waitMs: Infinity };
      return rejectedAs(overloaded(placement));
    case 'capped':
      giveBackBypasses(name, request.passedUnlimited);
      return rejectedAs(capped(placement));
    case 'bypassed':
    case 'unavailable': {
      giveBackBypasses(name, request.passedUnlimited);
      cancel();
      const by = acquired.kind === 'bypassed' ? acquired.by : await byNewest();
      if (by === null) return rejectedAs(unavailable(placement));
      if (by.kind === 'moved') return by;
      return { kind: 'admitted', placement, by, endGapMs: null, waited: null, rates: [] };
    }
  }
}

/**
 * Returns whether a call may run on a prefetched slot. It must take one slot of one group in its first attempt, and no
 * reservation may be needed.
 */
function mayRunOnPrefetched(
  { slots, parents, kind }: CallTicket,
  placement: Placement,
  { attempt, needs }: AcquireOptions,
  { env, metering }: Pick<AdmitContext, 'env' | 'metering'>,
): boolean {
  if (needs !== undefined || attempt > 1) return false;
  // Prefetched slots are for short holds.
  if (placement.isUnproved === true || kind !== undefined) return false;
  return slots === 1 && parents.length === 0 && metering === null && !isUnverified(env, placement);
}

/** Starts a call on a prefetched slot of its pool. null if there is none for it. */
function runOnPrefetched(
  access: PrefetchContext,
  call: RoutedCall,
  ticket: CallTicket,
  placement: Placement,
  manner: AcquireOptions,
  context: AdmitContext,
): PrefetchedLease | null {
  const { env, table } = context;
  const prefetched = takePrefetchedSlot(access, table);
  if (prefetched === null) return null;
  const { group } = placement;
  const leaseId = leaseIdOf(ticketIdOf(manner.ticketId), manner.attempt);
  const holder = holderOf(call, ticket, placement, context.names);
  const known = { group, leaseId, holder, lane: laneOf(ticket, placement) };
  // Most calls run on prefetched slots and end before they are reported, so the request for a slot is built only on
  // demand.
  const asked = (): SlotRequest => {
    const request = slotRequest(call, ticket, placement, manner, context);
    giveBackBypasses(access.name, request.passedUnlimited);
    return request;
  };
  const beganAt = steadyClock.now();
  const onEnd = (end: LeaseEnd): void =>
    noteEnd(env, known, { ...end, waitedMs: 0, heldMs: steadyClock.now() - beganAt });
  return new PrefetchedLease({ ...prefetched, access, known, asked, onEnd });
}

/**
 * Lets a call bypass its group if its configuration is still in force. The directory is asked, because the pool cannot
 * report that.
 */
async function bypassByNewest(
  placement: Placement,
  context: Pick<AdmitContext, 'table' | 'env' | 'ctx'>,
): Promise<Bypass | Moved | null> {
  const changed = await changedSince(context);
  if (changed === null) return bypass(placement);
  return changed.kind === 'moved' ? changed : null;
}

/** Cancels the ticket if the object can be reached. Otherwise the ticket expires. */
export async function cancelTicket(pool: PoolSource, ticketId: string): Promise<void> {
  try {
    await within(CANCEL_LOST_MS, pool().cancel(ticketId));
  } catch {
    // A waiter expires if it does not poll, and a lease expires without renewals.
  }
}
