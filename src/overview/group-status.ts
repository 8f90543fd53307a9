import { isHeld, switchesInForce, switchesOf } from '../routing/auto-group-switches.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { GAUGES, slotsTaken } from '../contract/gauges.ts';
import type { PoolStatus, SpendStatus } from '../contract/status.ts';
import type { GroupStatus, PartitionStatus } from '../contract/admin/status-schemas.ts';
import type { RefusalCount } from '../contract/refusals.ts';
import { plural } from '../core/words/figures.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { configuredSlots } from '../routing/configured-slots.ts';
import { takesCalls } from '../routing/pool.ts';
import { joinAbout, joinScopes, separateAbout, separateMembers } from '../routing/scopes-shown.ts';
import { definedGroup, kindOfLimits } from '../routing/key-groups.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { autoGroupNamed } from '../routing/auto-groups.ts';
import type { Overlap } from '../routing/overlaps.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { stateOf } from './group-state.ts';
import { joinRows, longestPause, smallest, sumUp } from './joins.ts';
import { joinLastHours } from './last-hours.ts';
import { joinLately, withRefusedHere } from './last-minutes.ts';
import { joinMembers } from './join-members.ts';
import { joinUpstreams } from './upstream-calls.ts';
import { joinLimitsSeen } from './limits-seen.ts';
import type { PoolReply } from './pools.ts';
import { upstreamsOfGroup } from './upstream-health.ts';

type PoolGauges = Omit<PoolStatus, 'group' | 'partition'>;

/** Adds up the replies of a group's pools. Returns null for a group that is not configured and holds no calls. */
export function groupStatus(
  name: string,
  config: Config,
  replies: readonly PoolReply<PoolStatus>[],
  overlaps: readonly Overlap[],
  refusedHere: readonly RefusalCount[] = [],
): GroupStatus | null {
  const group = definedGroup(config, name) ?? null;
  const shown = replies.filter((one) => takesCalls(one.pool, config) || isBusy(one));
  const kind = kindOf(name, group);
  const set = group ?? (kind === 'automatic' ? switchesInForce(config, name) : null);
  const isKept = group !== null || isHeld(switchesOf(config, name));
  if (!isKept && shown.length === 0) return null;
  const answers = shown.flatMap((one) => ('answer' in one ? [one.answer] : []));
  const isSplit = shown.some((one) => one.pool.partition !== null || !takesCalls(one.pool, config));
  const meeting = overlaps.filter((pair) => pair.includes(name));
  const failed = shown.length - answers.length;
  const limit =
    answers.length === 0 ? limitWithoutPools(name, group, config) : limitOf(group, answers);
  const pools = totals(answers);
  const all = { ...pools, ...withRefusedHere(pools.lately, refusedHere, steadyClock.now()) };
  const error = failed === 0 ? {} : { error: failureNote(failed, shown) };
  const switches = {
    paused: set?.paused ?? answers.some((pool) => pool.paused),
    draining: set?.draining ?? answers.some((pool) => pool.draining),
    dry_run: group?.dry_run ?? answers.some((pool) => pool.dry_run),
  };
  return {
    name,
    kind,
    state: stateOf({ ...all, ...switches, ...error }, answers),
    limit,
    ...all,
    upstreams: upstreamsOfGroup(all.upstreams, { limit, ...all }),
    ...switches,
    overlaps_with: meeting.map(([a, b]) => (a === name ? b : a)),
    ...error,
    partitions: isSplit || group?.partition_by.length ? shown.map(partitionStatus(config)) : [],
  };
}

function kindOf(name: string, group: GroupConfig | null): GroupStatus['kind'] {
  if (group !== null) return kindOfLimits(name) ?? 'configured';
  return name.startsWith(AUTO_PREFIX) ? 'automatic' : 'retired';
}

/** Whether a pool holds calls. An unreachable pool counts as busy, because it may hold some. */
function isBusy(one: PoolReply<PoolStatus>): boolean {
  if ('error' in one) return true;
  return slotsTaken(one.answer) + one.answer.queued > 0;
}

/** Returns the limit of each pool. Where pools differ for a moment, the smallest limit is shown. */
function limitOf(group: GroupConfig | null, answers: readonly PoolStatus[]): PoolGauges['limit'] {
  const limits = answers.map((pool) => pool.limit).filter(isDefined);
  const least = smallest(limits.map((limit) => limit.effective));
  if (group === null) {
    const [first = { configured: null, source: 'unknown' as const }] = limits;
    return { ...first, effective: least };
  }
  const configured = configuredSlots(group);
  const effective = limits.length === 0 ? configured : least;
  return { configured, effective, source: limits[0]?.source ?? 'configured' };
}

/** Returns the limit of a group whose pools do not exist yet, such as a group that was paused before its first call. */
function limitWithoutPools(
  name: string,
  group: GroupConfig | null,
  config: Config,
): PoolGauges['limit'] {
  if (group !== null) return limitOf(group, []);
  const automatic = autoGroupNamed(name, resolveUpstreams(config, BUILT_IN_UPSTREAMS));
  if (automatic === null) return limitOf(null, []);
  const { slotsMax, source } = automatic.assumed;
  return { configured: null, effective: slotsMax, source };
}

/** Whether a limit is defined. A pool without a call yet reports 0 slots, although nothing configures that. */
function isDefined({ configured, effective, source }: PoolGauges['limit']): boolean {
  return !(source === 'configured' && configured === null && effective === 0);
}

/** Fields that the configuration of a group determines. */
type GroupWideField = 'limit' | 'paused' | 'draining' | 'dry_run';

type GroupTotals = Omit<PoolGauges, GroupWideField | 'stalled_ms'> &
  Pick<GroupStatus, 'stalled_ms'>;

/** Joins the pools of a group. The rules here are those of the rows without a join. */
function totals(all: readonly PoolStatus[]): GroupTotals {
  const pools = separateMembers(separateAbout(all));
  const { stalled_ms: stalledMs, ...joined } = joinRows(GAUGES, pools);
  const [first, second] = pools;
  return {
    ...joined,
    // Without a pool, it is unknown whether calls end.
    ...(first !== undefined && { stalled_ms: stalledMs }),
    ...longestPause(pools),
    ...joinAbout(pools),
    ...joinScopes(pools.flatMap(({ scopes }) => scopes ?? [])),
    rates: second === undefined ? (first?.rates ?? {}) : null,
    spend: spendOf(pools.flatMap(({ spend }) => spend ?? [])),
    ...joinMembers(pools),
    ...joinLimitsSeen(pools),
    upstreams: joinUpstreams(pools.flatMap(({ upstreams }) => upstreams)),
    budget_spent: pools.every((pool) => pool.budget_spent !== null)
      ? (first?.budget_spent ?? null)
      : null,
    last_hour: joinLastHours(pools.map((pool) => pool.last_hour)),
    ...joinLately(pools.flatMap(({ lately }) => lately ?? [])),
  };
}

function spendOf(all: readonly SpendStatus[]): SpendStatus | null {
  if (all.length === 0) return null;
  const sum = (of: (spend: SpendStatus) => number) => all.reduce((usd, one) => usd + of(one), 0);
  return {
    hour_usd: sum((spend) => spend.hour_usd),
    day_usd: sum((spend) => spend.day_usd),
    month_usd: sum((spend) => spend.month_usd),
    reserved_usd: sum((spend) => spend.reserved_usd),
    day_usd_by_key: sumUp(all.map((spend) => spend.day_usd_by_key)),
    day_usd_by_agent: sumUp(all.map((spend) => spend.day_usd_by_agent)),
  };
}

function partitionStatus(config: Config): (one: PoolReply<PoolStatus>) => PartitionStatus {
  return (one) => {
    const { partition } = one.pool;
    if ('error' in one) return { partition, error: one.error };
    const { group: _group, partition: _partition, ...gauges } = one.answer;
    return takesCalls(one.pool, config)
      ? { ...gauges, partition }
      : { ...gauges, partition, retired: true };
  };
}

function failureNote(failed: number, shown: readonly PoolReply<PoolStatus>[]): string {
  const first = shown.flatMap((one) => ('error' in one ? [one.error] : []))[0] ?? '';
  return `${failed} of ${plural(shown.length, 'pool')} did not respond: ${first}`;
}
