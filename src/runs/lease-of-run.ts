import { isVerifiedLater } from '../contract/pool-name.ts';
import type { RenewByIdAnswer, ResumeRequest } from '../contract/rpc/group-rpc.ts';
import type { LeaseOutcome } from '../core/words/outcome.ts';
import { directoryOf, verificationsOf, type Env } from '../env.ts';
import { poolOf } from '../routing/pool.ts';
import { pause } from '../runtime/background.ts';
import type { Schedule } from '../runtime/call-clock.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { within } from '../runtime/within.ts';
import type { HeldByRun } from './run.ts';

/** Time limit for a pool's answer. */
const ANSWER_LOST_MS = 5_000;

/** Pause before each attempt to release a lease. A pool that is being reset is soon available again. */
const RELEASE_PAUSES_MS = [0, 500, 2_000];

/** Renews a lease by its id, wherever its pool is. */
export function renewLease(env: Env, lease: HeldByRun, after: Schedule): Promise<RenewByIdAnswer> {
  return within(ANSWER_LOST_MS, renewAt(env, lease), after);
}

async function renewAt(env: Env, lease: HeldByRun): Promise<RenewByIdAnswer> {
  const held = heldNow(lease);
  const { leaseId, group, partition } = held;
  const { status } = lease;
  if (env.TRIALS === undefined || !isVerifiedLater(held)) {
    return poolOf(env, group, partition, lease).renew(leaseId, status, held);
  }
  const answer = await verificationsOf(env).renew(leaseId, status, held);
  if (answer.kind !== 'proved') return answer;
  const own = partition === null ? null : await directoryOf(env).share(group, partition);
  return poolOf(env, group, own, lease).renew(leaseId, status, { ...held, partition: own });
}

/** Releases a lease. If all attempts fail, the lease expires by its TTL. */
export async function releaseLease(
  env: Env,
  lease: HeldByRun,
  outcome: LeaseOutcome,
  after: Schedule,
): Promise<void> {
  const held = heldNow(lease);
  const { leaseId, group, partition } = held;
  const end = [leaseId, outcome, lease.status, undefined, held] as const;
  const isUnverified = env.TRIALS !== undefined && isVerifiedLater(held);
  for (const pauseMs of RELEASE_PAUSES_MS) {
    if (pauseMs > 0) await pause(pauseMs, after);
    try {
      const released = isUnverified
        ? verificationsOf(env).release({ group, partition }, ...end)
        : poolOf(env, group, partition, lease).release(...end);
      return await within(ANSWER_LOST_MS, released, after);
    } catch {
      // The next attempt follows. After the last one the TTL ends the lease.
    }
  }
}

/** Describes the lease as its holder would now. */
function heldNow({ held, grantedAt, expiresAt }: HeldByRun): ResumeRequest {
  const now = steadyClock.now();
  return { ...held, heldMs: now - grantedAt, hasLapsed: now >= expiresAt, sentAt: now };
}
