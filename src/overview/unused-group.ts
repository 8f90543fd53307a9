import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { PresenceReport } from '../contract/rpc/presence-rpc.ts';
import type { PoolMetrics } from '../contract/rpc/pool-metrics.ts';
import type { PoolStatus, SpendStatus } from '../contract/status.ts';
import { emptyHistogram } from '../core/parts/histogram.ts';
import { noLag } from '../core/parts/lag.ts';
import { emptyRates } from '../core/parts/rates.ts';
import { periodBegin } from '../core/parts/spend.ts';
import { instant, type InstantMs } from '../core/words/ids.ts';
import { switchesInForce } from '../routing/auto-group-switches.ts';
import { configuredSlots } from '../routing/configured-slots.ts';
import { ratesOf, rateStatuses } from '../routing/group-rates.ts';
import { definedGroup } from '../routing/key-groups.ts';
import { isOwnPartition } from '../routing/partition.ts';
import type { PlacedPool } from '../routing/pool.ts';
import { restingScopes } from '../routing/scopes-shown.ts';
import { NOTHING_LATELY, restingHour } from './last-hours.ts';
import { spentNow } from './spent-now.ts';
import { restingLately } from './last-minutes.ts';
import { restingUpstreams } from './upstream-calls.ts';
import { pauseNow, restingMembers, untouchedMembers } from './unused-members.ts';

/** Age from which on the waits of a status are outdated. */
const WAITS_MS = 300_000;

/** Returns the figures of a configured group that was never used, as its pool would report them. */
export function untouched(group: GroupConfig, now: InstantMs): PoolMetrics {
  return {
    status: untouchedStatus(group, now),
    waits: emptyHistogram(),
    holds: emptyHistogram(),
    granted_again_total: 0,
    left_total: 0,
    moved_total: 0,
    ended_total: {},
    cut_total: {},
    reports_total: {},
    input_tokens_total: 0,
    output_tokens_total: 0,
    cost_usd_total: 0,
    warnings_total: {},
    violations_total: {},
  };
}

function untouchedStatus(group: GroupConfig, now: InstantMs): PoolStatus {
  const { rates } = ratesOf(group.limits);
  const configured = configuredSlots(group);
  return {
    group: group.name,
    partition: null,
    limit: { configured, effective: configured, source: 'configured' },
    ...NO_ACTOR,
    cooldown_ms: configuredCooldown(group) ?? noLag().ms,
    wait_p50_ms: null,
    wait_p95_ms: null,
    ...switchesNow(group),
    paused_until: null,
    breaker: 'closed',
    breaker_until: null,
    refusals_total: {},
    rates: rateStatuses(emptyRates(), rates, now),
    spend: hasBudget(group) ? NOTHING_SPENT : null,
    granted_total: 0,
    rejected_total: {},
    would_wait_total: 0,
    expired_total: 0,
    resurrected_total: 0,
    passed_unlimited_total: 0,
    ...untouchedMembers(group, now),
    upstreams: [],
    budget_spent: null,
    rate_used_up: null,
    last_hour: NOTHING_LATELY,
    idle_ms: 0,
  };
}

/** Gauges of an idle pool. */
const NO_ACTOR = {
  in_use: 0,
  cooling: 0,
  unclaimed: 0,
  unclaimed_until: null,
  lent: 0,
  queued: 0,
  queued_by_lane: { high: 0, normal: 0, low: 0 },
  oldest_wait_ms: 0,
  stalled_ms: null,
};

const NOTHING_SPENT: SpendStatus = {
  hour_usd: 0,
  day_usd: 0,
  month_usd: 0,
  reserved_usd: 0,
  day_usd_by_key: {},
  day_usd_by_agent: {},
};

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
  const { status, queued_by_scope: _queued, ...counted } = report.metrics;
  const group = definedGroup(config, name);
  const idleMs = status.idle_ms + Math.max(0, now - report.at);
  const waits = idleMs < WAITS_MS ? {} : { wait_p50_ms: null, wait_p95_ms: null };
  const { spend } = status;
  const {
    members: _members,
    affinity: _affinity,
    paused_until: _until,
    pause: _pause,
    about: _about,
    scopes: _scopes,
    lately,
    waiting_for: _waiting,
    needed_elsewhere: _needed,
    stalled_ms: _stalled,
    ...rest
  } = status;
  return {
    ...counted,
    status: {
      ...rest,
      ...NO_ACTOR,
      ...waits,
      ...(group === undefined
        ? switchesInForce(config, name)
        : byGroup(status, report, group, now)),
      ...pauseNow(status, now),
      ...restingScopes(status, now),
      spend: spend === null ? newBudget(group) : spendNow(spend, report.at, now),
      budget_spent: restingBudget(status.budget_spent, group, instant(report.at), now),
      rate_used_up: null,
      last_hour: restingHour(status.last_hour, idleMs),
      ...restingLately(lately, idleMs),
      upstreams: restingUpstreams(status.upstreams, instant(report.at), now),
      ...(group === undefined || isOwnPartition(partition)
        ? {}
        : restingMembers(report, group, now)),
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
): Partial<PoolStatus> {
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
