import type { AcquireRequest } from '../contract/group-rpc.ts';
import { CONTRACT_VERSION } from '../contract/group-rpc.ts';
import type { Env } from '../contract/env.ts';
import { poolName } from '../contract/pool-name.ts';
import type { Refusal } from '../contract/reasons.ts';
import type { Rejection } from '../core/rejection.ts';
import type { Placement, RoutedCall } from '../routing/placement.ts';
import type { Admission, Ticket } from './admission.ts';
import type { Schedule } from '../upstream/call-clock.ts';
import { askForSlot } from './ask.ts';
import { LeaseHolder } from './lease-holder.ts';
import { poolSource } from './pools.ts';
import { giveBackPasses, passWithoutSlot, takeUnreportedPasses } from './passes.ts';
import type { RoutingTable } from './snapshots.ts';
import type { Background } from './waiting.ts';

interface Context {
  readonly env: Env;
  readonly table: RoutingTable;
  readonly signal: AbortSignal;
  readonly ctx: Background;
  readonly after: Schedule;
}

export type Admitted =
  | { readonly kind: 'admitted'; readonly admission: Admission }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Route the call again, no earlier than by that version of the configuration. */
  | { readonly kind: 'moved'; readonly configVersion: number }
  /** The caller has gone. */
  | { readonly kind: 'left' };

/** Waits for the slot of a call. */
export async function admit(
  call: RoutedCall,
  ticket: Ticket,
  { env, table, signal, ctx, after }: Context,
): Promise<Admitted> {
  const placement = table.routes.place(call);
  const pool = poolSource(env, placement);
  const request = requestFor(call, ticket, placement, table.snapshot.version);
  const asked = await askForSlot(pool, request, signal, after);
  switch (asked.kind) {
    case 'granted': {
      const { leaseId } = asked.granted;
      const holder = new LeaseHolder(pool, { ...request, leaseId }, asked.granted, ctx, after);
      if (asked.late.length > 0) ctx.waitUntil(holder.adoptLate(asked.late));
      return { kind: 'admitted', admission: admissionOf(placement, holder) };
    }
    case 'rejected':
      return { kind: 'refused', refusal: refusalOf(asked.rejection, placement) };
    case 'moved':
      return asked;
    case 'left':
      ctx.waitUntil(pool().cancel(ticket.id));
      return asked;
    case 'unavailable': {
      giveBackPasses(poolName(placement.group, placement.partition), request.passedUnlimited);
      const admission = passWithoutSlot(placement);
      if (admission !== null) return { kind: 'admitted', admission };
      return { kind: 'refused', refusal: unavailable(placement) };
    }
  }
}

function requestFor(
  call: RoutedCall,
  ticket: Ticket,
  placement: Placement,
  configVersion: number,
): Omit<AcquireRequest, 'sliceMs'> {
  const { group, partition, assumed } = placement;
  const { maxWaitMs, enqueuedAt } = ticket;
  return {
    version: CONTRACT_VERSION,
    group,
    partition,
    assumed,
    configVersion,
    ticketId: ticket.id,
    attempt: 1,
    enqueuedAt,
    deadlineAt: maxWaitMs === null ? null : enqueuedAt + maxWaitMs,
    wait: maxWaitMs !== 0,
    caller: call.caller,
    agent: ticket.agent,
    upstream: call.upstream.id,
    model: call.model,
    passedUnlimited: takeUnreportedPasses(poolName(group, partition)),
  };
}

function admissionOf(placement: Placement, holder: LeaseHolder): Admission {
  return {
    placement,
    leaseId: holder.leaseId,
    reportStatus: (status) => holder.reportStatus(status),
    keep: (onRevoked) => holder.keep(onRevoked),
    release: (outcome) => holder.release(outcome),
  };
}

function unavailable({ group }: Placement): Refusal {
  const message = `The group ${group} cannot be reached at the moment. Try again shortly.`;
  return { reason: 'limiter_unavailable', message };
}

function refusalOf(rejection: Rejection, { group }: Placement): Refusal {
  const { reason, retryAfterMs } = rejection;
  switch (rejection.reason) {
    case 'queue_full': {
      const message = `The queue of the group ${group} is full: ${rejection.queueLengthMax} calls are waiting.`;
      return { reason, retryAfterMs, message };
    }
    case 'queue_timeout': {
      const message = `No slot of the group ${group} became free within ${rejection.waitedMs} ms.`;
      return { reason, retryAfterMs, message };
    }
    case 'busy': {
      const message = `All ${rejection.slotsMax} slots of the group ${group} are in use, and the call did not want to wait.`;
      return { reason, retryAfterMs, message };
    }
    case 'paused': {
      const message = `The group ${group} is paused. The call waited ${rejection.waitedMs} ms.`;
      return { reason, retryAfterMs, message };
    }
  }
}
