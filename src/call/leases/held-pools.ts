import type { RenewByIdAnswer, ResumeRequest } from '../../contract/rpc/group-rpc.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import { RENEW_EVERY_MS } from '../../core/words/settings.ts';
import { definedGroup } from '../../routing/key-groups.ts';
import type { Placement } from '../../routing/placement.ts';
import { poolOf } from '../../routing/pool.ts';
import { pause, within } from '../../runtime/async.ts';
import { steadyClock, type Schedule } from '../../runtime/clock.ts';
import { isOverload } from '../acquire/failure-streak.ts';
import type { Settle } from '../acquire/admission.ts';
import { isUnverified, poolSourceOfHeld, type PoolSource } from '../acquire/pools.ts';
import { resumeRetryMs } from '../acquire/retry-delays.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { LeaseToken, PoolAt, PoolHold } from './lease-token.ts';

/** How long a message to a pool may take, and all attempts of one together. */
const ANSWER_LOST_MS = 3_000;
const ATTEMPTS_MS = 8_000;

type LeaseContext = Pick<AuthenticatedCall, 'env' | 'table' | 'after'>;

/** The object of a pool, even if its group is no longer configured. */
function poolAtSource({ env, table }: LeaseContext, at: PoolAt): PoolSource {
  const placement = placementOf({ table }, at);
  const { group, partition, jurisdiction } = at;
  const isFound = placement.config !== null || jurisdiction === null;
  if (isFound || isUnverified(env, placement)) return poolSourceOfHeld(env, placement, table);
  return () => poolOf(env, group, partition, { location: null, jurisdiction });
}

export function placementOf(
  { table }: Pick<LeaseContext, 'table'>,
  at: PoolAt & Pick<PoolHold, 'isOfProvider'>,
): Placement {
  const { group, partition, assumed, isOfProvider = false } = at;
  const config = definedGroup(table.snapshot.config, group) ?? null;
  return { group, partition, assumed, config, isOfProvider, ruledLane: null };
}

/** The lease in one pool as described to an instance that may not know it. */
function claimOf(lease: LeaseToken, hold: PoolHold): ResumeRequest {
  const { caller, agent, slots, ticketId, grantedAt, upstream, wanted } = lease;
  const { expiresAt, isOfProvider: _, wantsServed: __, jurisdiction: ___, ...at } = hold;
  const now = steadyClock.now();
  return {
    ...at,
    caller,
    agent,
    slots,
    ticketId,
    upstream,
    model: wanted.model ?? null,
    kind: 'lease',
    byId: true,
    heldMs: Math.max(0, now - grantedAt),
    hasLapsed: now >= expiresAt,
    sentAt: now,
  };
}

export type RenewedPools =
  | { readonly kind: 'ok'; readonly pools: readonly PoolHold[] }
  | { readonly kind: 'revoking' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unreachable'; readonly group: string };

export async function renewAll(call: LeaseContext, lease: LeaseToken): Promise<RenewedPools> {
  const answers = await Promise.all(
    lease.pools.map(async (hold) => [hold, await renewOne(call, lease, hold)] as const),
  );
  const pools: PoolHold[] = [];
  let unreachable: string | null = null;
  for (const [hold, answer] of answers) {
    if (answer === null) unreachable ??= hold.group;
    else if (answer.kind !== 'ok') return { kind: answer.kind };
    else pools.push({ ...hold, attachment: answer.attachment, expiresAt: answer.expiresAt });
  }
  return unreachable === null ? { kind: 'ok', pools } : { kind: 'unreachable', group: unreachable };
}

async function renewOne(
  call: LeaseContext,
  lease: LeaseToken,
  hold: PoolHold,
): Promise<RenewByIdAnswer | null> {
  const pool = poolAtSource(call, hold);
  return tryFor(call.after, async () => {
    const answer = await pool().renew(hold.leaseId, null, claimOf(lease, hold));
    if (answer.kind === 'gone' && answer.attachment < hold.attachment) {
      throw new Error('a replaced instance reported the lease as gone');
    }
    return answer;
  });
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
      const pool = poolAtSource(call, hold);
      const { status, settle } = end;
      // A provider's failure counts for the groups that represent it, and never for the caller's own.
      const isOther = end.outcome === 'failed' && hold.isOfProvider !== true;
      const outcome = isOther ? 'success' : end.outcome;
      const settlement = settle?.(placementOf(call, hold));
      const ended = await tryFor(call.after, async () => {
        await pool().release(hold.leaseId, outcome, status, settlement, claimOf(lease, hold));
        return true;
      });
      return ended === null ? [hold.group] : [];
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
  const pool = poolAtSource(call, hold);
  await tryFor(call.after, async () => {
    await pool().report(hold.leaseId, signal, isRepeat, claimOf(lease, hold));
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
      const pool = poolAtSource(call, at);
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
async function tryFor<T>(after: Schedule, work: () => Promise<T>): Promise<T | null> {
  const untilAt = steadyClock.now() + ATTEMPTS_MS;
  for (let retries = 0; steadyClock.now() < untilAt; retries += 1) {
    try {
      return await within(ANSWER_LOST_MS, work(), after);
    } catch (error) {
      await pause(resumeRetryMs(retries, isOverload(error)), after);
    }
  }
  return null;
}
