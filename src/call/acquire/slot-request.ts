import type { Env } from '../../env.ts';
import { CONTRACT_VERSION } from '../../contract/rpc/group-rpc.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { Schedule, Background, AbortSource } from '../../runtime/async.ts';
import { changedFor } from '../../contract/rpc/directory-rpc.ts';
import {
  isOfOneKey,
  onSaturatedAt,
  type Placement,
  type RoutedCall,
} from '../../routing/placement.ts';
import { MODEL_BYTES_MAX } from '../../upstream/body/model-scan.ts';
import type { CallEstimate, Holder, Ticket } from '../../core/words/ticket.ts';
import {
  after as plus,
  instant,
  leaseId as leaseIdFrom,
  memberId,
  ticketId as ticketIdOf,
} from '../../core/words/ids.ts';
import { ambiguous } from '../../core/words/signal.ts';
import type { CallTicket } from './admission.ts';
import { takeUnreportedBypasses, type SlotRequest } from './acquire-slot.ts';
import { laneOf, ownTimeoutMsOf } from '../../routing/placed-call.ts';
import type { NamesOfCall, SessionOfCall } from '../plan/call-names.ts';
import type { UseEstimator } from '../plan/metering.ts';
import type { AcquireOptions } from './ask-groups.ts';
import type { PositionListener } from './open-calls.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

/** The request of a call, turn or lease for slots in one group. */

/** Ids of members at which a call must not be granted. */
export interface ExcludedMembers {
  /** They cannot serve it, or have refused it. */
  readonly excluded: readonly string[];
  /** Those of them that may serve it soon. */
  readonly excludedForNow: readonly string[];
}

export interface AdmitContext {
  readonly env: Env;
  readonly table: RoutingTable;
  readonly signal: AbortSource;
  readonly ctx: Background;
  readonly after: Schedule;
  readonly listener: PositionListener | null;
  /** null if no group counts tokens or cost. */
  readonly metering: UseEstimator | null;
  /** The pool whose costs include the call. Absent or null if there is none. */
  readonly billed?: Placement | null;
  /** Team of the call's key. null if there is none. */
  readonly team: string | null;
  /**
   * The group whose members serve the call, and the excluded members. null if the call goes to the upstream that it
   * names.
   */
  readonly members: (ExcludedMembers & { readonly group: string }) | null;
  /** Reads the model and the service tier of the call. null if there is nothing left to read. */
  readonly names: NamesOfCall | null;
  /** Reads the session of the call. Absent or null if it has none. */
  readonly session?: SessionOfCall | null;
}

export function slotRequest(
  call: RoutedCall,
  ticket: CallTicket,
  placement: Placement,
  manner: AcquireOptions,
  context: Pick<
    AdmitContext,
    'table' | 'metering' | 'members' | 'billed' | 'team' | 'names' | 'session'
  >,
  isolate: string | null = null,
): SlotRequest {
  const { table, metering, members, names, session = null } = context;
  const { version: configVersion, changedAt } = table.snapshot;
  const { group, partition, assumed } = placement;
  const { maxWaitMs, agentStartedAt } = ticket;
  const enqueuedAt = instant(ticket.enqueuedAt);
  const { ticketId, attempt, ...round } = manner;
  const timeoutMs = ownTimeoutMsOf(ticket, placement);
  const credential = credentialOf(call, placement);
  const byMembers = members?.group === group ? members : null;
  const holder = {
    ...holderOf(call, ticket, placement, names),
    ...(ticket.kind !== undefined && { kind: ticket.kind }),
    ...(credential !== null && { credential }),
    ...(names !== null && names.tier !== null && { tier: names.tier }),
    ...(names?.isUnread === true && { isUnread: true }),
    ...(session !== null && session.hash !== null && { session: session.hash }),
  };
  return {
    version: CONTRACT_VERSION,
    group,
    partition,
    assumed,
    configVersion,
    sinceVersion: changedFor(changedAt, group),
    attempt,
    ticket: {
      id: ticketIdOf(ticketId),
      holder,
      lane: laneOf(ticket, placement),
      slots: ticket.slots,
      ...round,
      enqueuedAt,
      agentStartedAt: agentStartedAt === null ? null : instant(agentStartedAt),
      deadlineAt: maxWaitMs === null ? null : plus(enqueuedAt, maxWaitMs),
      ...(timeoutMs === null ? {} : { timeoutMs }),
      wait: maxWaitMs !== 0 && onSaturatedAt(placement) !== 'reject',
      parents: ticket.parents.map(leaseIdFrom),
      estimate: metering === null ? null : estimateFor(metering, placement, context),
      ...(isolate !== null && { isolate }),
      ...(ticket.byId === true && { isById: true }),
      ...(session?.isUnread === true && { mayNameSession: true }),
      ...(byMembers !== null && excludedIn(byMembers)),
    },
    passedUnlimited: takeUnreportedBypasses(poolName(group, partition)),
  };
}

/** Returns the fields of a call's holder that every call has. */
export function holderOf(
  call: RoutedCall,
  ticket: CallTicket,
  placement: Placement,
  names: NamesOfCall | null,
): Holder {
  const model = names?.model ?? call.model;
  return {
    caller: call.caller,
    tenant: tenantOf(call, placement),
    agent: ticket.agent,
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

/** Only the fields that are not empty. */
function excludedIn({
  excluded,
  excludedForNow,
}: ExcludedMembers): Pick<Ticket, 'excluded' | 'excludedForNow'> {
  return {
    ...(excluded.length > 0 && { excluded: excluded.map(memberId) }),
    ...(excludedForNow.length > 0 && { excludedForNow: excludedForNow.map(memberId) }),
  };
}

/** Estimates what a group reserves for the call, and marks whether its costs include the call. */
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
 * The tenant of a call. The caller cannot choose it, unless the operator trusts a header. Keys of one account are one
 * tenant. Otherwise many keys would have many shares, and a replaced key would start with an empty one.
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
