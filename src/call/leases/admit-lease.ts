import type { RateRoom } from '../../core/parts/rate-room.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { GROUPS_PER_CALL_MAX, type Placement } from '../../routing/placement.ts';
import { KEY_PREFIX } from '../../routing/key-groups.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { within } from '../../runtime/within.ts';
import { waitsUntil, type Ticket } from '../acquire/admission.ts';
import { slotRequest, takeOut, type AdmitContext, type Manner } from '../acquire/admit-one.ts';
import { billedOf } from '../acquire/admit.ts';
import { giveBackBypasses } from '../acquire/bypasses.ts';
import type { Granted } from '../acquire/open-calls.ts';
import { isOnTrial, poolSource, poolSourceOfHeld } from '../acquire/pools.ts';
import { capped, overloaded, replyTo, unavailable } from '../acquire/rejections.ts';
import { ownOrShared } from '../acquire/shared-partition.ts';
import type { SlotRequest } from '../acquire/slot-wait.ts';
import { untilOpened } from '../acquire/until-opened.ts';
import { noteRejection } from '../observe/analytics.ts';
import { LEFT, rejected, type Left, type Moved, type Rejected } from '../result.ts';
import { askById, type Parked } from './ask-by-id.ts';
import type { PoolAt, PoolHold } from './lease-token.ts';
import type { LeasePlan } from './plan-lease.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** Time limit of a message that nothing depends on. */
const LOST_MS = 5_000;

/** A lease in one of its groups. */
interface Held {
  readonly placement: Placement;
  readonly granted: Granted;
  readonly request: SlotRequest;
}

/** All that a lease is asked with. */
export interface LeaseAsk {
  readonly plan: LeasePlan;
  readonly ticket: Ticket;
  readonly ticketId: string;
  readonly attempt: number;
  readonly refused: { readonly by: readonly string[]; readonly forNow: readonly string[] };
  readonly signal: AbortSource;
  readonly after: Schedule;
  /** When its request is to be answered at the latest. */
  readonly parkUntil: number;
  /** Its caller can ask for it again, so that it keeps its place when that leaves. */
  readonly isKept: boolean;
  /** Checks once more, when all slots are granted, whether the caller may have them; null: it may. */
  refusedNow(placements: readonly Placement[]): Promise<Rejected | null>;
}

export type LeaseAdmitted =
  | {
      readonly kind: 'admitted';
      readonly holds: readonly PoolHold[];
      readonly member: string | null;
      readonly rates: readonly RateRoom[];
    }
  | (Parked & { readonly pools: readonly PoolAt[] })
  | Rejected
  | Moved
  | Left;

/**
 * Gets a lease its slots in every group, narrow first, and holds the narrower ones while it waits for a wider one: over several
 * requests if need be, because who asks again with the same attempt has again what it holds.
 */
export async function admitLease(ask: LeaseAsk): Promise<LeaseAdmitted> {
  const placements = await placesOf(ask.plan);
  if (placements.length > GROUPS_PER_CALL_MAX) return rejected(tooMany(placements));
  const { plan, signal, after, parkUntil: until } = ask;
  for (let openings = 0; ; openings += 1) {
    const taken = await takeInOrder(ask, placements);
    if (taken.kind !== 'declined') return taken;
    const pool = poolSource(plan.call.env, taken.placement, plan.call.table);
    const waited = await untilOpened(pool, { signal, after, until, openings });
    if (waited.kind === 'left') return LEFT;
    if (waited.kind === 'opened') continue;
    const unheard = { position: null, estimateMs: null, askAgainMs: 0 };
    return { kind: 'parked', ...unheard, pools: placements.map(poolAt) };
  }
}

/** Finds the pools of a lease: a partition of a group that has too many may share one. */
function placesOf({ call: { env, table }, placements }: LeasePlan): Promise<Placement[]> {
  return Promise.all(
    placements.map(async (one) => (isOnTrial(env, one) ? one : ownOrShared(env, table, one))),
  );
}

type Taken = LeaseAdmitted | { readonly kind: 'declined'; readonly placement: Placement };

async function takeInOrder(ask: LeaseAsk, placements: readonly Placement[]): Promise<Taken> {
  const held: Held[] = [];
  for (const [index, placement] of placements.entries()) {
    const isLast = index === placements.length - 1;
    const { ticketId, attempt } = ask;
    const manner: Manner = {
      ticketId,
      attempt,
      isTry: false,
      waitsElsewhere: !isLast,
      holdsNarrower: index > 0,
    };
    const one = await takeOne(ask, placement, manner, placements);
    if ('granted' in one) {
      held.push(one);
      continue;
    }
    switch (one.kind) {
      case 'parked':
        // What is held stays so for its TTL, and is had again by the next request.
        dropStubs(held);
        return { ...one, pools: placements.map(poolAt) };
      case 'left':
        if (ask.isKept) dropStubs(held);
        else giveBack(held, ask);
        return one;
      case 'moved':
      case 'rejected':
      case 'declined':
        giveBack(held, ask);
        return one;
    }
  }
  const refused = await ask.refusedNow(placements);
  if (refused !== null) {
    endAll(held, ask);
    return refused;
  }
  const { ctx } = ask.plan.call;
  for (const [index, { granted }] of held.entries()) {
    const isLast = index === held.length - 1;
    ctx.waitUntil(letGo(granted, isLast ? null : granted.lease.confirm(), ask));
  }
  return admitted(held, ask);
}

type TakenOne =
  | Held
  | Parked
  | Rejected
  | Moved
  | Left
  | { readonly kind: 'declined'; readonly placement: Placement };

async function takeOne(
  ask: LeaseAsk,
  placement: Placement,
  manner: Manner,
  all: readonly Placement[],
): Promise<TakenOne> {
  const { plan, ticket, signal, after, parkUntil } = ask;
  const { call, routed } = plan;
  const { env, table, ctx } = call;
  const context = contextOf(ask, all);
  const isByMembers = plan.members?.group === placement.group;
  const unpriced = isByMembers ? null : (context.metering?.rejectUnpriced(placement) ?? null);
  if (unpriced !== null) return rejected(unpriced);
  const pool = poolSource(env, placement, table);
  const request = slotRequest(routed, ticket, placement, manner, context);
  const sentAt = steadyClock.now();
  const until = waitsUntil(ticket, placement);
  const asked = await askById(pool, request, { signal, after, until, parkUntil });
  const refused = (reply: ErrorReply, rates: readonly RateRoom[] = []): Rejected => {
    noteRejection(env, request, reply.reason, steadyClock.now() - sentAt);
    return { ...rejected(reply), rates };
  };
  switch (asked.kind) {
    case 'granted': {
      const { granted } = asked;
      if (granted.expiresAt !== undefined) return { placement, granted, request };
      // An object of the release before takes it for a call's, which ends with this request.
      await letGo(granted, granted.lease.release('unused', null), ask);
      return refused(unavailable(placement));
    }
    case 'gone':
      return refused(gone());
    case 'rejected':
      return refused(replyTo(asked.rejection, placement), asked.rates);
    case 'declined':
      return { kind: 'declined', placement };
    case 'left':
      // One that can be asked for again keeps its place for a moment, and nobody is parked for it.
      ctx.waitUntil(
        ask.isKept
          ? heard(pool().acquire({ ...request, sliceMs: 0, mayAskLater: true }), ask)
          : takeOut(pool, manner.ticketId),
      );
      return asked;
    case 'parked':
    case 'moved':
      return asked;
    case 'unread':
      return refused(unavailable(placement));
    case 'capped':
    case 'overloaded':
    case 'unavailable':
      giveBackBypasses(poolName(placement.group, placement.partition), request.passedUnlimited);
      return refused(REPLIES[asked.kind](placement));
  }
}

const REPLIES = { capped, overloaded, unavailable };

/** The surroundings of a lease, as those of a call that asks for its slots. */
function contextOf(
  { plan, refused }: LeaseAsk,
  all: readonly Placement[],
): Pick<AdmitContext, 'table' | 'metering' | 'members' | 'billed' | 'team' | 'names'> {
  const { call, metering, members } = plan;
  const excluded = members === null ? [] : [...members.impossible, ...refused.by];
  return {
    table: call.table,
    // A lease has no body. Its request contains all names.
    names: null,
    metering:
      members === null ? metering : (metering?.beforeGrant(members.places.values()) ?? null),
    members:
      members === null ? null : { group: members.group, excluded, excludedForNow: refused.forNow },
    billed: metering === null ? null : billedOf(all),
    team: call.caller.key?.team ?? null,
  };
}

function admitted(held: readonly Held[], { plan }: LeaseAsk): LeaseAdmitted {
  const { members } = plan;
  const granting = held.find(({ placement }) => placement.group === members?.group);
  const limited = held.flatMap(({ placement: { group }, granted: { rates } }) =>
    rates === undefined ? [] : [{ group, rates }],
  );
  const told = limited.find(({ group }) => group.startsWith(KEY_PREFIX)) ?? limited[0];
  return {
    kind: 'admitted',
    holds: held.map(holdOf),
    member: granting?.granted.member ?? null,
    rates: told?.rates ?? [],
  };
}

function holdOf({ placement, granted, request }: Held): PoolHold {
  const { leaseId, attachment, member, nested, reserved, wantsServed } = granted;
  return {
    ...poolAt(placement),
    leaseId,
    attachment,
    tenant: request.tenant ?? request.caller,
    lane: request.lane ?? 'normal',
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
 * Returns the leases that were held only during the wait. Each group keeps a lease that another request of the ticket also
 * has, and counts the ticket's attempts itself. If each request counted, each would get its own lease.
 */
function giveBack(held: readonly Held[], ask: LeaseAsk): void {
  const { ctx } = ask.plan.call;
  for (const { granted } of held) {
    ctx.waitUntil(letGo(granted, granted.lease.release('unused', null), ask));
  }
}

/** Ends what was granted, also for equal requests: they are of the same caller, who may not have it. */
function endAll(held: readonly Held[], ask: LeaseAsk): void {
  const { env, table, ctx } = ask.plan.call;
  for (const { placement, granted } of held) {
    const pool = poolSourceOfHeld(env, placement, table);
    ctx.waitUntil(letGo(granted, pool().release(granted.leaseId, 'unused', null), ask));
  }
}

/** Lets go of answers that hold nothing. */
function dropStubs(held: readonly Held[]): void {
  for (const { granted } of held) granted.lease[Symbol.dispose]();
}

/** Drops a stub after its last message: the lease is held by its id. */
async function letGo(
  { lease }: Granted,
  last: Promise<unknown> | null,
  ask: LeaseAsk,
): Promise<void> {
  if (last !== null) await heard(last, ask);
  lease[Symbol.dispose]();
}

/** Waits for a message that is not worth a failure: what it is about ends by its TTL. */
async function heard(message: Promise<unknown>, { after }: LeaseAsk): Promise<void> {
  try {
    await within(LOST_MS, message, after);
  } catch {
    // It is lost.
  }
}

function gone(): ErrorReply {
  const message =
    'The lease that was asked for has ended. Ask with a new idempotency-key, and without the ticket.';
  return { reason: 'lease_gone', message };
}

function tooMany(placements: readonly Placement[]): ErrorReply {
  const names = placements.map(({ group }) => group).join(', ');
  const message = `The lease belongs to ${placements.length} groups (${names}), and ${GROUPS_PER_CALL_MAX} is the most.`;
  return { reason: 'too_many_groups', message };
}
