import type { Env } from '../../env.ts';
import { CONTRACT_VERSION, type ResumeRequest } from '../../contract/rpc/group-rpc.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { changedFor } from '../../contract/rpc/directory-rpc.ts';
import {
  isOfOneKey,
  onSaturatedAt,
  type Placement,
  type RoutedCall,
} from '../../routing/placement.ts';
import { MODEL_BYTES_MAX } from '../../upstream/body/model-scan.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { RateRoom } from '../../core/parts/rate-room.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { CallEstimate } from '../../core/words/usage.ts';
import { leaseIdOf, ticketId as ticketIdOf } from '../../core/words/ids.ts';
import { ambiguous } from '../../core/words/scope.ts';
import { within } from '../../runtime/within.ts';
import { waitsUntil, type GrantedMember, type Settle, type CallTicket } from './admission.ts';
import { noteEnd, noteRejection } from '../observe/analytics.ts';
import { acquireSlot } from './acquire-slot.ts';
import { isolateId } from '../../runtime/isolate-id.ts';
import { laneOf } from '../../routing/lane-of.ts';
import { ownTimeoutMsOf } from '../../routing/timeouts.ts';
import type { ExcludedMembers } from '../members/where-next-member.ts';
import { noteByNames, wentByNames, type NamesOfCall } from '../call-names.ts';
import { noteBySessions, wentBySessions, type SessionOfCall } from '../call-session.ts';
import type { UseEstimator } from '../metering.ts';
import { LeaseHolder, type CallLease, type LeaseEnd } from './lease-holder.ts';
import { PrefetchedLease } from './prefetched-lease.ts';
import { takeInPrefetched, takePrefetchedSlot, type PrefetchContext } from './prefetched-slots.ts';
import {
  bypass,
  giveBackBypasses,
  mayBypass,
  takeUnreportedBypasses,
  type Bypass,
} from './bypasses.ts';
import { changedSince } from '../changed-since.ts';
import { isUnverified, poolSource, type PoolSource } from './pools.ts';
import { capped, overloaded, replyTo, unavailable } from './rejections.ts';
import type { Round } from './rounds.ts';
import type { PositionListener } from './slices.ts';
import type { SlotRequest } from './slot-wait.ts';
import type { Waited } from './waited.ts';
import { rejected, type CallerLeft, type Moved, type Rejected } from '../result.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { Background } from '../../runtime/background.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** How long a cancellation may take before it is lost. */
const CANCEL_LOST_MS = 3_000;

/** The surroundings of a call that is being admitted. */
export interface AdmitContext {
  readonly env: Env;
  readonly table: RoutingTable;
  readonly signal: AbortSource;
  readonly ctx: Background;
  readonly after: Schedule;
  readonly listener: PositionListener | null;
  /** Null: none of the groups counts tokens or cost. */
  readonly metering: UseEstimator | null;
  /** The pool in whose costs the call stands. Absent or null: none. */
  readonly billed?: Placement | null;
  /** Team of the key that the call comes with. Null: none. */
  readonly team: string | null;
  /** The group whose members the call goes by, and those that it is not to be granted at; null: it goes as called. */
  readonly members: (ExcludedMembers & { readonly group: string }) | null;
  /** Reads the model and the service tier of the call. null if there is nothing left to read. */
  readonly names: NamesOfCall | null;
  /** Finds the session of the call. Absent or null: it names none. */
  readonly session?: SessionOfCall | null;
  /** The call needs slots of several groups. Absent: of one. */
  readonly isOfSeveral?: boolean;
}

/** How a slot is acquired for. */
export interface AcquireOptions extends Round {
  readonly isTry: boolean;
  readonly waitsElsewhere: boolean;
  /** Other pools that the call has no slot of yet, by their names. Absent: it is a call of one group. */
  readonly needs?: readonly string[];
  /** Its turn came there before, and it gave the slot back while it waited for another group. */
  readonly hadTurn?: boolean;
}

/** A slot of the call. */
interface Leased {
  readonly kind: 'leased';
  readonly lease: CallLease;
  /** Null: the group has granted it at none. */
  readonly member: GrantedMember | null;
  /** Room in the group's limits of requests and tokens, this call counted. Absent: it has none. */
  readonly rates?: readonly RateRoom[];
  /** Mean time between the ends of calls in the group, in milliseconds. Absent: the call needs no other group, or it is unknown. */
  readonly endGapMs?: number;
  /** Absent or null: it was granted at once. */
  readonly waited?: Waited | null;
}

export type AdmittedOne =
  | { readonly kind: 'admitted'; readonly placement: Placement; readonly by: Leased | Bypass }
  | Rejected
  /** Not now, with the expected wait in milliseconds. Infinity: none can be foreseen. Only tries hear it. */
  | { readonly kind: 'declined'; readonly placement: Placement; readonly waitMs: number }
  | Moved
  | CallerLeft;

/** A slot of a call in one group, or the permission to run without one. */
export type AdmittedSlot = Extract<AdmittedOne, { kind: 'admitted' }>;

/** Gives back what a call holds of one group. */
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

/** Asks one group for the slots of a call, and waits unless it is a try. */
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
  // Of members those are left whose prices are known.
  const unpriced =
    (byMembers === null ? metering?.rejectUnpriced(placement) : metering?.rejectTier(placement)) ??
    null;
  if (unpriced !== null) {
    const about = { group: placement.group };
    return (await changedSince({ table, env, ctx })) ?? rejected({ ...unpriced, about });
  }
  const way =
    byMembers === null && mayRunOnPrefetched(ticket, placement, manner, context)
      ? { name, pool, ctx, after }
      : null;
  const onPrefetched =
    way === null ? null : runOnPrefetched(way, call, ticket, placement, manner, context);
  if (onPrefetched !== null) {
    return {
      kind: 'admitted',
      placement,
      by: { kind: 'leased', lease: onPrefetched, member: null },
    };
  }
  if (session?.isUnread === true && !manner.isTry && wentBySessions(name)) {
    const ended = await session.read();
    if (ended !== null) return ended;
  }
  const request = slotRequest(call, ticket, placement, manner, context);
  const byNewest = () => bypassByNewest(placement, { table, env, ctx });
  const sentAt = steadyClock.now();
  const asked = way === null ? request : { ...request, mayBorrow: true };
  const acquired = await acquireSlot(pool, asked, {
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
    noteRejection(env, request, reply.reason, waitedMs);
    return rejected({ ...reply, about: { group: placement.group } });
  };
  const cancel = (): void => {
    ticket.rounds.noteCancelled();
    ctx.waitUntil(takeOut(pool, manner.ticketId));
  };
  switch (acquired.kind) {
    case 'granted': {
      const { leaseId, lent: slots, member: id, rates, endGapMs, configVersion } = acquired.granted;
      if (way !== null && slots !== undefined) {
        takeInPrefetched(way, slots, request.configVersion, sentAt);
      }
      const self = { ...request, leaseId, ...(id !== undefined && { member: id }) };
      const lease = new LeaseHolder(pool, self, acquired.granted, ctx, after, (end) =>
        noteEnd(env, self, { ...end, waitedMs, heldMs: steadyClock.now() - endedAt }),
      );
      if (acquired.late.length > 0) ctx.waitUntil(lease.adoptLate(acquired.late));
      const member = id === undefined || byMembers === null ? null : { id, configVersion };
      const by = {
        kind: 'leased',
        lease,
        member,
        waited: waitedFor(acquired.granted.waitedFor),
        ...(rates !== undefined && { rates }),
        ...(endGapMs !== undefined && { endGapMs }),
      } as const;
      return { kind: 'admitted', placement, by };
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
      // Nothing of other groups is held for the sake of one that does not answer.
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
      return by.kind === 'moved' ? by : { kind: 'admitted', placement, by };
    }
  }
}

/** Makes the request by which a group is asked for the slots of a call. */
export function slotRequest(
  call: RoutedCall,
  ticket: CallTicket,
  placement: Placement,
  manner: AcquireOptions,
  context: Pick<
    AdmitContext,
    'table' | 'metering' | 'members' | 'billed' | 'team' | 'names' | 'session'
  >,
): SlotRequest {
  const { table, metering, members, names, session = null } = context;
  const { version: configVersion, changedAt } = table.snapshot;
  const { group, partition, assumed } = placement;
  const { maxWaitMs, enqueuedAt } = ticket;
  const timeoutMs = ownTimeoutMsOf(ticket, placement);
  const credential = credentialOf(call, placement);
  const byMembers = members?.group === group ? members : null;
  return {
    ...holderOf(call, ticket, placement, names),
    version: CONTRACT_VERSION,
    group,
    partition,
    assumed,
    configVersion,
    sinceVersion: changedAt === undefined ? configVersion : changedFor(changedAt, group),
    isolate: isolateId(),
    ...manner,
    enqueuedAt,
    deadlineAt: maxWaitMs === null ? null : enqueuedAt + maxWaitMs,
    ...(timeoutMs === null ? {} : { timeoutMs }),
    wait: maxWaitMs !== 0 && onSaturatedAt(placement) !== 'reject',
    agentStartedAt: ticket.agentStartedAt,
    slots: ticket.slots,
    ...(ticket.kind !== undefined && { kind: ticket.kind }),
    parents: ticket.parents,
    ...(ticket.byId === true && { byId: true }),
    ...(credential !== null && { credential }),
    ...(names !== null && names.tier !== null && { tier: names.tier }),
    ...(names?.isUnread === true && { isUnread: true }),
    ...(session !== null && sessionIn(session)),
    ...(metering === null ? {} : { estimate: estimateFor(metering, placement, context) }),
    ...(byMembers !== null && excludedIn(byMembers)),
    passedUnlimited: takeUnreportedBypasses(poolName(group, partition)),
  };
}

/** Returns the fields by which a pool shares its slots and reports its calls. */
function holderOf(
  call: RoutedCall,
  ticket: CallTicket,
  placement: Placement,
  names: NamesOfCall | null,
): Pick<SlotRequest, 'caller' | 'tenant' | 'agent' | 'lane' | 'upstream' | 'model'> {
  const model = names?.model ?? call.model;
  return {
    caller: call.caller,
    tenant: tenantOf(call, placement),
    agent: ticket.agent,
    lane: laneOf(ticket, placement),
    upstream: call.upstream.id,
    // Bounded, because the name comes from the caller and the queue stores it with each call.
    model: model?.slice(0, MODEL_BYTES_MAX) ?? null,
  };
}

/**
 * The caller's own key if its refusals hold only calls with it. null if there is none, or all calls there have that
 * key.
 */
function credentialOf(
  { keyFingerprint: key, isOwnKey, isAmbiguousKey = false, hiddenKey }: RoutedCall,
  placement: Placement,
): string | null {
  if (hiddenKey !== undefined) return ambiguous(hiddenKey);
  if (!isOwnKey || key === null || isOfOneKey(placement)) return null;
  return isAmbiguousKey ? ambiguous(key) : key;
}

/** Writes only what is known, or that more may be known. */
function sessionIn({
  hash,
  isUnread,
}: SessionOfCall): Pick<SlotRequest, 'session' | 'mayNameSession'> {
  if (isUnread) return { mayNameSession: true };
  return hash === null ? {} : { session: hash };
}

/** Writes only what there is of them. */
function excludedIn({ excluded, excludedForNow }: ExcludedMembers): Partial<ExcludedMembers> {
  return {
    ...(excluded.length > 0 && { excluded }),
    ...(excludedForNow.length > 0 && { excludedForNow }),
  };
}

/** Estimates what a group reserves for the call, and says whether the call stands in its costs. */
function estimateFor(
  metering: UseEstimator,
  placement: Placement,
  { billed, team }: Pick<AdmitContext, 'billed' | 'team'>,
): CallEstimate {
  const estimate = metering.estimateFor(placement);
  if (placement !== billed) return estimate;
  return { ...estimate, isBilled: true, ...(team !== null && { team }) };
}

/**
 * Tells whether a call may run on a slot that its isolate was lent: it takes one slot of one group, for the first time,
 * and nobody needs to know at once what it uses.
 */
function mayRunOnPrefetched(
  { slots, parents, kind }: CallTicket,
  placement: Placement,
  { attempt }: AcquireOptions,
  { env, metering, isOfSeveral = false }: Pick<AdmitContext, 'env' | 'metering' | 'isOfSeveral'>,
): boolean {
  if (isOfSeveral || attempt > 1) return false;
  // Lent slots are for what is over soon.
  if (placement.isUnproved === true || kind !== undefined) return false;
  return slots === 1 && parents.length === 0 && metering === null && !isUnverified(env, placement);
}

/** Has a call run on a lent slot of its pool. Null: there is none for it. */
function runOnPrefetched(
  way: PrefetchContext,
  call: RoutedCall,
  ticket: CallTicket,
  placement: Placement,
  manner: AcquireOptions,
  context: AdmitContext,
): PrefetchedLease | null {
  const { env, table } = context;
  const prefetched = takePrefetchedSlot(way, table);
  if (prefetched === null) return null;
  const { group } = placement;
  const leaseId = leaseIdOf(ticketIdOf(manner.ticketId), manner.attempt);
  const known = { ...holderOf(call, ticket, placement, context.names), group, leaseId };
  // Most calls run on prefetched slots and end before they are reported, so the request for a slot is built only on demand.
  const self = (): ResumeRequest => {
    const request = slotRequest(call, ticket, placement, manner, context);
    giveBackBypasses(way.name, request.passedUnlimited);
    return { ...request, leaseId };
  };
  const beganAt = steadyClock.now();
  const onEnd = (end: LeaseEnd): void =>
    noteEnd(env, known, { ...end, waitedMs: 0, heldMs: steadyClock.now() - beganAt });
  return new PrefetchedLease({ ...prefetched, way, known, self, onEnd });
}

/** Lets a call bypass its group where nothing else holds by now, as far as is known: there is no pool to say so. */
async function bypassByNewest(
  placement: Placement,
  context: Pick<AdmitContext, 'table' | 'env' | 'ctx'>,
): Promise<Bypass | Moved | null> {
  const changed = await changedSince(context);
  if (changed === null) return bypass(placement);
  return changed.kind === 'moved' ? changed : null;
}

/** Takes the ticket out, as far as the object can be reached: otherwise it is dropped by itself. */
export async function takeOut(pool: PoolSource, ticketId: string): Promise<void> {
  try {
    await within(CANCEL_LOST_MS, pool().cancel(ticketId));
  } catch {
    // A waiter that nobody asks for is dropped, a lease that nobody renews ends.
  }
}

/**
 * Finds the tenant: never what the caller may choose, unless the operator trusts a header. Keys of one account are one
 * tenant, or whoever has many would have as many shares; and one that is replaced would begin anew.
 */
function tenantOf(call: RoutedCall, { config }: Placement): string {
  const by = config?.fairness.by[0] ?? 'caller';
  const { caller, account, keyFingerprint } = call;
  if (by === 'caller') {
    const isOwn = caller === keyFingerprint && account?.kind === 'known';
    return isOwn ? account.name : caller;
  }
  return call.header(by.slice('header:'.length))?.slice(0, 200) ?? 'none';
}
