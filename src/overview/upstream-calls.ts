import type { UpstreamCallsStatus } from '../contract/status.ts';
import type { InstantMs } from '../core/words/ids.ts';
import { spentNow } from './spent-now.ts';

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
