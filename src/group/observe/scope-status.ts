import type { CallScope } from '../../contract/scope.ts';
import type { MemberStatus, PoolStatus, ScopeStatus } from '../../contract/status.ts';
import type { ScopeLimiter } from '../../core/limiter.ts';
import type { Member } from '../../core/member.ts';
import { isSplit } from '../../core/members.ts';
import { scopesHolding, slotsOfScope } from '../../core/scope-holds.ts';
import type { GroupState } from '../../core/state.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { ALL_CALLS, isSameScope, type Scope } from '../../core/words/scope.ts';
import { joinScopes } from '../../routing/scopes-shown.ts';
import { pauseStatus } from './pause-status.ts';

/** Writes a scope as operators see it. */
export function shownScope({ model, tier, credential }: Scope): CallScope {
  return { model, service_tier: tier, credential };
}

/** Shows the calls that a member's own state is about, where that is not all of them. */
export function aboutOf({ controls }: Pick<Member, 'controls'>): Pick<MemberStatus, 'about'> {
  const { about } = controls.scopes;
  return isSameScope(about, ALL_CALLS) ? {} : { about: shownScope(about) };
}

/** Lists the scopes of a pool, and the calls that the pool's own state is about. */
export function scopesStatus(
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'about' | 'scopes'> {
  const [sole] = state.serving;
  const about = isSplit(state) || sole === undefined ? {} : aboutOf(sole);
  if (state.serving.every(({ scopes }) => scopes.size === 0)) return about;
  const queued = queuedBy(state, now);
  const all = state.serving.flatMap((member) => {
    const of = isSplit(state) ? { member: member.id } : {};
    return [...member.scopes.values()].map((limiter) => ({
      ...of,
      ...statusOf(limiter, queued.get(limiter) ?? 0, now),
    }));
  });
  return { ...about, ...joinScopes(all) };
}

/** Counts the queued calls that each scope holds. */
function queuedBy(state: GroupState, now: InstantMs): ReadonlyMap<ScopeLimiter, number> {
  const queued = new Map<ScopeLimiter, number>();
  for (const waiter of state.queue.byTicket.values()) {
    for (const limiter of scopesHolding(state, waiter, now)) {
      queued.set(limiter, (queued.get(limiter) ?? 0) + 1);
    }
  }
  return queued;
}

function statusOf(limiter: ScopeLimiter, queued: number, now: InstantMs): ScopeStatus {
  const { pause, breaker, lastAt } = limiter.controls;
  const slots = slotsOfScope(limiter);
  return {
    about: shownScope(limiter.scope),
    in_use: limiter.slotsInUse - limiter.slotsCooling,
    limit: Number.isFinite(slots) ? slots : null,
    ...pauseStatus(pause, now),
    breaker: breaker.phase,
    breaker_until: breaker.phase === 'open' ? isoOf(breaker.openUntil) : null,
    queued,
    last_refused_at: isoOf(lastAt),
  };
}

function isoOf(at: InstantMs): string {
  return new Date(at).toISOString();
}
