import type { MemberStatus, PoolStatus } from '../contract/status.ts';
import { joinAbout } from '../routing/scopes-shown.ts';
import { latest, longestPause, smallest, worstBreaker } from './joins.ts';

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
      in_use: sum(all, (each) => each.in_use),
      cooling: sum(all, (each) => each.cooling),
      unclaimed: sum(all, (each) => each.unclaimed),
      ...longestPause(all),
      breaker: worstBreaker(all),
      breaker_until: latest(all.map((each) => each.breaker_until)),
      out: all.flatMap(({ out }) => out ?? [])[0] ?? null,
      rates: null,
      spend: spendOf(all.flatMap(({ spend }) => spend ?? [])),
      granted_total: sum(all, (each) => each.granted_total),
      refused_total: sum(all, (each) => each.refused_total),
      input_tokens_total: sum(all, (each) => each.input_tokens_total),
      output_tokens_total: sum(all, (each) => each.output_tokens_total),
      cost_usd_total: sum(all, (each) => each.cost_usd_total),
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
