import { UNUSED } from '../../../src/overview/unused-group.ts';
import { stateOf } from '../../../src/overview/group-status.ts';
import type { GroupView } from '../../../dashboard/src/model/status.ts';

/** A quiet group of five slots, but for what a test says. */
export function groupStatus(changes: Partial<GroupView> = {}): GroupView {
  const group: GroupView = {
    name: 'openai-shared',
    kind: 'configured',
    ...UNUSED,
    last_hour: { granted: 0, rejected: {}, refusals: {}, steps: { refused: [], wait_p95_ms: [] } },
    limit: { configured: 5, effective: 5, source: 'configured' },
    paused: false,
    rates: {},
    spend: null,
    draining: false,
    dry_run: false,
    state: 'flowing',
    upstreams: [],
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
