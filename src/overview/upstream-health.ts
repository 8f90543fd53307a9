import type { UpstreamCallsStatus } from '../contract/status.ts';
import type { GroupStatus, UpstreamAtGroup } from '../contract/admin/status-schemas.ts';
import { joinAbout } from '../routing/scopes-shown.ts';
import { latest, sumOfBounds, worstBreaker } from './joins.ts';

type Trouble = Pick<GroupStatus, 'limit' | 'paused_until' | 'breaker' | 'breaker_until' | 'about'>;

/**
 * Says of each upstream that a group's calls went to how it fares. What stops a group that names no members stops it for
 * all of them: it is put down to the one that refused a call last, as nobody else was called since.
 */
export function upstreamsOfGroup(
  calls: readonly UpstreamCallsStatus[],
  group: Trouble & Pick<GroupStatus, 'members'>,
): UpstreamAtGroup[] {
  const { members } = group;
  const blamed = members === undefined ? refusedLast(calls) : null;
  return calls.map((one) => {
    if (members === undefined) {
      return { ...one, ...health(blamed === null || blamed === one.id ? [group] : [], group) };
    }
    const there = members.filter(({ upstream }) => upstream === one.id);
    const limits = there.filter(({ enabled }) => enabled).map(({ limit }) => limit.effective);
    return { ...one, ...health(there, { limit: { effective: sumOfBounds(limits) } }) };
  });
}

type Health = Omit<UpstreamAtGroup, keyof UpstreamCallsStatus>;

function health(
  stopped: readonly Trouble[],
  { limit }: { readonly limit: { readonly effective: number | null } },
): Health {
  const paused_until = latest(stopped.map((each) => each.paused_until));
  const isOpen = worstBreaker(stopped) !== 'closed';
  return {
    state: isOpen ? 'open' : paused_until === null ? 'ok' : 'waiting',
    paused_until,
    breaker_until: latest(stopped.map((each) => each.breaker_until)),
    ...joinAbout(stopped),
    limit: limit.effective,
  };
}

/** Finds the upstream that refused a call last; null: none ever did. */
function refusedLast(calls: readonly UpstreamCallsStatus[]): string | null {
  const refusals = calls.flatMap(({ id, last_refusals: all }) => all.map(({ at }) => ({ id, at })));
  return refusals.toSorted((a, b) => (a.at < b.at ? 1 : -1))[0]?.id ?? null;
}
