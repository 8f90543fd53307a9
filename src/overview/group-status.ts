import {
  isHeld,
  switchesInForce,
  switchesOf,
  autoGroupNamed,
  definedGroup,
  kindOfLimits,
} from '../routing/implied-groups.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { GAUGES, MEMBER_GAUGES } from '../contract/gauges.ts';
import { slotsTaken } from '../contract/status-words.ts';
import type {
  PoolStatus,
  SpendStatus,
  Lately,
  MemberStatus,
  LimitsSeenStatus,
} from '../contract/status.ts';
import type { GroupStatus, PartitionStatus } from '../contract/group-status.ts';
import type { RefusalCount } from '../contract/reasons.ts';
import { plural } from '../core/words/figures.ts';
import { steadyClock } from '../runtime/async.ts';
import { configuredSlots } from '../routing/group-limits.ts';
import { takesCalls } from '../routing/pool.ts';
import {
  joinAbout,
  joinScopes,
  separateAbout,
  separateMembers,
  isHolding,
} from '../routing/scopes-shown.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { Overlap } from '../routing/overlaps.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import {
  joinRows,
  longestPause,
  smallest,
  sumUp,
  joinLastHours,
  joinLately,
  withRefusedHere,
} from './joins.ts';
import { joinUpstreams, upstreamsOfGroup } from './upstream-health.ts';
import type { PoolReply } from './pools.ts';

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
  return {
    ...joinRows(AMOUNTS, all),
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

type StateGauges = Pick<
  PoolStatus,
  'limit' | 'in_use' | 'cooling' | 'unclaimed' | 'lent' | 'queued'
>;

type StateFacts = Pick<
  GroupStatus,
  | 'in_use'
  | 'queued'
  | 'breaker'
  | 'paused'
  | 'paused_until'
  | 'draining'
  | 'dry_run'
  | 'budget_spent'
  | 'rate_used_up'
  | 'about'
  | 'scopes'
  | 'lately'
> & { readonly error?: string };

/** Returns the most important state of a group. */
export function stateOf(group: StateFacts, pools: readonly StateGauges[]): GroupStatus['state'] {
  if (group.error !== undefined && group.in_use + group.queued === 0) return 'unreachable';
  const isOfAll = group.about === undefined;
  if (group.breaker !== 'closed' && isOfAll) return 'broken';
  if (group.paused) return 'paused';
  if (group.draining) return 'draining';
  if (group.dry_run) return 'dry run';
  if (group.budget_spent !== null) return 'budget spent';
  if (group.paused_until !== null && isOfAll) return 'paused';
  const failure = failureOf(group.lately);
  if (failure?.isPlain === true) return failure.state;
  if (isFull(pools)) return 'full';
  if (isPartlyPaused(group)) return 'partly paused';
  if (failure !== null) return failure.state;
  return group.rate_used_up === null ? 'flowing' : 'rate limited';
}

/** Failures in a row that are more important than `full`. Fewer may come from one client. */
const PLAIN_FAILURES = 5;

/** Refusals that mean that an upstream is broken or unreachable. */
const FAULTS: ReadonlySet<string> = new Set(['error']);

interface FailureState {
  readonly state: GroupStatus['state'];
  readonly isPlain: boolean;
}

/** Returns the failure state of a group that serves nothing. null if it serves calls or has none. */
function failureOf(lately: Lately | undefined): FailureState | null {
  if (lately?.is_failing !== true) return null;
  const { refusals, rejected, ended, answered_errors: errors = {} } = lately;
  const faults = sumOf(refusals, (kind) => FAULTS.has(kind));
  const answered = sumOf(errors, () => true);
  const refused = sumOf(refusals, (kind) => !FAULTS.has(kind)) + answered;
  const rejections = sumOf(rejected, () => true);
  const isRefused = refused > 0 && refused >= Math.max(rejections, faults);
  const failures = faults + refused + rejections + (ended['cancelled'] ?? 0);
  return {
    state: isRefused ? 'refused by upstream' : 'nothing served',
    isPlain: failures >= PLAIN_FAILURES,
  };
}

function sumOf(tally: Lately['refusals'], isMeant: (name: string) => boolean): number {
  return Object.entries(tally).reduce(
    (sum, [name, count]) => (isMeant(name) ? sum + count : sum),
    0,
  );
}

/** Whether only calls of some models, tiers or keys are stopped. */
function isPartlyPaused({ about, breaker, paused_until: until, scopes = [] }: StateFacts): boolean {
  const isOwn = about !== undefined && (until !== null || breaker !== 'closed');
  return isOwn || scopes.some(isHolding);
}

/** Whether the slots of all pools are in use, or those of one pool with queued calls. */
function isFull(pools: readonly StateGauges[]): boolean {
  if (pools.some((pool) => pool.queued > 0 && freeOf(pool) <= 0)) return true;
  const isAnyUsed = pools.some((pool) => slotsTaken(pool) > 0);
  return isAnyUsed && pools.every((pool) => freeOf(pool) <= 0);
}

function freeOf(pool: StateGauges): number {
  return (pool.limit.effective ?? Infinity) - slotsTaken(pool);
}

const SUMMED = { shape: 'number', join: 'sum' } as const;

const AFFINITY_COUNTS = { kept_total: SUMMED, left_total: SUMMED, waited_total: SUMMED };

/** The amounts of the spend of a pool and of a member. */
const AMOUNTS = {
  hour_usd: SUMMED,
  day_usd: SUMMED,
  month_usd: SUMMED,
  reserved_usd: SUMMED,
};

export function joinMembers(
  pools: readonly PoolStatus[],
): Pick<PoolStatus, 'members' | 'affinity'> {
  const reported = pools.flatMap(({ members }) => members ?? []);
  const affinities = pools.flatMap(({ affinity }) => affinity ?? []);
  if (affinities.length === 0) return {};
  return {
    members: [...Map.groupBy(reported, ({ id }) => id).values()].flatMap(joinMember),
    affinity: joinRows(AFFINITY_COUNTS, affinities),
  };
}

/** Joins the reports of several pools on one member. Its configuration comes from the first. */
function joinMember(all: readonly MemberStatus[]): MemberStatus[] {
  const [first, second] = all;
  if (first === undefined) return [];
  if (second === undefined) return [first];
  const spends = all.flatMap(({ spend }) => spend ?? []);
  return [
    {
      ...withoutPause(first),
      ...joinAbout(all),
      limit: { ...first.limit, effective: smallest(all.map(({ limit }) => limit.effective)) },
      ...joinRows(MEMBER_GAUGES, all),
      ...longestPause(all),
      rates: null,
      spend: spends.length === 0 ? null : joinRows(AMOUNTS, spends),
    },
  ];
}

function withoutPause({ pause: _pause, about: _about, ...rest }: MemberStatus): MemberStatus {
  return rest;
}

/** Joins the limits that pools observed. For each upstream and model the latest report counts. */
function joinLimitsSeen(pools: readonly PoolStatus[]): Pick<PoolStatus, 'limits_seen'> {
  const all = pools.flatMap(({ limits_seen: seen }) => seen ?? []);
  if (all.length === 0) return {};
  const latest = new Map<string, LimitsSeenStatus>();
  for (const one of all.toSorted((a, b) => (a.at < b.at ? -1 : 1))) {
    latest.set(`${one.upstream} ${one.model ?? ''}`, one);
  }
  return { limits_seen: [...latest.values()] };
}
