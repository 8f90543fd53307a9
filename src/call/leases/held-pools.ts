import type { PoolRef } from '../../contract/rpc/group-rpc.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import { RENEW_EVERY_MS } from '../../core/words/settings.ts';
import {
  claimNow,
  releaseById,
  renewById,
  type HeldLease,
  type Renewal,
} from '../../routing/held-lease.ts';
import { definedGroup } from '../../routing/implied-groups.ts';
import type { Placement } from '../../routing/placement.ts';
import { poolOf } from '../../routing/pool.ts';
import { steadyClock, type Schedule } from '../../runtime/async.ts';
import type { Settle } from '../results/result.ts';
import { isUnverified, poolSourceOfHeld, type PoolSource } from '../acquire/pools.ts';
import { untilAnswered } from '../acquire/retry-delays.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { LeaseToken, PoolAt, PoolHold } from './lease-token.ts';

/** How long a message to a pool may take, and all attempts of one together. */
const ANSWER_LOST_MS = 3_000;
const ATTEMPTS_MS = 8_000;

type LeaseContext = Pick<AuthenticatedCall, 'env' | 'table' | 'after'>;

/** The object of a pool, even if its group is no longer configured. */
function sourceOf(
  { env, table }: LeaseContext,
  pool: PoolRef,
  jurisdiction: PoolAt['jurisdiction'],
): PoolSource {
  const placement = placementOf({ table }, { lease: pool });
  const { group, partition } = pool;
  const isFound = placement.config !== null || jurisdiction === null;
  if (isFound || isUnverified(env, placement)) return poolSourceOfHeld(env, placement, table);
  return () => poolOf(env, group, partition, { location: null, jurisdiction });
}

export function placementOf(
  { table }: Pick<LeaseContext, 'table'>,
  hold: Pick<PoolHold, 'isOfProvider'> & { readonly lease: PoolRef },
): Placement {
  const { isOfProvider = false } = hold;
  const { group, partition, assumed } = hold.lease;
  const config = definedGroup(table.snapshot.config, group) ?? null;
  return { group, partition, assumed, config, isOfProvider, ruledLane: null };
}

/** The lease in one pool with its times. */
function heldIn({ grantedAt }: LeaseToken, hold: PoolHold): HeldLease & PoolHold {
  return { ...hold, grantedAt };
}

export type RenewedPools =
  | { readonly kind: 'ok'; readonly pools: readonly PoolHold[] }
  | { readonly kind: 'revoking' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unreachable'; readonly group: string };

export async function renewAll(call: LeaseContext, lease: LeaseToken): Promise<RenewedPools> {
  const answers = await Promise.all(
    lease.pools.map(async (hold) => {
      const pool = sourceOf(call, hold.lease, hold.jurisdiction);
      const renew = (): Promise<Renewal<HeldLease>> => renewById(pool(), heldIn(lease, hold), null);
      return [hold, await tryFor(call.after, renew)] as const;
    }),
  );
  const pools: PoolHold[] = [];
  let unreachable: string | null = null;
  for (const [hold, answer] of answers) {
    if (answer === null) unreachable ??= hold.lease.group;
    else if (answer.kind !== 'ok') return answer;
    else {
      const { lease: renewed, expiresAt } = answer.held;
      pools.push({ ...hold, lease: renewed, expiresAt });
    }
  }
  return unreachable === null ? { kind: 'ok', pools } : { kind: 'unreachable', group: unreachable };
}

/** Ends a lease in all its pools. Returns the groups that could not be reached. */
export async function releaseAll(
  call: LeaseContext,
  lease: LeaseToken,
  end: {
    readonly outcome: LeaseOutcome;
    readonly status: number | null;
    readonly settle: Settle | undefined;
  },
): Promise<readonly string[]> {
  const left = await Promise.all(
    lease.pools.map(async (hold) => {
      const pool = sourceOf(call, hold.lease, hold.jurisdiction);
      const { status, settle } = end;
      // A provider's failure counts for the groups that represent it, and never for the caller's own.
      const isOther = end.outcome === 'failed' && hold.isOfProvider !== true;
      const outcome = isOther ? 'success' : end.outcome;
      const settlement = settle?.(placementOf(call, hold));
      const ended = await tryFor(call.after, async () => {
        const claim = claimNow(heldIn(lease, hold));
        await releaseById(pool(), claim, { outcome, status, settlement });
        return true;
      });
      return ended === null ? [hold.lease.group] : [];
    }),
  );
  return left.flat();
}

export async function reportTo(
  call: LeaseContext,
  lease: LeaseToken,
  hold: PoolHold,
  signal: UpstreamSignal,
  isRepeat: boolean,
): Promise<void> {
  const pool = sourceOf(call, hold.lease, hold.jurisdiction);
  await tryFor(call.after, async () => {
    await pool().report(hold.lease.leaseId, signal, isRepeat, claimNow(heldIn(lease, hold)));
    return true;
  });
}

/** Cancels a ticket in all its pools. Returns the groups that could not be reached. */
export async function cancelAll(
  call: LeaseContext,
  ticketId: string,
  pools: readonly PoolAt[],
): Promise<readonly string[]> {
  const left = await Promise.all(
    pools.map(async (at) => {
      const pool = sourceOf(call, at, at.jurisdiction);
      const done = await tryFor(call.after, async () => {
        await pool().cancel(ticketId);
        return true;
      });
      return done === null ? [at.group] : [];
    }),
  );
  return left.flat();
}

/** How soon a lease must be renewed: after a third of its remaining time, and no later than a holder does. */
export function renewWithinMs(leftMs: number): number {
  return Math.max(0, Math.min(RENEW_EVERY_MS, Math.floor(leftMs / 3)));
}

/** Retries until there is an answer, because a reset pool answers again soon. null if there was none. */
function tryFor<T>(after: Schedule, work: () => Promise<T>): Promise<T | null> {
  const untilAt = steadyClock.now() + ATTEMPTS_MS;
  return untilAnswered(work, ANSWER_LOST_MS, () => steadyClock.now() < untilAt, after);
}
