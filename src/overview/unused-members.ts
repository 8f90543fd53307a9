import type { Config, GroupConfig } from '../contract/config/config.ts';
import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';
import type { PresenceReport } from '../contract/rpc/presence-rpc.ts';
import type { MemberStatus, PoolStatus } from '../contract/status.ts';
import { emptyRates, type RateUse } from '../core/parts/rates.ts';
import { instant, type InstantMs } from '../core/words/ids.ts';
import { configuredSlots } from '../routing/configured-slots.ts';
import { ratesOf, rateStatuses } from '../routing/group-rates.ts';
import { definedGroup } from '../routing/key-groups.ts';
import { isOwnPartition } from '../routing/partition.ts';
import type { PlacedPool } from '../routing/pool.ts';
import { spentNow } from './spent-now.ts';

type MembersStatus = Pick<PoolStatus, 'members' | 'affinity'>;

const NO_AFFINITY = { kept_total: 0, left_total: 0, waited_total: 0 };

const NOTHING_SPENT = { hour_usd: 0, day_usd: 0, month_usd: 0, reserved_usd: 0 };

/** Returns the members of a group that was never used, as its pool would report them. */
export function untouchedMembers({ members }: GroupConfig, now: InstantMs): MembersStatus {
  if (members.length === 0) return {};
  return { members: members.map((member) => untouched(member, now)), affinity: NO_AFFINITY };
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
    const fresh = untouched(config, now, report.memberRates?.[memberIdOf(config)]);
    const known = before.get(fresh.id);
    return known === undefined ? fresh : resting(known, fresh, instant(report.at), now);
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

function untouched(
  member: MemberConfig,
  now: InstantMs,
  used: RateUse = emptyRates(),
): MemberStatus {
  const { rates, budgets } = ratesOf(member.limits);
  const configured = member.limits.max_concurrency;
  const hasBudget = Object.values(budgets).some((budget) => budget !== null);
  return {
    id: memberIdOf(member),
    upstream: member.upstream,
    tier: member.tier,
    weight: member.weight,
    enabled: member.enabled,
    limit: { configured, effective: member.enabled ? configured : 0, source: 'configured' },
    in_use: 0,
    cooling: 0,
    unclaimed: 0,
    paused_until: null,
    breaker: 'closed',
    breaker_until: null,
    out: null,
    rates: rateStatuses(used, rates, now),
    spend: hasBudget ? NOTHING_SPENT : null,
    granted_total: 0,
    refused_total: 0,
    input_tokens_total: 0,
    output_tokens_total: 0,
    cost_usd_total: 0,
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
function resting(
  known: MemberStatus,
  fresh: MemberStatus,
  reportedAt: InstantMs,
  now: InstantMs,
): MemberStatus {
  const { upstream, tier, weight, enabled, limit, rates } = fresh;
  const { pause: _pause, spend, ...rest } = known;
  const isLearned = enabled && known.limit.source === 'learned';
  const effective = Math.min(known.limit.effective ?? Infinity, limit.configured ?? Infinity);
  return {
    ...rest,
    upstream,
    tier,
    weight,
    enabled,
    rates,
    in_use: 0,
    cooling: 0,
    unclaimed: 0,
    limit:
      isLearned && Number.isFinite(effective) ? { ...limit, effective, source: 'learned' } : limit,
    ...pauseNow(known, now),
    spend: spend === null ? fresh.spend : { ...spentNow(spend, reportedAt, now), reserved_usd: 0 },
  };
}
