import type { ScopeFields } from '../contract/shared-shapes.ts';
import {
  SCOPES_SHOWN_MAX,
  type ScopeStatus,
  type UpstreamCallsStatus,
  type SpendStatus,
} from '../contract/status.ts';
import type { GroupStatus, UpstreamAtGroup } from '../contract/group-status.ts';
import { isHolding, scopeWords } from '../routing/scopes-shown.ts';
import type { InstantMs } from '../core/words/ids.ts';
import { spentIn, type Period, type Spent } from '../core/parts/spend.ts';
import { latest, sumOfBounds, worstBreaker } from './joins.ts';

type Trouble = Pick<GroupStatus, 'paused_until' | 'breaker' | 'breaker_until' | 'about'>;

/**
 * Describes the health of each upstream that a group called. A stop of a group without members is attributed to
 * one upstream: the one that last refused the stopped model, or else the one that last refused any call.
 */
export function upstreamsOfGroup(
  calls: readonly UpstreamCallsStatus[],
  group: Trouble & Pick<GroupStatus, 'limit' | 'members' | 'scopes'>,
): UpstreamAtGroup[] {
  const { members, scopes = [] } = group;
  return calls.map((one) => {
    if (members === undefined) {
      const isThere = ({ about }: Pick<Trouble, 'about'>): boolean => {
        const blamed = refusedLast(calls, about?.model ?? null);
        return blamed === null || blamed === one.id;
      };
      const states = [group].filter(isThere);
      return { ...one, ...health(states, scopes.filter(isThere)), limit: group.limit.effective };
    }
    const there = members.filter(({ upstream }) => upstream === one.id);
    const limits = there.filter(({ enabled }) => enabled).map(({ limit }) => limit.effective);
    const ids = new Set<string | undefined>(there.map(({ id }) => id));
    const own = scopes.filter(({ member }) => member !== undefined && ids.has(member));
    return { ...one, ...health(there, own), limit: sumOfBounds(limits) };
  });
}

type Health = Pick<UpstreamAtGroup, 'state' | 'paused_until' | 'breaker_until' | 'stopped'>;

/** Joins the states of an upstream. States of some calls matter only if there is no state of all calls. */
function health(states: readonly Trouble[], scopes: readonly ScopeStatus[]): Health {
  const ofAll = states.filter(({ about }) => about === undefined);
  if (worstBreaker(ofAll) !== 'closed') return { state: 'open', ...endsOf(ofAll) };
  if (ofAll.some(({ paused_until: until }) => until !== null)) {
    return { state: 'waiting', ...endsOf(ofAll) };
  }
  const partly = [
    ...states.filter(({ about }) => about !== undefined).map((one) => ({ ...one, queued: 0 })),
    ...scopes,
  ].filter(isHolding);
  if (partly.length === 0) return { state: 'ok', ...endsOf([]) };
  const stopped = joinStopped(partly.flatMap(({ about }) => about ?? []));
  return { state: 'partly paused', ...endsOf(partly), stopped };
}

export function joinStopped(all: readonly ScopeFields[]): ScopeFields[] {
  const distinct = new Map(all.map((about) => [scopeWords(about), about]));
  return [...distinct.values()].slice(0, SCOPES_SHOWN_MAX);
}

function endsOf(all: readonly Omit<Trouble, 'about'>[]) {
  return {
    paused_until: latest(all.map((each) => each.paused_until)),
    breaker_until: latest(all.map((each) => each.breaker_until)),
  };
}

/** Returns the upstream that last refused a call of a model, or else any call. null if none did. */
function refusedLast(calls: readonly UpstreamCallsStatus[], model: string | null): string | null {
  const refusals = calls
    .flatMap(({ id, last_refusals: all }) => all.map((refusal) => ({ ...refusal, id })))
    .toSorted((a, b) => (a.at < b.at ? 1 : -1));
  const ofModel = refusals.find((one) => model !== null && one.model?.toLowerCase() === model);
  return (ofModel ?? refusals[0])?.id ?? null;
}

/** Adds up the calls that pools, and members of one pool, report to each upstream. */
export function joinUpstreams(all: readonly UpstreamCallsStatus[]): UpstreamCallsStatus[] {
  return [...Map.groupBy(all, ({ id }) => id).values()].flatMap((same) =>
    same.length === 0 ? [] : [same.reduce(joined)],
  );
}

function joined(a: UpstreamCallsStatus, b: UpstreamCallsStatus): UpstreamCallsStatus {
  return {
    id: a.id,
    in_flight: a.in_flight + b.in_flight,
    last_call_at: a.last_call_at > b.last_call_at ? a.last_call_at : b.last_call_at,
    day_granted: a.day_granted + b.day_granted,
    day_refusals: addTallies(a.day_refusals, b.day_refusals),
    spend: addSpends(a.spend, b.spend),
    last_refusals: latestOfEach([...a.last_refusals, ...b.last_refusals]),
  };
}

/** Returns the upstreams of an idle pool from its last report. Nothing is in flight, and the day may have ended. */
export function restingUpstreams(
  reported: readonly UpstreamCallsStatus[],
  reportedAt: InstantMs,
  now: InstantMs,
): UpstreamCallsStatus[] {
  const isSameDay = ofPeriod({ day_usd: 1, month_usd: 1 }, reportedAt, now).day_usd > 0;
  return reported.map((one) => ({
    ...one,
    in_flight: 0,
    ...(isSameDay ? {} : { day_granted: 0, day_refusals: {} }),
    spend: one.spend === null ? null : ofPeriod(one.spend, reportedAt, now),
  }));
}

type UpstreamSpend = NonNullable<UpstreamCallsStatus['spend']>;

function ofPeriod(spend: UpstreamSpend, reportedAt: InstantMs, now: InstantMs): UpstreamSpend {
  const { day_usd, month_usd } = spentNow({ hour_usd: 0, ...spend }, reportedAt, now);
  return { day_usd, month_usd };
}

function addSpends(a: UpstreamSpend | null, b: UpstreamSpend | null): UpstreamSpend | null {
  if (a === null || b === null) return a ?? b;
  return { day_usd: a.day_usd + b.day_usd, month_usd: a.month_usd + b.month_usd };
}

function addTallies(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const sums: Record<string, number> = { ...a };
  for (const [kind, count] of Object.entries(b)) sums[kind] = (sums[kind] ?? 0) + count;
  return sums;
}

type LastRefusals = UpstreamCallsStatus['last_refusals'];

function latestOfEach(all: LastRefusals): LastRefusals {
  const byKind = new Map<string, LastRefusals[number]>();
  for (const one of all.toSorted((a, b) => (a.at < b.at ? -1 : 1))) byKind.set(one.kind, one);
  return [...byKind.values()];
}

type SpentUsd = Pick<SpendStatus, 'hour_usd' | 'day_usd' | 'month_usd'>;

/** Sets the spend of an hour, day or month that has ended since the report to 0. */
export function spentNow(reported: SpentUsd, reportedAt: InstantMs, now: InstantMs): SpentUsd {
  const spent: Spent = {
    usd: { hour: reported.hour_usd, day: reported.day_usd, month: reported.month_usd },
    beganAt: { hour: reportedAt, day: reportedAt, month: reportedAt },
  };
  const of = (period: Period): number => spentIn(spent, period, now);
  return { hour_usd: of('hour'), day_usd: of('day'), month_usd: of('month') };
}
