import { stateOf } from '../../../src/overview/group-state.ts';
import type { GroupView } from '../../../dashboard/src/model/status.ts';

/** A quiet group of five slots, but for what a test says. */
export function groupStatus(changes: Partial<GroupView> = {}): GroupView {
  const group: GroupView = {
    name: 'openai-shared',
    kind: 'configured',
    limit: { configured: 5, effective: 5, source: 'configured' },
    in_use: 0,
    cooling: 0,
    cooldown_ms: 0,
    unclaimed: 0,
    unclaimed_until: null,
    lent: 0,
    queued: 0,
    queued_by_lane: { high: 0, normal: 0, low: 0 },
    stalled_ms: null,
    oldest_wait_ms: 0,
    wait_p50_ms: null,
    wait_p95_ms: null,
    paused: false,
    paused_until: null,
    breaker: 'closed',
    breaker_until: null,
    refusals_total: {},
    rates: {},
    spend: null,
    draining: false,
    dry_run: false,
    granted_total: 0,
    rejected_total: {},
    would_wait_total: 0,
    expired_total: 0,
    resurrected_total: 0,
    passed_unlimited_total: 0,
    state: 'flowing',
    upstreams: [],
    budget_spent: null,
    rate_used_up: null,
    last_hour: { granted: 0, rejected: {}, refusals: {}, steps: { refused: [], wait_p95_ms: [] } },
    idle_ms: 0,
    overlaps_with: [],
    partitions: [],
    ...changes,
  };
  if (changes.state !== undefined) return group;
  const pools = group.partitions.flatMap((pool) => ('error' in pool ? [] : [pool]));
  return { ...group, state: stateOf(group, pools.length === 0 ? [group] : pools) };
}

/** One pool of a split group. */
export function partitionStatus(
  partition: string,
  changes: Partial<GroupView> = {},
): GroupView['partitions'][number] {
  const {
    name: _n,
    state: _s,
    kind: _k,
    overlaps_with: _o,
    partitions: _p,
    error: _e,
    stalled_ms = null,
    ...gauges
  } = groupStatus(changes);
  return { ...gauges, stalled_ms, partition };
}
