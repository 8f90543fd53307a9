import { memberIdOf } from '../../contract/config/members.ts';
import { MEMBER_GAUGES } from '../../contract/gauges.ts';
import type { MemberStatus, PoolStatus } from '../../contract/status.ts';
import { heldAtMember, memberSlotsLearned } from '../../core/capacity.ts';
import type { Member } from '../../core/member.ts';
import { isSplit } from '../../core/members.ts';
import type { Outage } from '../../core/parts/outage.ts';
import type { GroupState } from '../../core/state.ts';
import { IMPLICIT, type InstantMs } from '../../core/words/ids.ts';
import { rateStatuses } from '../../routing/group-limits.ts';
import type { Definition } from '../definition.ts';
import { amountsSpent } from './amounts-spent.ts';
import { counterReader } from './counters.ts';
import { pauseStatus } from './pause-status.ts';
import { aboutOf } from './scope-status.ts';

const readCounters = counterReader(MEMBER_GAUGES);

/** Returns the members of a pool: the configured ones, and removed ones with running calls. */
export function membersStatus(
  definition: Definition,
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'members' | 'affinity'> {
  if (!isSplit(state)) return {};
  const { serving, members, totals } = state;
  const upstreams = upstreamsOf(definition);
  const retired = [...members.values()].filter(
    (each) => !serving.includes(each) && each.id !== IMPLICIT && each.slotsInUse > 0,
  );
  return {
    members: [...serving, ...retired].map((member) => ({
      ...statusOf(member, now),
      upstream: upstreams.get(member.id) ?? null,
      ...(serving.includes(member) ? {} : { retired: true as const }),
    })),
    affinity: {
      kept_total: totals.affinityKept,
      left_total: totals.affinityLeft,
      waited_total: totals.affinityWaited,
    },
  };
}

function upstreamsOf({ config }: Definition): ReadonlyMap<string, string> {
  return new Map((config?.members ?? []).map((each) => [memberIdOf(each), each.upstream]));
}

function statusOf(member: Member, now: InstantMs): Omit<MemberStatus, 'upstream'> {
  const { id, settings, controls, totals } = member;
  const { pause, breaker, outage } = controls;
  return {
    id,
    tier: settings.tier,
    weight: settings.weight,
    enabled: settings.isEnabled,
    limit: limitOf(member),
    in_use: heldAtMember(member),
    cooling: member.slotsCooling,
    unclaimed: member.unclaimed,
    ...pauseStatus(pause, now),
    breaker: breaker.phase,
    breaker_until: breaker.phase === 'open' ? isoOf(breaker.openUntil) : null,
    ...aboutOf(member),
    out: outOf(outage),
    rates: rateStatuses(controls.rates, settings.rates, now),
    spend: amountsSpent(member, now),
    ...readCounters(totals),
  };
}

function limitOf(member: Member): MemberStatus['limit'] {
  const { slotsMax } = member.settings;
  const isLearned = member.controls.ceiling.slots !== null;
  return {
    configured: finite(slotsMax),
    effective: finite(memberSlotsLearned(member)),
    source: isLearned ? 'learned' : 'configured',
  };
}

function outOf({ reason, since, probeAt }: Outage): MemberStatus['out'] {
  if (reason === null) return null;
  return { reason, since: isoOf(since), probe_at: isoOf(probeAt) };
}

function finite(slots: number): number | null {
  return Number.isFinite(slots) ? slots : null;
}

function isoOf(at: InstantMs): string {
  return new Date(at).toISOString();
}
