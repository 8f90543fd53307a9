import type { ScopeFields } from '../contract/scope.ts';
import {
  SCOPES_SHOWN_MAX,
  type ScopeStatus,
  type UpstreamCallsStatus,
} from '../contract/status.ts';
import type { GroupStatus, UpstreamAtGroup } from '../contract/admin/status-schemas.ts';
import { isHolding, scopeWords } from '../routing/scopes-shown.ts';
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
