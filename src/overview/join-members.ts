import { MEMBER_GAUGES } from '../contract/gauges.ts';
import type { MemberStatus, PoolStatus } from '../contract/status.ts';
import { joinAbout } from '../routing/scopes-shown.ts';
import { joinRows, longestPause, smallest } from './joins.ts';

export function joinMembers(
  pools: readonly PoolStatus[],
): Pick<PoolStatus, 'members' | 'affinity'> {
  const reported = pools.flatMap(({ members }) => members ?? []);
  const affinities = pools.flatMap(({ affinity }) => affinity ?? []);
  if (affinities.length === 0) return {};
  return {
    members: [...Map.groupBy(reported, ({ id }) => id).values()].flatMap(joined),
    affinity: {
      kept_total: sum(affinities, (each) => each.kept_total),
      left_total: sum(affinities, (each) => each.left_total),
      waited_total: sum(affinities, (each) => each.waited_total),
    },
  };
}

/** Joins the reports of several pools on one member. Its configuration comes from the first. */
function joined(all: readonly MemberStatus[]): MemberStatus[] {
  const [first, second] = all;
  if (first === undefined) return [];
  if (second === undefined) return [first];
  return [
    {
      ...withoutPause(first),
      ...joinAbout(all),
      limit: { ...first.limit, effective: smallest(all.map(({ limit }) => limit.effective)) },
      ...joinRows(MEMBER_GAUGES, all),
      ...longestPause(all),
      rates: null,
      spend: spendOf(all.flatMap(({ spend }) => spend ?? [])),
    },
  ];
}

function withoutPause({ pause: _pause, about: _about, ...rest }: MemberStatus): MemberStatus {
  return rest;
}

function spendOf(all: readonly NonNullable<MemberStatus['spend']>[]): MemberStatus['spend'] {
  if (all.length === 0) return null;
  return {
    hour_usd: sum(all, (each) => each.hour_usd),
    day_usd: sum(all, (each) => each.day_usd),
    month_usd: sum(all, (each) => each.month_usd),
    reserved_usd: sum(all, (each) => each.reserved_usd),
  };
}

function sum<T>(all: readonly T[], of: (each: T) => number): number {
  return all.reduce((total, each) => total + of(each), 0);
}
