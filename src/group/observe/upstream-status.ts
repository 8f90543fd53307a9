import { memberIdOf } from '../../contract/config/members.ts';
import type { PoolStatus, UpstreamCallsStatus } from '../../contract/status.ts';
import { periodBegin, spentIn } from '../../core/parts/spend.ts';
import type { UpstreamCallCounts } from '../../core/parts/upstream-calls.ts';
import { isSplit } from '../../core/members.ts';
import type { GroupState } from '../../core/state.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { Definition } from '../definition.ts';

/** Returns the calls to each upstream. Several members of one upstream are shown in the status of members. */
export function upstreamsStatus(
  { config }: Definition,
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'upstreams'> {
  const inFlight = new Map<string, number>();
  for (const { phase, member, holder } of state.leases.values()) {
    if (phase === 'cooling') continue;
    const place = isSplit(state) ? member : holder.upstream;
    inFlight.set(place, (inFlight.get(place) ?? 0) + 1);
  }
  const ofMembers = new Map(
    (config?.members ?? []).map((each) => [String(memberIdOf(each)), each.upstream]),
  );
  const places = new Set([...state.upstreams.keys(), ...inFlight.keys()]);
  return {
    upstreams: [...places].map((place) => ({
      id: ofMembers.get(place) ?? place,
      in_flight: inFlight.get(place) ?? 0,
      ...reported(state.upstreams.get(place), now),
    })),
  };
}

type UpstreamReport = Omit<UpstreamCallsStatus, 'id' | 'in_flight'>;

function reported(there: UpstreamCallCounts | undefined, now: InstantMs): UpstreamReport {
  if (there === undefined) {
    const nothing = { day_granted: 0, day_refusals: {}, spend: null, last_refusals: [] };
    return { last_call_at: isoOf(now), ...nothing };
  }
  const { lastAt, day, granted, refused, spent, lastRefusals } = there;
  const isToday = day >= periodBegin('day', now);
  return {
    last_call_at: isoOf(lastAt),
    day_granted: isToday ? granted : 0,
    day_refusals: isToday ? { ...refused } : {},
    spend:
      spent.beganAt.month === 0
        ? null
        : { day_usd: spentIn(spent, 'day', now), month_usd: spentIn(spent, 'month', now) },
    last_refusals: Object.entries(lastRefusals).map(([kind, last]) => ({
      kind,
      at: isoOf(last.at),
      retry_after_ms: last.retryAfterMs,
      model: last.model,
      ...(last.status !== undefined && { status: last.status }),
      ...(last.words !== undefined && { message: last.words }),
    })),
  };
}

function isoOf(at: InstantMs): string {
  return new Date(at).toISOString();
}
