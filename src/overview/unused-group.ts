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

/** How far back the waits are that a status tells of. */
const WAITS_MS = 300_000;

/** Makes the figures of a configured group that was never used, as its object would tell them. */
export function untouched(group: GroupConfig, now: InstantMs): PoolMetrics {
  return {
    status: untouchedStatus(group, now),
    waits: emptyHistogram(),
    holds: emptyHistogram(),
    granted_again_total: 0,
    left_total: 0,
    moved_total: 0,
    ended_total: {},
    input_tokens_total: 0,
    output_tokens_total: 0,
    cost_usd_total: 0,
    warnings_total: {},
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

/** Gauges of a pool that nobody uses. */
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
 * Makes the figures of a pool that rests: what it said, with what time and the configuration have done since. It may have
 * been in use when it said so, and its process has ended, or nobody heard that it rests.
 */
export function resting(
  { group: name, partition }: PlacedPool,
  said: PresenceReport,
  config: Config,
  now: InstantMs,
): PoolMetrics {
  const { status, queued_by_scope: _queued, ...counted } = said.metrics;
  const group = definedGroup(config, name);
  const idleMs = status.idle_ms + Math.max(0, now - said.at);
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
      ...(group === undefined ? switchesInForce(config, name) : byGroup(status, said, group, now)),
      ...pauseNow(status, now),
      ...restingScopes(status, now),
      spend: spend === null ? newBudget(group) : spendNow(spend, said.at, now),
      budget_spent: restingBudget(status.budget_spent, group, instant(said.at), now),
      rate_used_up: null,
      last_hour: restingHour(status.last_hour, idleMs),
      ...restingLately(lately, idleMs),
      upstreams: restingUpstreams(status.upstreams, instant(said.at), now),
      ...(group === undefined || isOwnPartition(partition) ? {} : restingMembers(said, group, now)),
      idle_ms: idleMs,
      as_of: new Date(said.at).toISOString(),
    },
  };
}

/** Reads what a pool said by the configuration of now. What it learned holds until its next use. */
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

/** Tells of a budget that was spent when the pool said so, as long as its period lasts and it is neither raised nor gone. */
function restingBudget(
  // A release of before did not tell.
  said: PoolStatus['budget_spent'] = null,
  group: GroupConfig | undefined,
  saidAt: InstantMs,
  now: InstantMs,
): PoolStatus['budget_spent'] {
  if (said === null || group === undefined) return null;
  if (periodBegin(said.window, now) > saidAt) return null;
  // It may be the budget of a member.
  const isInForce = [group, ...group.members].some(({ limits }) => {
    const { perHourUsd: hour, perDayUsd: day, perMonthUsd: month } = ratesOf(limits).budgets;
    const limit = { hour, day, month }[said.window];
    return limit !== null && limit <= said.limit_usd;
  });
  return isInForce ? said : null;
}

function newBudget(group: GroupConfig | undefined): SpendStatus | null {
  return group !== undefined && hasBudget(group) ? NOTHING_SPENT : null;
}

function hasBudget({ limits }: GroupConfig): boolean {
  return Object.values(ratesOf(limits).budgets).some((budget) => budget !== null);
}

/** Takes the configured cool-down. Null: it is learned. */
function configuredCooldown({ holds: { release_cooldown_ms: ms } }: GroupConfig): number | null {
  return ms === 'auto' ? null : ms;
}

function switchesNow({ paused, draining, dry_run }: GroupConfig) {
  return { paused, draining, dry_run };
}

/** Leaves out what was spent in an hour, day or month that is over. */
function spendNow(spend: SpendStatus, saidAt: number, now: InstantMs): SpendStatus {
  const at = instant(saidAt);
  const ofToday = { hour_usd: 1, day_usd: 1, month_usd: 1 };
  const isSameDay = spentNow(ofToday, at, now).day_usd > 0;
  return {
    ...spend,
    reserved_usd: 0,
    ...spentNow(spend, at, now),
    ...(isSameDay ? {} : { day_usd_by_key: {}, day_usd_by_agent: {} }),
  };
}
