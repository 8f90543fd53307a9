import { GAUGES, MEMBER_GAUGES, METRICS_ONLY } from '../../contract/gauges.ts';
import type { PoolMetrics } from '../../contract/rpc/feed-rpc.ts';
import type { PoolStatus, ScopeStatus } from '../../contract/status.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import { definedGroup } from '../../routing/implied-groups.ts';
import type { PlacedPool } from '../../routing/pool.ts';
import { scopeKindOf } from '../../routing/scopes-shown.ts';
import type { PoolReply } from '../../overview/pools.ts';
import type { Exposition, Labels } from './exposition.ts';
import * as families from './families.ts';

/** Maximum number of partitions of a group with their own series. The others share one set of series. */
export const PARTITIONS_MAX = 50;

/** Label value of the others. No partition is named by a single word in capitals. */
const OTHERS = 'OTHER';

/**
 * Adds the samples of all pools. Labels are bounded: in a group with many partitions, the first ones by name have their
 * own series, so that every scrape has the same ones.
 */
export function addPools(
  exposition: Exposition,
  asked: readonly PoolReply<PoolMetrics>[],
  config: Config,
): void {
  const byGroup = Map.groupBy(asked, ({ pool }) => pool.group);
  for (const [group, pools] of byGroup) {
    const budgets = definedGroup(config, group)?.limits.budget_usd ?? null;
    const byName = pools.toSorted((a, b) => (nameOf(a.pool) < nameOf(b.pool) ? -1 : 1));
    for (const [index, one] of byName.entries()) {
      const partition = index < PARTITIONS_MAX ? nameOf(one.pool) : OTHERS;
      const labels = { group, partition };
      addPool(exposition, labels, one);
      if (budgets !== null) addBudgets(exposition, labels, budgets);
    }
  }
}

/** Adds the budgets of a group for each of its pools. Unset budgets have no series. */
function addBudgets(
  to: Exposition,
  labels: Labels,
  { per_hour: hour, per_day: day, per_month: month }: GroupConfig['limits']['budget_usd'],
): void {
  for (const [period, usd] of Object.entries({ hour, day, month })) {
    if (usd !== null) to.add(families.BUDGET, { ...labels, period }, usd);
  }
}

/** Returns the label value of a partition. Prometheus treats an empty label as absent. */
function nameOf({ partition }: PlacedPool): string {
  return partition ?? '';
}

function addPool(to: Exposition, labels: Labels, one: PoolReply<PoolMetrics>): void {
  to.add(families.POOL_UP, labels, 'answer' in one ? 1 : 0);
  if ('error' in one) return;
  const { status } = one.answer;
  addStates(to, labels, status);
  to.addRows(GAUGES, labels, status);
  to.addRows(METRICS_ONLY, labels, one.answer);
  addMembers(to, labels['group'] ?? '', status);
  to.addHistogram(families.WAIT, labels, one.answer.waits);
  to.addHistogram(families.HOLD, labels, one.answer.holds);
}

/** Adds the metrics of a pool that are not the value of one row. */
function addStates(to: Exposition, labels: Labels, status: PoolStatus): void {
  const { limit, rates, spend } = status;
  const isOfAll = status.about === undefined;
  // A limit learned for only some calls does not apply to the others.
  const slots = isOfAll ? limit.effective : (limit.configured ?? limit.effective);
  if (slots !== null) to.add(families.SLOTS_LIMIT, labels, slots);
  if (limit.configured !== null) to.add(families.SLOTS_LIMIT_CONFIGURED, labels, limit.configured);
  to.addEach(families.PAUSED, labels, 'by', {
    operator: status.paused ? 1 : 0,
    upstream: isOfAll && status.paused_until !== null ? 1 : 0,
  });
  const breaker = isOfAll ? status.breaker : 'closed';
  for (const state of ['closed', 'half_open', 'open'] as const) {
    to.add(families.BREAKER, { ...labels, state }, breaker === state ? 1 : 0);
  }
  addScopes(to, labels, status);
  for (const [name, rate] of Object.entries(rates ?? {})) {
    to.add(families.RATE_LIMIT, { ...labels, limit: name }, rate.limit);
    to.add(families.RATE_LEFT, { ...labels, limit: name }, rate.left);
  }
  if (spend === null) return;
  const { hour_usd: hour, day_usd: day, month_usd: month } = spend;
  to.addEach(families.SPENT, labels, 'period', { hour, day, month });
  to.add(families.RESERVED, labels, spend.reserved_usd);
}

/** Adds the scopes of a pool that hold calls, each with one cause. */
function addScopes(to: Exposition, labels: Labels, status: PoolStatus): void {
  for (const one of holdingScopes(status)) {
    const [scope, by] = [scopeKindOf(one.about), causeOf(one)];
    if (scope !== null && by !== null) to.add(families.SCOPES_STOPPED, { ...labels, scope, by }, 1);
  }
}

type Holding = Pick<ScopeStatus, 'about' | 'paused_until' | 'breaker' | 'queued'>;

/** Returns the scopes of a pool, and those to which the states of the pool or its members apply. */
function holdingScopes({ scopes = [], members, ...own }: PoolStatus): readonly Holding[] {
  const states = members?.filter(({ retired }) => retired !== true) ?? [own];
  const narrow = states.flatMap(({ about, paused_until, breaker }) =>
    about === undefined ? [] : [{ about, paused_until, breaker, queued: 0 }],
  );
  return [...narrow, ...scopes];
}

/** Returns why the calls of a scope are held, or null if they are not. */
function causeOf({ breaker, paused_until: until, queued }: Holding) {
  if (breaker === 'open') return 'breaker';
  if (until !== null) return 'pause';
  if (breaker === 'half_open') return 'breaker';
  return queued > 0 ? 'ceiling' : null;
}

/**
 * Adds the samples of members, summed over the partitions of the group. A group has at most 32 members. Members that
 * are no longer configured are omitted.
 */
function addMembers(to: Exposition, group: string, { members, affinity }: PoolStatus): void {
  for (const member of members ?? []) {
    if (member.retired) continue;
    const labels = { group, member: member.id };
    const { effective } = member.limit;
    if (effective !== null) to.add(families.MEMBER_LIMIT, labels, effective);
    to.addRows(MEMBER_GAUGES, labels, member);
    to.add(families.MEMBER_OUT, labels, member.enabled && member.out !== null ? 1 : 0);
  }
  if (affinity === undefined) return;
  const { kept_total: kept, left_total: left, waited_total: waited } = affinity;
  to.addEach(families.AFFINITY, { group }, 'outcome', { kept, left, waited });
}
