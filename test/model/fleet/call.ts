import type { ActiveLease } from '../../../src/core/state.ts';
import type { Claim, OrphanedPrefetchedSlot } from '../../../src/core/orphaned.ts';
import {
  IMPLICIT,
  type InstantMs,
  type LeaseId,
  type MemberId,
} from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import type { Ticket } from '../../../src/core/words/ticket.ts';
import type { Instance } from './instance.ts';

/** A call as its caller sees it, and its holder once it has a lease. */
export interface FleetCall {
  readonly ticket: Ticket;
  readonly leaseId: LeaseId;
  /** It stops at its fence, unless a renewal was acknowledged that it sent less than a TTL before. */
  readonly isStrict: boolean;
  /** `running`: at the upstream, whatever the group thinks of it. */
  phase: 'asking' | 'running' | 'over';
  /** The answer that it holds its lease by, and the instance that gave it. */
  attachment: number;
  at: Instance | null;
  nested: ActiveLease['nested'];
  heirOf: ActiveLease['heirOf'];
  /** The member by whose key it runs. */
  member: MemberId;
  grantedAt: InstantMs;
  /** When the last renewal was sent that was acknowledged, as `LeaseHolder` counts it. */
  renewedAt: InstantMs;
  /** A strict holder stops here; a lax one has lapsed. In time in which it could act. */
  fenceAt: number;
  /** It ran beyond its fence: from then on it counts for nothing, though it may come back. */
  hasLapsed: boolean;
  /** Nothing of what it sends or hears gets through before this. */
  cutUntil: number;
  /** Asks that may still be answered with a lease. */
  openAsks: number;
  /** Asks that it has not heard the end of, and whether one broke; then it asks anew once there are none. */
  unheardAsks: number;
  hasLostAsk: boolean;
  isAnew: boolean;
  /** It has not said anything of its lease by its id. */
  isSole: boolean;
  /** The number of its newest ask, and of the newest loop that renews: older ones stop by themselves. */
  askTurn: number;
  loopTurn: number;
  endedAt: InstantMs | null;
  /** The lent slot that it runs on, as long as no answer holds a lease of its own for it. */
  lent: OrphanedPrefetchedSlot | null;
  /** How long it holds without a renewal. */
  ttlMs: number;
}

export function newCall(
  ticket: Ticket,
  leaseId: LeaseId,
  isStrict: boolean,
  now: InstantMs,
): FleetCall {
  return {
    ticket,
    leaseId,
    isStrict,
    phase: 'asking',
    attachment: 0,
    at: null,
    nested: null,
    heirOf: [],
    member: IMPLICIT,
    grantedAt: now,
    renewedAt: now,
    fenceAt: Infinity,
    hasLapsed: false,
    cutUntil: 0,
    openAsks: 0,
    unheardAsks: 0,
    hasLostAsk: false,
    isAnew: false,
    isSole: true,
    askTurn: 0,
    loopTurn: 0,
    endedAt: null,
    lent: null,
    ttlMs: LEASE_TTL_MS,
  };
}

/** Tells of the lease as `LeaseHolder` does. */
export function claimOf(call: FleetCall, now: InstantMs): Claim {
  const {
    ticket,
    leaseId,
    attachment,
    nested,
    heirOf: nextHolderOf,
    grantedAt,
    renewedAt,
    lent,
    ttlMs,
  } = call;
  const { id: ticketId, holder, lane, slots } = ticket;
  const hasLapsed = now >= renewedAt + ttlMs;
  const of = { leaseId, ticketId, holder, lane, slots, attachment, nested, heirOf: nextHolderOf };
  const held = { hasLapsed, heldMs: now - grantedAt, reserved: null };
  const named = call.member === IMPLICIT ? {} : { member: call.member };
  return { ...of, ...named, ...held, ...(lent !== null && { lent }) };
}
