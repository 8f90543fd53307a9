import type { Config, GroupConfig } from '../contract/config/config.ts';
import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';
import { GAUGES, MEMBER_GAUGES, METRICS_ONLY, type GaugeRow } from '../contract/gauges.ts';
import type { PresenceReport } from '../contract/rpc/directory-rpc.ts';
import type { PoolMetrics } from '../contract/rpc/feed-rpc.ts';
import type { MemberStatus, PoolStatus, SpendStatus } from '../contract/status.ts';
import { emptyHistogram } from '../core/parts/totals.ts';
import { noLag } from '../core/parts/lag.ts';
import { emptyRates, type RateUse } from '../core/parts/rates.ts';
import { periodBegin } from '../core/parts/spend.ts';
import { instant, type InstantMs } from '../core/words/ids.ts';
import { switchesInForce, definedGroup } from '../routing/implied-groups.ts';
import { configuredSlots, ratesOf, rateStatuses } from '../routing/group-limits.ts';
import { isOwnPartition, type PlacedPool } from '../routing/pool.ts';
import { restingScopes } from '../routing/scopes-shown.ts';
import { restingHour, restingLately, type NamesWith } from './joins.ts';
import { spentNow, restingUpstreams } from './upstream-health.ts';

/** Age from which on the waits of a status are outdated. */
const WAITS_MS = 300_000;

type UnusedRows = Readonly<Record<string, Pick<GaugeRow, 'shape' | 'idle' | 'unused'>>>;

type Unused<Rows> = {
  readonly [Name in NamesWith<Rows, 'unused'>]: Rows[Name] extends { readonly unused: infer Value }
    ? Value
    : never;
};

/** Returns the column `unused` of a table of gauges. */
function unusedOf<Rows extends UnusedRows>(rows: Rows): Unused<Rows> {
  const values = Object.entries(rows).flatMap(([name, { unused }]) =>
    unused === undefined ? [] : [[name, unused]],
  );
  return Object.fromEntries(values) as Unused<Rows>;
}

/** Returns the values of an idle pool by the column `idle` of each row. Rows without that column are left out. */
function idleOf<Rows extends UnusedRows, Values extends object>(
  rows: Rows,
  reported: Values,
): Pick<Values, NamesWith<Rows, 'idle'> & keyof Values> {
  const idle: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(rows)) {
    if (row.idle === undefined) continue;
    const isKept = row.idle === 'kept';
    const value = isKept ? (reported as Readonly<Record<string, unknown>>)[name] : row.unused;
    if (value !== undefined) idle[name] = value;
  }
  return idle as Pick<Values, NamesWith<Rows, 'idle'> & keyof Values>;
}

/** The values of a group that was never used, without those that the configuration determines. */
export const UNUSED = unusedOf(GAUGES);
const UNUSED_MEMBER = unusedOf(MEMBER_GAUGES);
const UNUSED_METRICS = unusedOf(METRICS_ONLY);

/** Returns the figures of a configured group that was never used, as its pool would report them. */
export function untouched(group: GroupConfig, now: InstantMs): PoolMetrics {
  return {
    status: untouchedStatus(group, now),
    waits: emptyHistogram(),
    holds: emptyHistogram(),
    ...UNUSED_METRICS,
  };
}

function untouchedStatus(group: GroupConfig, now: InstantMs): PoolStatus {
  const { rates } = ratesOf(group.limits);
  const configured = configuredSlots(group);
  return {
    group: group.name,
    partition: null,
    ...UNUSED,
    limit: { configured, effective: configured, source: 'configured' },
    cooldown_ms: configuredCooldown(group) ?? noLag().ms,
    ...switchesNow(group),
    rates: rateStatuses(emptyRates(), rates, now),
    spend: hasBudget(group) ? NOTHING_SPENT : null,
    ...untouchedMembers(group, now),
  };
}

const MEMBER_SPENT_NOTHING = { hour_usd: 0, day_usd: 0, month_usd: 0, reserved_usd: 0 };

const NOTHING_SPENT = { ...MEMBER_SPENT_NOTHING, day_usd_by_key: {}, day_usd_by_agent: {} };

/**
 * Returns the figures of an idle pool: its last report, with changes of the configuration since and without what has
 * expired. The last report may be of a pool in use whose process ended without a later report.
 */
export function resting(
  { group: name, partition }: PlacedPool,
  report: PresenceReport,
  config: Config,
  now: InstantMs,
): PoolMetrics {
  const { status, ...counted } = report.metrics;
  const { limit, cooldown_ms, rates, spend, dry_run } = status;
  const at = instant(report.at);
  const group = definedGroup(config, name);
  const idleMs = status.idle_ms + Math.max(0, now - at);
  const { wait_p50_ms, wait_p95_ms } = idleMs < WAITS_MS ? status : UNUSED;
  const isSplit = group !== undefined && !isOwnPartition(partition);
  return {
    waits: counted.waits,
    holds: counted.holds,
    ...idleOf(METRICS_ONLY, counted),
    status: {
      group: status.group,
      partition: status.partition,
      ...idleOf(GAUGES, status),
      wait_p50_ms,
      wait_p95_ms,
      ...(group === undefined
        ? { limit, cooldown_ms, rates, dry_run, ...switchesInForce(config, name) }
        : byGroup(status, report, group, now)),
      ...pauseNow(status, now),
      ...restingScopes(status, now),
      spend: spend === null ? newBudget(group) : spendNow(spend, report.at, now),
      budget_spent: restingBudget(status.budget_spent, group, at, now),
      last_hour: restingHour(status.last_hour, idleMs),
      ...restingLately(status.lately, idleMs),
      upstreams: restingUpstreams(status.upstreams, at, now),
      ...(isSplit && restingMembers(report, group, now)),
      idle_ms: idleMs,
      as_of: new Date(report.at).toISOString(),
    },
  };
}

/** Applies the current configuration to a report. What the pool learned holds until its next use. */
function byGroup(
  { limit, cooldown_ms: lastMs }: PoolStatus,
  { rates: used }: PresenceReport,
  group: GroupConfig,
  now: InstantMs,
): Pick<PoolStatus, 'limit' | 'cooldown_ms' | 'rates' | 'paused' | 'draining' | 'dry_run'> {
  const configured = group.limits.max_concurrency;
  const learned = limit.source === 'learned' ? limit.effective : null;
  const { rates } = ratesOf(group.limits);
  return {
    ...switchesNow(group),
    limit:
      learned === null
        ? { configured, effective: configured, source: 'configured' }
        : { configured, effective: Math.min(learned, configured ?? Infinity), source: 'learned' },
    cooldown_ms: configuredCooldown(group) ?? lastMs,
    rates: rateStatuses(used, rates, now),
  };
}

/** Keeps a reported spent budget until its period ends, or until the budget is raised or removed. */
function restingBudget(
  reported: PoolStatus['budget_spent'],
  group: GroupConfig | undefined,
  reportedAt: InstantMs,
  now: InstantMs,
): PoolStatus['budget_spent'] {
  if (reported === null || group === undefined) return null;
  if (periodBegin(reported.window, now) > reportedAt) return null;
  // The budget may be that of a member.
  const isInForce = [group, ...group.members].some(({ limits }) => {
    const { perHourUsd: hour, perDayUsd: day, perMonthUsd: month } = ratesOf(limits).budgets;
    const limit = { hour, day, month }[reported.window];
    return limit !== null && limit <= reported.limit_usd;
  });
  return isInForce ? reported : null;
}

function newBudget(group: GroupConfig | undefined): SpendStatus | null {
  return group !== undefined && hasBudget(group) ? NOTHING_SPENT : null;
}

function hasBudget({ limits }: GroupConfig): boolean {
  return Object.values(ratesOf(limits).budgets).some((budget) => budget !== null);
}

/** Returns the configured cool-down. null means it is learned. */
function configuredCooldown({ holds: { release_cooldown_ms: ms } }: GroupConfig): number | null {
  return ms === 'auto' ? null : ms;
}

function switchesNow({ paused, draining, dry_run }: GroupConfig) {
  return { paused, draining, dry_run };
}

function spendNow(spend: SpendStatus, reportedAt: number, now: InstantMs): SpendStatus {
  const at = instant(reportedAt);
  // Spend of 1 in each period shows which periods have ended.
  const ofToday = { hour_usd: 1, day_usd: 1, month_usd: 1 };
  const isSameDay = spentNow(ofToday, at, now).day_usd > 0;
  return {
    ...spend,
    reserved_usd: 0,
    ...spentNow(spend, at, now),
    ...(isSameDay ? {} : { day_usd_by_key: {}, day_usd_by_agent: {} }),
  };
}

type MembersStatus = Pick<PoolStatus, 'members' | 'affinity'>;

const NO_AFFINITY = { kept_total: 0, left_total: 0, waited_total: 0 };

/** Returns the members of a group that was never used, as its pool would report them. */
export function untouchedMembers({ members }: GroupConfig, now: InstantMs): MembersStatus {
  if (members.length === 0) return {};
  return { members: members.map((member) => untouchedMember(member, now)), affinity: NO_AFFINITY };
}

/** Adds the members of the group to the status of a pool that has had no call yet and reports none. */
export function withMembers(
  status: PoolStatus,
  { group: name, partition }: PlacedPool,
  config: Config,
  now: InstantMs,
): PoolStatus {
  const group = definedGroup(config, name);
  const isReported = status.members !== undefined || isOwnPartition(partition);
  return isReported || group === undefined
    ? status
    : { ...status, ...untouchedMembers(group, now) };
}

/** Returns the members of an idle pool and their limit: its last report, with the current configuration applied. */
export function restingMembers(
  report: PresenceReport,
  group: GroupConfig,
  now: InstantMs,
): MembersStatus | (MembersStatus & Pick<PoolStatus, 'limit'>) {
  const { members: reported = [], affinity = NO_AFFINITY } = report.metrics.status;
  const before = new Map(reported.map((member) => [member.id, member]));
  const members = group.members.map((config) => {
    const fresh = untouchedMember(config, now, report.memberRates?.[memberIdOf(config)]);
    const known = before.get(fresh.id);
    return known === undefined ? fresh : restingMember(known, fresh, instant(report.at), now);
  });
  return members.length === 0 ? {} : { members, affinity, limit: limitOf(group, members) };
}

/** Adds up the slots of members that are not ejected. */
function limitOf(group: GroupConfig, members: readonly MemberStatus[]): PoolStatus['limit'] {
  const isIn = members.filter(({ out }) => out === null);
  const ofEach = isIn.map(({ limit }) => limit.effective ?? Infinity);
  const ofAll = group.limits.max_concurrency ?? Infinity;
  const slots = Math.min(
    ofAll,
    ofEach.reduce((sum, each) => sum + each, 0),
  );
  const hasLearned = members.some(({ limit }) => limit.source === 'learned');
  return {
    configured: configuredSlots(group),
    effective: Number.isFinite(slots) ? slots : null,
    source: hasLearned ? 'learned' : 'configured',
  };
}

function untouchedMember(
  member: MemberConfig,
  now: InstantMs,
  used: RateUse = emptyRates(),
): MemberStatus {
  const { rates, budgets } = ratesOf(member.limits);
  const configured = member.limits.max_concurrency;
  const isBudgeted = Object.values(budgets).some((budget) => budget !== null);
  return {
    id: memberIdOf(member),
    upstream: member.upstream,
    tier: member.tier,
    weight: member.weight,
    enabled: member.enabled,
    ...UNUSED_MEMBER,
    limit: { configured, effective: member.enabled ? configured : 0, source: 'configured' },
    rates: rateStatuses(used, rates, now),
    spend: isBudgeted ? MEMBER_SPENT_NOTHING : null,
  };
}

/** Returns a reported pause. It may have ended since. */
export function pauseNow(
  { paused_until: until, pause }: Pick<PoolStatus, 'paused_until' | 'pause'>,
  now: InstantMs,
): Pick<PoolStatus, 'paused_until' | 'pause'> {
  if (until === null || Date.parse(until) <= now) return { paused_until: null };
  return { paused_until: until, ...(pause !== undefined && { pause }) };
}

/** Applies the current configuration to the report on a member. What was learned of it holds until its next use. */
function restingMember(
  known: MemberStatus,
  fresh: MemberStatus,
  reportedAt: InstantMs,
  now: InstantMs,
): MemberStatus {
  const { limit, spend } = known;
  const isLearned = fresh.enabled && limit.source === 'learned';
  const configured = fresh.limit.configured ?? Infinity;
  const effective = Math.min(limit.effective ?? Infinity, configured);
  return {
    ...fresh,
    ...idleOf(MEMBER_GAUGES, known),
    limit:
      isLearned && Number.isFinite(effective)
        ? { ...fresh.limit, effective, source: 'learned' }
        : fresh.limit,
    ...pauseNow(known, now),
    spend: spend === null ? fresh.spend : { ...spentNow(spend, reportedAt, now), reserved_usd: 0 },
  };
}
