import type { PoolMetrics } from '../../contract/rpc/feed-rpc.ts';
import type { ScopeFields, ScopeKind } from '../../contract/shared-shapes.ts';
import type { MemberStatus, PoolStatus, ScopeStatus, PauseStatus } from '../../contract/status.ts';
import {
  blockOf,
  memberBlockOf,
  blockFor,
  scopesHolding,
  slotsOfScope,
} from '../../core/capacity.ts';
import type { ScopeLimiter, Member } from '../../core/member.ts';
import { isSplit, type GroupState } from '../../core/state.ts';
import { goesByScopes } from '../../core/scopes.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import { ALL_CALLS, isSameScope, type Scope } from '../../core/words/signal.ts';
import { joinScopes, scopeKindOf } from '../../routing/scopes-shown.ts';
import { isPaused, nextProbeAt, type Pause } from '../../core/parts/pause.ts';

/** Scopes and pauses of a pool in its status. */

export function shownScope({ model, tier, credential }: Scope): ScopeFields {
  return { model, service_tier: tier, credential };
}

/** Returns the calls to which a member's own state applies, unless it applies to all. */
export function aboutOf({ controls }: Pick<Member, 'controls'>): Pick<MemberStatus, 'about'> {
  const { about } = controls.scopes;
  return isSameScope(about, ALL_CALLS) ? {} : { about: shownScope(about) };
}

/** Lists the scopes of a pool, and the calls to which the pool's own state applies. */
export function scopesStatus(
  state: GroupState,
  now: InstantMs,
): Pick<PoolStatus, 'about' | 'scopes'> {
  const about = aboutOfAll(state, now);
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

/** Returns the calls to which the state of a pool applies. With members, the calls that all of them stop. */
function aboutOfAll({ serving }: GroupState, now: InstantMs): Pick<PoolStatus, 'about'> {
  const [sole, second] = serving;
  if (sole === undefined) return {};
  if (second === undefined) return aboutOf(sole);
  if (blockOf(serving, now) === null) return {};
  // Every recent call is in the scopes of all these members, so the scopes do not exclude each other.
  const about = serving.reduce<ScopeFields>((met, member) => {
    const isOut = memberBlockOf(member, now)?.reason === 'members_out';
    const own = isOut ? ALL_CALLS : member.controls.scopes.about;
    return {
      model: met.model ?? own.model,
      service_tier: met.service_tier ?? own.tier,
      credential: met.credential ?? own.credential,
    };
  }, shownScope(ALL_CALLS));
  return scopeKindOf(about) === null ? {} : { about };
}

/** Counts the queued calls that scopes hold, by kind of scope. Each call counts once. */
export function queuedByScope(
  state: GroupState,
  now: InstantMs,
): Pick<PoolMetrics, 'queued_by_scope'> {
  const queued: Partial<Record<ScopeKind, number>> = {};
  if (!state.serving.some(goesByScopes)) return {};
  for (const waiter of state.queue.byTicket.values()) {
    const [first] = scopesHolding(state, waiter, now);
    const scope = first?.scope ?? blockFor(state, waiter.ticket, now)?.scope;
    const kind = scope === undefined ? null : scopeKindOf(shownScope(scope));
    if (kind !== null) queued[kind] = (queued[kind] ?? 0) + 1;
  }
  return Object.keys(queued).length === 0 ? {} : { queued_by_scope: queued };
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

interface Paused {
  readonly paused_until: string | null;
  readonly pause?: PauseStatus;
}

/** Shows the pause of an upstream: its end, the upstream's message, and the next probe. */
export function pauseStatus(pause: Pause, now: InstantMs): Paused {
  if (!isPaused(pause, now)) return { paused_until: null };
  const probeAt = nextProbeAt(pause);
  return {
    paused_until: new Date(pause.until).toISOString(),
    pause: {
      message: pause.words,
      probe_at: probeAt === null ? null : new Date(probeAt).toISOString(),
    },
  };
}

/** The same for a group with members: the pause that ends first, if all members are stopped. */
export function pauseOfMembers(
  pauses: readonly Pause[],
  isStopped: boolean,
  now: InstantMs,
): Paused {
  const [first] = pauses
    .filter((pause) => isPaused(pause, now))
    .toSorted((a, b) => a.until - b.until);
  return first === undefined || !isStopped ? { paused_until: null } : pauseStatus(first, now);
}
