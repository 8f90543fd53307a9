import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { RateRoom } from '../../core/parts/rates.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { leaseOf } from '../../routing/held-lease.ts';
import type { Placement } from '../../routing/placement.ts';
import { steadyClock, within } from '../../runtime/async.ts';
import { waitsUntil, type CallTicket } from '../acquire/admission.ts';
import { cancelTicket } from '../acquire/admit-one.ts';
import { slotRequest, type AdmitContext } from '../acquire/slot-request.ts';
import { billedOf } from '../acquire/admit.ts';
import {
  askGroups,
  ratesToReport,
  type AcquireOptions,
  type AllSlots,
  type DeclinedByGroup,
  type GroupSlot,
} from '../acquire/ask-groups.ts';
import { giveBackBypasses, type SlotEnd, type SlotRequest } from '../acquire/acquire-slot.ts';
import { returnSlot, type Full } from '../acquire/held-slots.ts';
import type { GrantedAnswer } from '../acquire/open-calls.ts';
import { poolSource, poolSourceOfHeld } from '../acquire/pools.ts';
import { capped, overloaded, replyTo, unavailable } from '../acquire/rejections.ts';
import {
  rejected,
  type Waited,
  type CallerLeft,
  type Moved,
  type Rejected,
} from '../results/result.ts';
import type { CallAttempts } from '../attempts/call-attempts.ts';
import { excludedMembers } from '../attempts/where-next.ts';
import type { Metering } from '../plan/metering.ts';
import { noteRejection } from '../observe/analytics.ts';
import type { Candidate } from '../plan/plan.ts';
import { askById, type ParkedById } from './ask-by-id.ts';
import { holdExceeded } from './lease-call.ts';
import { poolOfToken, type PoolAt, type PoolHold } from './lease-token.ts';

/** Time limit of a message that nothing depends on. */
const LOST_MS = 5_000;

interface PlacedLease extends GroupSlot {
  readonly granted: GrantedAnswer;
  readonly request: SlotRequest;
}

export interface LeaseAdmissionRequest {
  readonly plan: Candidate;
  /** null if none of its groups counts tokens or cost. */
  readonly metering: Metering | null;
  readonly ticket: CallTicket;
  readonly attempts: CallAttempts<unknown>;
  /** Latest time at which its request must be answered. */
  readonly parkUntil: number;
  /** Its caller can ask for it again, so it keeps its queue position when the caller leaves. */
  readonly isKept: boolean;
  /** Checks after the grant whether the caller may still have the slots. null if it may. */
  refusedNow(placements: readonly Placement[]): Promise<Rejected | null>;
}

export type LeaseAdmitted =
  | {
      readonly kind: 'admitted';
      readonly holds: readonly PoolHold[];
      readonly member: string | null;
      /** When it was granted in all its groups. Earlier than now if the request is repeated. */
      readonly grantedAt: number;
      readonly rates: readonly RateRoom[];
      /** The wait of its last request. null if it did not wait. */
      readonly waited: Waited | null;
    }
  | ParkedIn
  | Rejected
  | Moved
  | CallerLeft;

/**
 * Acquires the slots of a lease in every group. It waits like a call. When its request ends, its slots are released and
 * its position in the queue where it waits is kept.
 */
export async function admitLease(ask: LeaseAdmissionRequest): Promise<LeaseAdmitted> {
  const { plan, ticket } = ask;
  const all = await askGroups<PlacedLease, ParkedIn | Moved | CallerLeft>(
    plan.routed,
    ticket,
    plan.placements,
    {
      what: 'lease',
      call: plan.call,
      ask: (placement, manner, placements) => takeOne(ask, placement, manner, placements),
      giveBack: (slot, full) => giveBack(slot, full, ask),
      // The group holds it for the time that its request may take.
      keep: () => {},
      confirm: () => {},
    },
  );
  return all.kind === 'all' ? finished(all, ask) : all;
}

/** Returns a lease that has all its slots, after a last check that its caller may have them. */
async function finished(
  { slots: held, waited }: AllSlots<PlacedLease>,
  ask: LeaseAdmissionRequest,
): Promise<LeaseAdmitted> {
  const refused = await ask.refusedNow(held.map(({ placement }) => placement));
  if (refused !== null) {
    endAll(held, 'unused', ask);
    return refused;
  }
  // A repeated request renews its lease, and must not prolong it beyond the maximum.
  const { maxHoldMs } = ask.plan.rules.hold;
  const now = steadyClock.now();
  const grantedAt = Math.max(...held.map(({ granted }) => granted.grantedAt ?? now));
  if (grantedAt + maxHoldMs <= now) {
    endAll(held, 'cancelled', ask);
    return holdExceeded(maxHoldMs);
  }
  const { ctx } = ask.plan.call;
  const isSole = held.length === 1;
  for (const { granted } of held) {
    ctx.waitUntil(letGo(granted, isSole ? null : granted.lease.confirm(), ask));
  }
  return admitted(held, grantedAt, waited, ask);
}

type ParkedIn = ParkedById & { readonly group: string; readonly pools: readonly PoolAt[] };

async function takeOne(
  ask: LeaseAdmissionRequest,
  placement: Placement,
  manner: AcquireOptions,
  all: readonly Placement[],
): Promise<PlacedLease | DeclinedByGroup | ParkedIn | Rejected | Moved | CallerLeft> {
  const { plan, ticket, parkUntil } = ask;
  const { call, routed } = plan;
  const { env, table, ctx, signal, after } = call;
  const context = contextOf(ask, all);
  const isByMembers = plan.members?.group === placement.group;
  const unpriced = isByMembers ? null : (context.metering?.rejectUnpriced(placement) ?? null);
  if (unpriced !== null) return rejected({ ...unpriced, about: { group: placement.group } });
  const pool = poolSource(env, placement, table);
  const request = slotRequest(routed, ticket, placement, manner, context);
  const sentAt = steadyClock.now();
  const until = waitsUntil(ticket, placement);
  const answer = await askById(pool, request, { signal, after, until, parkUntil });
  const waitedFor = (reason: WaitReason | undefined): Waited | null => {
    const ms = steadyClock.now() - sentAt;
    return reason === undefined ? null : { group: placement.group, reason, ms };
  };
  const refused = (
    reply: ErrorReply,
    { rates = [], waitedFor: reason }: Pick<RejectedSlot, 'rates' | 'waitedFor'> = {},
  ): Rejected => {
    const { holder, lane } = request.ticket;
    const of = { group: placement.group, holder, lane };
    noteRejection(env, of, reply.reason, steadyClock.now() - sentAt);
    const about = { group: placement.group };
    return { ...rejected({ ...reply, about }), rates, waited: waitedFor(reason) };
  };
  switch (answer.kind) {
    case 'granted': {
      const { granted } = answer;
      const { endGapMs = 0, rates = [] } = granted;
      const waited = waitedFor(granted.waitedFor);
      return { kind: 'admitted', placement, granted, request, endGapMs, rates, waited };
    }
    case 'gone':
      return refused(gone());
    case 'rejected':
      return refused(replyTo(answer.rejection, placement), answer);
    case 'declined':
      return { kind: 'declined', placement, waitMs: answer.waitMs ?? Infinity };
    case 'left':
      // A request that can be repeated keeps its position for a moment without a parked call.
      ctx.waitUntil(
        ask.isKept
          ? ignoringFailure(pool().acquire({ ...request, sliceMs: 0, mayAskLater: true }), ask)
          : cancelTicket(pool, manner.ticketId),
      );
      return answer;
    case 'parked':
      return { ...answer, group: placement.group, pools: all.map(poolAt) };
    case 'moved':
      return answer;
    case 'unread':
      return refused(unavailable(placement));
    case 'capped':
    case 'overloaded':
    case 'unavailable':
      giveBackBypasses(poolName(placement.group, placement.partition), request.passedUnlimited);
      return refused(REPLIES[answer.kind](placement));
  }
}

type RejectedSlot = Extract<SlotEnd, { kind: 'rejected' }>;

const REPLIES = { capped, overloaded, unavailable };

function contextOf(
  { plan, metering, attempts }: LeaseAdmissionRequest,
  all: readonly Placement[],
): Pick<AdmitContext, 'table' | 'metering' | 'members' | 'billed' | 'team' | 'names'> {
  const { call, members } = plan;
  return {
    table: call.table,
    // A lease has no body. Its request contains all names.
    names: null,
    metering:
      members === null ? metering : (metering?.beforeGrant(members.places.values()) ?? null),
    members:
      members === null ? null : { group: members.group, ...excludedMembers(members, attempts) },
    billed: metering === null ? null : billedOf(all),
    team: call.caller.key?.team ?? null,
  };
}

function admitted(
  held: readonly PlacedLease[],
  grantedAt: number,
  waited: Waited | null,
  { plan: { members } }: LeaseAdmissionRequest,
): LeaseAdmitted {
  const granting = held.find(({ placement }) => placement.group === members?.group);
  const member = granting?.granted.member ?? null;
  const rates = ratesToReport(held);
  return { kind: 'admitted', holds: held.map(holdOf), member, grantedAt, rates, waited };
}

function holdOf({ placement, granted, request }: PlacedLease): PoolHold {
  const { expiresAt = 0, wantsServed } = granted;
  return {
    lease: leaseOf(request, granted),
    jurisdiction: jurisdictionOf(placement),
    // Every grant of a lease that is held by its id has it.
    expiresAt,
    ...(placement.isOfProvider && { isOfProvider: true }),
    ...(wantsServed === true && { wantsServed }),
  };
}

function poolAt(placement: Placement): PoolAt {
  return poolOfToken(placement, jurisdictionOf(placement));
}

function jurisdictionOf({ config }: Placement): PoolAt['jurisdiction'] {
  return config?.jurisdiction ?? null;
}

/**
 * Returns a lease that was held only during the wait. Its group keeps a lease that another request of the ticket also
 * has, and counts the ticket's attempts itself. If each request counted, each would get its own lease.
 */
function giveBack({ granted }: PlacedLease, full: Full | null, ask: LeaseAdmissionRequest): void {
  const { lease } = granted;
  const last = returnSlot(lease, full, () => lease.release('unused', null));
  ask.plan.call.ctx.waitUntil(letGo(granted, last, ask));
}

/** Ends all grants, also those of identical requests. They have the same caller, which may not have the lease. */
function endAll(
  held: readonly PlacedLease[],
  outcome: LeaseOutcome,
  ask: LeaseAdmissionRequest,
): void {
  const { env, table, ctx } = ask.plan.call;
  for (const { placement, granted } of held) {
    const pool = poolSourceOfHeld(env, placement, table);
    ctx.waitUntil(letGo(granted, pool().release(granted.leaseId, outcome, null), ask));
  }
}

/** Disposes of a stub after its last message. The lease is held by its id. */
async function letGo(
  { lease }: GrantedAnswer,
  last: Promise<unknown> | null,
  ask: LeaseAdmissionRequest,
): Promise<void> {
  if (last !== null) await ignoringFailure(last, ask);
  lease[Symbol.dispose]();
}

/** Waits for a message whose failure does not matter, because its lease ends by its TTL. */
async function ignoringFailure(
  message: Promise<unknown>,
  { plan }: LeaseAdmissionRequest,
): Promise<void> {
  try {
    await within(LOST_MS, message, plan.call.after);
  } catch {
    // The message is lost.
  }
}

function gone(): ErrorReply {
  const message =
    'The requested lease has ended. Request another one with a new `idempotency-key`, and without the ticket.';
  return { reason: 'lease_gone', message };
}
