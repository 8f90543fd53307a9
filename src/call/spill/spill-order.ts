import { steadyClock } from '../../runtime/steady-clock.ts';
import type { OnSaturated } from '../../contract/config/reactions.ts';
import { NOT_TOLD_BEFORE, type PoolStatus } from '../../contract/status.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import { priceListId, priceOf } from '../../providers/prices/price-table.ts';
import { within } from '../../runtime/within.ts';
import type { Candidate } from '../plan.ts';
import { poolSource } from '../acquire/pools.ts';
import { latencyMs } from '../observe/upstream-latency.ts';

/** By what the upstreams that a call may spill to are put into order. */
export type SpillOrder = Exclude<OnSaturated, string>['order'];

/** How long a pool's answer of how busy it is stays good; it is given up on after half of it. */
const BUSY_FRESH_MS = 1_000;
const BUSY_MAX = 1_000;

/** How full pools were when they were last asked: calls under way or waiting, per slot. */
const busyness = new Map<string, { readonly at: number; readonly value: number }>();

/** Puts the candidates that a call may spill to into the order in which they are tried. */
export async function inSpillOrder<One extends Candidate>(
  candidates: readonly One[],
  order: SpillOrder,
): Promise<readonly One[]> {
  if (order === 'listed' || candidates.length < 2) return candidates;
  const ranked = await Promise.all(
    candidates.map(async (one) => ({ one, rank: await rankOf(one, order) })),
  );
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ one }) => one);
}

function rankOf(candidate: Candidate, order: SpillOrder): number | Promise<number> {
  const { upstream, model } = candidate.located;
  switch (order) {
    case 'listed':
      return 0;
    case 'latency':
      return latencyMs(upstream.id);
    case 'price': {
      const price = priceOf(priceListId(upstream), model, upstream.prices);
      return price === null ? Infinity : price.inputUsd + price.outputUsd;
    }
    case 'least_busy':
      return busynessOf(candidate);
  }
}

/** Tells how full the fullest pool is that the call would be in. */
async function busynessOf({ call, placements }: Candidate): Promise<number> {
  const all = await Promise.all(
    placements.map(async (placement) => {
      const name = poolName(placement.group, placement.partition);
      const known = busyness.get(name);
      if (known !== undefined && steadyClock.now() - known.at < BUSY_FRESH_MS) return known.value;
      if (busyness.size >= BUSY_MAX) busyness.clear();
      const pool = poolSource(call.env, placement, call.table)();
      const value = await within(BUSY_FRESH_MS / 2, pool.status()).then(
        (status) => fullness(status, placement),
        () => Infinity,
      );
      busyness.set(name, { at: steadyClock.now(), value });
      return value;
    }),
  );
  return Math.max(...all);
}

function fullness(status: PoolStatus, { config, assumed }: Placement): number {
  const { in_use: inUse, queued, limit, paused_until: pausedUntil, breaker } = status;
  const { unclaimed } = { ...NOT_TOLD_BEFORE, ...status };
  const slotsMax =
    config === null ? (assumed?.slotsMax ?? 0) : (config.limits.max_concurrency ?? Infinity);
  const isStopped = pausedUntil !== null || breaker === 'open';
  if (isStopped || config?.paused === true || config?.draining === true) return Infinity;
  if (slotsMax === 0) return Infinity;
  // A pool that nobody has used yet does not know its limit.
  return (inUse + unclaimed + queued) / (limit.effective || slotsMax);
}
