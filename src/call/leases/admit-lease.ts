import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { RateRoom } from '../../core/parts/rate-room.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { GROUPS_PER_CALL_MAX, onSaturatedAt, type Placement } from '../../routing/placement.ts';
import { KEY_PREFIX } from '../../routing/key-groups.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { within } from '../../runtime/within.ts';
import { waitsUntil, type CallTicket } from '../acquire/admission.ts';
import {
  slotRequest,
  cancelTicket,
  type AdmitContext,
  type AcquireOptions,
} from '../acquire/admit-one.ts';
import { billedOf } from '../acquire/admit.ts';
import { giveBackBypasses } from '../acquire/bypasses.ts';
import { HeldSlots, longestOf, othersOf, type Full } from '../acquire/held-slots.ts';
import type { GrantedAnswer } from '../acquire/open-calls.ts';
import { isUnverified, poolSource, poolSourceOfHeld } from '../acquire/pools.ts';
import type { Round } from '../acquire/rounds.ts';
import { capped, overloaded, replyTo, unavailable } from '../acquire/rejections.ts';
import type { CallAttempts } from '../attempts/call-attempts.ts';
import { excludedMembers } from '../attempts/where-next.ts';
import { ownOrShared } from '../acquire/shared-partition.ts';
import type { SlotEnd, SlotRequest } from '../acquire/slot-wait.ts';
import { longerWait, type Waited } from '../acquire/waited.ts';
import { noteRejection } from '../observe/analytics.ts';
import { LEFT, rejected, type CallerLeft, type Moved, type Rejected } from '../result.ts';
import { askById, type ParkedById } from './ask-by-id.ts';
import type { PoolAt, PoolHold } from './lease-token.ts';
import type { Metering } from '../metering.ts';
import type { Candidate } from '../plan.ts';

/** Time limit of a message that nothing depends on. */
const LOST_MS = 5_000;

interface PlacedLease {
  readonly placement: Placement;
  readonly granted: GrantedAnswer;
  readonly request: SlotRequest;
  readonly endGapMs: number;
  readonly waited: Waited | null;
}

export interface LeaseAdmissionRequest {
  readonly plan: Candidate;
  /** null if none of its groups counts tokens or cost. */
  readonly metering: Metering | null;
  readonly ticket: CallTicket;
  readonly ticketId: string;
  readonly attempt: number;
  readonly tries: CallAttempts<unknown>;
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
      readonly rates: readonly RateRoom[];
      /** The wait of its last request. null if it did not wait. */
      readonly waited: Waited | null;
    }
  | (ParkedIn & { readonly pools: readonly PoolAt[] })
  | Rejected
  | Moved
  | CallerLeft;

/**
 * Acquires the slots of a lease in every group. It waits like a call: where the expected wait is longest, and with its
 * slots of other groups only for a short wait. When its request ends, its slots are released and its position in that
 * queue is kept.
 */
export async function admitLease(ask: LeaseAdmissionRequest): Promise<LeaseAdmitted> {
  const placements = await placesOf(ask.plan);
  if (placements.length > GROUPS_PER_CALL_MAX) return rejected(tooMany(placements));
  const [sole, ...others] = placements;
  const taken =
    sole === undefined || others.length > 0
      ? await takeInAll(ask, placements)
      : await takeOne(ask, sole, { isTry: false, waitsElsewhere: false }, placements);
  if ('granted' in taken) return finished([taken], ask, placements);
  if (taken.kind === 'all') return finished(taken.slots, ask, placements);
  if (taken.kind === 'parked') return { ...taken, pools: placements.map(poolAt) };
  return taken.kind === 'declined' ? LEFT : taken;
}

/** The pools of a lease. A partition of a group with too many may share one. */
function placesOf({ call: { env, table }, placements }: Candidate): Promise<Placement[]> {
  return Promise.all(
    placements.map(async (one) => (isUnverified(env, one) ? one : ownOrShared(env, table, one))),
  );
}

type TakenLeases =
  | { readonly kind: 'all'; readonly slots: readonly PlacedLease[] }
  | Exclude<TakenLease, PlacedLease | DeclinedLease>;

async function takeInAll(
  ask: LeaseAdmissionRequest,
  placements: readonly Placement[],
): Promise<TakenLeases> {
  const held = new HeldSlots<PlacedLease>(ask.plan.call.after, (slot, full) =>
    giveBack(slot, full, ask),
  );
  for (;;) {
    const missing = placements.filter((placement) => !held.has(placement));
    const mayWait = ask.ticket.maxWaitMs !== 0;
    const attempts = await Promise.all(
      missing.map((placement) => {
        const isTry = mayWait && onSaturatedAt(placement) !== 'reject';
        const needs = othersOf(missing, placement);
        const hadTurn = held.hadTurn(placement);
        const manner = { isTry, waitsElsewhere: true, needs, hadTurn };
        return takeOne(ask, placement, manner, placements);
      }),
    );
    const granted = attempts.filter((one) => 'granted' in one);
    if (granted.length === missing.length) {
      const all = new Map([...held.all, ...granted].map((slot) => [slot.placement, slot]));
      return { kind: 'all', slots: placements.flatMap((placement) => all.get(placement) ?? []) };
    }
    for (const slot of granted) giveBack(slot, null, ask);
    const declined: DeclinedLease[] = [];
    for (const one of attempts) {
      if ('granted' in one) continue;
      if (one.kind !== 'declined') {
        held.end();
        return one;
      }
      declined.push(one);
    }
    const { placement, waitMs } = longestOf(declined);
    held.limit(placement, waitMs);
    const needs = othersOf(missing, placement);
    const hadTurn = held.hadTurn(placement);
    const manner = { isTry: false, waitsElsewhere: true, needs, hadTurn };
    const one = await takeOne(ask, placement, manner, placements);
    if ('granted' in one) held.add(one);
    else if (one.kind !== 'declined') {
      held.end();
      return one;
    }
  }
}

/** Returns a lease that has all its slots, after a last check that its caller may have them. */
async function finished(
  held: readonly PlacedLease[],
  ask: LeaseAdmissionRequest,
  placements: readonly Placement[],
): Promise<LeaseAdmitted> {
  const refused = await ask.refusedNow(placements);
  if (refused !== null) {
    endAll(held, ask);
    return refused;
  }
  const { ctx } = ask.plan.call;
  const isSole = held.length === 1;
  for (const { granted } of held) {
    ctx.waitUntil(letGo(granted, isSole ? null : granted.lease.confirm(), ask));
  }
  return admitted(held, ask);
}

/** Not now, with the expected wait in milliseconds. Infinity if it cannot be estimated. */
interface DeclinedLease {
  readonly kind: 'declined';
  readonly placement: Placement;
  readonly waitMs: number;
}

type ParkedIn = ParkedById & { readonly group: string };

type TakenLease = PlacedLease | ParkedIn | Rejected | Moved | CallerLeft | DeclinedLease;

async function takeOne(
  ask: LeaseAdmissionRequest,
  placement: Placement,
  how: Omit<AcquireOptions, keyof Round>,
  all: readonly Placement[],
): Promise<TakenLease> {
  const { plan, ticket, ticketId, attempt, parkUntil } = ask;
  const manner: AcquireOptions = { ticketId, attempt, ...how };
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
    noteRejection(env, request, reply.reason, steadyClock.now() - sentAt);
    const about = { group: placement.group };
    return { ...rejected({ ...reply, about }), rates, waited: waitedFor(reason) };
  };
  switch (answer.kind) {
    case 'granted': {
      const { granted } = answer;
      const { endGapMs = 0 } = granted;
      return { placement, granted, request, endGapMs, waited: waitedFor(granted.waitedFor) };
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
      return { ...answer, group: placement.group };
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
  { plan, metering, tries }: LeaseAdmissionRequest,
  all: readonly Placement[],
): Pick<AdmitContext, 'table' | 'metering' | 'members' | 'billed' | 'team' | 'names'> {
  const { call, members } = plan;
  return {
    table: call.table,
    // A lease has no body. Its request contains all names.
    names: null,
    metering:
      members === null ? metering : (metering?.beforeGrant(members.places.values()) ?? null),
    members: members === null ? null : { group: members.group, ...excludedMembers(members, tries) },
    billed: metering === null ? null : billedOf(all),
    team: call.caller.key?.team ?? null,
  };
}

function admitted(held: readonly PlacedLease[], { plan }: LeaseAdmissionRequest): LeaseAdmitted {
  const { members } = plan;
  const granting = held.find(({ placement }) => placement.group === members?.group);
  const limited = held.flatMap(({ placement: { group }, granted: { rates } }) =>
    rates === undefined ? [] : [{ group, rates }],
  );
  const reported = limited.find(({ group }) => group.startsWith(KEY_PREFIX)) ?? limited[0];
  return {
    kind: 'admitted',
    holds: held.map(holdOf),
    member: granting?.granted.member ?? null,
    rates: reported?.rates ?? [],
    waited: held.map((one) => one.waited).reduce(longerWait, null),
  };
}

function holdOf({ placement, granted, request }: PlacedLease): PoolHold {
  const { leaseId, attachment, member, nested, reserved, wantsServed } = granted;
  return {
    ...poolAt(placement),
    leaseId,
    attachment,
    tenant: request.tenant ?? request.caller,
    lane: request.lane ?? 'normal',
    // Every grant of a lease that is held by its id has it.
    expiresAt: granted.expiresAt ?? 0,
    ...(member !== undefined && { member }),
    ...(nested !== undefined && { nested }),
    ...(reserved !== undefined && { reserved }),
    ...(placement.isOfProvider && { isOfProvider: true }),
    ...(wantsServed === true && { wantsServed }),
  };
}

function poolAt({ group, partition, assumed, config }: Placement): PoolAt {
  return { group, partition, assumed, jurisdiction: config?.jurisdiction ?? null };
}

/**
 * Returns a lease that was held only during the wait. Its group keeps a lease that another request of the ticket also
 * has, and counts the ticket's attempts itself. If each request counted, each would get its own lease.
 */
function giveBack({ granted }: PlacedLease, full: Full | null, ask: LeaseAdmissionRequest): void {
  const { lease } = granted;
  const reported = full !== null && full.forMs > 0 ? lease.passOver(full.pool, full.forMs) : null;
  const last = Promise.allSettled([reported, lease.release('unused', null)]);
  ask.plan.call.ctx.waitUntil(letGo(granted, last, ask));
}

/** Ends all grants, also those of identical requests. They have the same caller, which may not have the lease. */
function endAll(held: readonly PlacedLease[], ask: LeaseAdmissionRequest): void {
  const { env, table, ctx } = ask.plan.call;
  for (const { placement, granted } of held) {
    const pool = poolSourceOfHeld(env, placement, table);
    ctx.waitUntil(letGo(granted, pool().release(granted.leaseId, 'unused', null), ask));
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

function tooMany(placements: readonly Placement[]): ErrorReply {
  const names = placements.map(({ group }) => `\`${group}\``).join(', ');
  const message = `This lease matches ${placements.length} groups (${names}). The maximum is ${GROUPS_PER_CALL_MAX}.`;
  return { reason: 'too_many_groups', message };
}
