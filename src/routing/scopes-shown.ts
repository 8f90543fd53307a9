import type { ScopeFields, ScopeKind } from '../contract/shared-shapes.ts';
import {
  SCOPES_SHOWN_MAX,
  type MemberStatus,
  type PoolStatus,
  type ScopeStatus,
} from '../contract/status.ts';

type ByScopes = Pick<PoolStatus, 'about' | 'scopes'>;

/** A pool's or member's own state, without its scopes. */
type OwnState = Pick<
  PoolStatus,
  'about' | 'in_use' | 'limit' | 'paused_until' | 'pause' | 'breaker' | 'breaker_until'
>;

/** Joins the scopes of several pools and bounds the list. Scopes that hold calls come first. */
export function joinScopes(all: readonly ScopeStatus[]): Pick<PoolStatus, 'scopes'> {
  if (all.length === 0) return {};
  const joined = [...Map.groupBy(all, keyOf).values()].flatMap(([first, ...rest]) =>
    first === undefined ? [] : [rest.reduce(joinTwo, first)],
  );
  return { scopes: joined.toSorted(byUrgency).slice(0, SCOPES_SHOWN_MAX) };
}

/** Whether a scope stops new calls or holds queued ones. */
export function isHolding({
  queued,
  paused_until: until,
  breaker,
}: Pick<ScopeStatus, 'queued' | 'paused_until' | 'breaker'>): boolean {
  return queued > 0 || until !== null || breaker !== 'closed';
}

/** Describes the calls of a scope, such as `model gpt-5, tier flex`. */
export function scopeWords({ model, service_tier, credential }: ScopeFields): string {
  const names = Object.entries({ model, tier: service_tier, key: credential });
  const words = names.flatMap(([name, value]) => (value === null ? [] : [wordOf(name, value)]));
  return words.join(', ');
}

/** A scope of calls without a model has an empty name. */
function wordOf(name: string, value: string): string {
  return value === '' ? `no ${name}` : `${name} ${value}`;
}

/** Names the values of a scope. null if it has none and contains all calls. */
export function scopeKindOf({ model, service_tier, credential }: ScopeFields): ScopeKind | null {
  const names = Object.entries({ model, tier: service_tier, key: credential });
  const known = names.flatMap(([name, value]) => (value === null ? [] : [name]));
  return known.length === 0 ? null : (known.join('_') as ScopeKind);
}

/** Returns the calls to which the states of several pools apply, if they agree. */
export function joinAbout(
  pools: readonly Pick<PoolStatus, 'about' | 'paused_until' | 'breaker' | 'limit'>[],
): Pick<PoolStatus, 'about'> {
  const [first, ...rest] = pools.filter(isLearned);
  if (first?.about === undefined) return {};
  const { about } = first;
  const isSame = rest.every((one) => one.about !== undefined && isAlike(one.about, about));
  return isSame ? { about } : {};
}

function isLearned({
  paused_until: until,
  breaker,
  limit,
}: Pick<PoolStatus, 'paused_until' | 'breaker' | 'limit'>): boolean {
  return until !== null || breaker !== 'closed' || limit.source === 'learned';
}

/**
 * Converts each pool's state that applies to some calls to a scope, if the pools differ in these calls. Joined as
 * they are, they would look like the state of all calls.
 */
export function separateAbout(pools: readonly PoolStatus[]): readonly PoolStatus[] {
  if (joinAbout(pools).about !== undefined) return pools;
  return pools.map((pool) => {
    const { about, pause: _pause, ...rest } = pool;
    if (about === undefined || !isLearned(pool)) return pool;
    const scope = { ...scopeOf(about, pool, pool.upstreams), queued: pool.queued };
    return { ...rest, ...FREE, scopes: [...(pool.scopes ?? []), scope] };
  });
}

/** As `separateAbout`, for each member of the pools. */
export function separateMembers(pools: readonly PoolStatus[]): readonly PoolStatus[] {
  const all = Map.groupBy(
    pools.flatMap(({ members = [] }) => members),
    ({ id }) => id,
  );
  const differing = new Set(
    [...all].flatMap(([id, same]) => (joinAbout(same).about === undefined ? id : [])),
  );
  return pools.map((pool) => {
    const { members, scopes = [] } = pool;
    const isApart = (member: MemberStatus): boolean =>
      member.about !== undefined && differing.has(member.id) && isLearned(member);
    if (members?.some(isApart) !== true) return pool;
    const apart = members.filter(isApart).flatMap((member): ScopeStatus[] => {
      const { id, about, upstream } = member;
      const calls = pool.upstreams.filter((one) => one.id === upstream);
      return about === undefined ? [] : [{ member: id, ...scopeOf(about, member, calls) }];
    });
    return {
      ...pool,
      members: members.map((member) => (isApart(member) ? withoutAbout(member) : member)),
      scopes: [...scopes, ...apart],
    };
  });
}

const FREE = { paused_until: null, breaker: 'closed', breaker_until: null } as const;

function withoutAbout({ about: _about, pause: _pause, ...member }: MemberStatus): MemberStatus {
  const { enabled, limit } = member;
  const { configured } = limit;
  const effective = enabled ? configured : 0;
  const isOfScope = limit.source === 'learned';
  return {
    ...member,
    ...FREE,
    limit: isOfScope ? { configured, effective, source: 'configured' } : limit,
  };
}

/** Converts a state that applies to some calls to their scope. The number of queued calls is unknown. */
function scopeOf(
  about: ScopeFields,
  { in_use, limit, paused_until, pause, breaker, breaker_until }: Omit<OwnState, 'about'>,
  upstreams: PoolStatus['upstreams'],
): ScopeStatus {
  const refusals = upstreams.flatMap(({ last_refusals: all }) => all.map(({ at }) => at));
  return {
    about,
    in_use,
    limit: limit.source === 'learned' ? limit.effective : null,
    paused_until,
    ...(pause && { pause }),
    breaker,
    breaker_until,
    queued: 0,
    last_refused_at: refusals.toSorted().at(-1) ?? new Date(0).toISOString(),
  };
}

/** Reads the scopes that an idle pool reported. Their pauses may be over. */
export function restingScopes({ about, scopes = [] }: ByScopes, nowMs: number): ByScopes {
  const now = scopes.map(({ pause, paused_until: until, ...one }) => {
    const isPaused = until !== null && Date.parse(until) > nowMs;
    const paused = isPaused
      ? { paused_until: until, ...(pause && { pause }) }
      : { paused_until: null };
    return { ...one, ...paused, in_use: 0, queued: 0 };
  });
  return {
    ...(about === undefined ? {} : { about }),
    ...joinScopes(now.filter((one) => isHolding(one) || one.limit !== null)),
  };
}

function joinTwo(a: ScopeStatus, b: ScopeStatus): ScopeStatus {
  const longer = (a.paused_until ?? '') >= (b.paused_until ?? '') ? a : b;
  const worse = WORST.indexOf(a.breaker) <= WORST.indexOf(b.breaker) ? a : b;
  const { pause: _pause, ...rest } = a;
  return {
    ...rest,
    in_use: a.in_use + b.in_use,
    limit: a.limit === null || b.limit === null ? (a.limit ?? b.limit) : Math.min(a.limit, b.limit),
    paused_until: longer.paused_until,
    ...(longer.pause && { pause: longer.pause }),
    breaker: worse.breaker,
    breaker_until: worse.breaker_until,
    queued: a.queued + b.queued,
    last_refused_at: a.last_refused_at > b.last_refused_at ? a.last_refused_at : b.last_refused_at,
  };
}

const WORST = ['open', 'half_open', 'closed'];

function byUrgency(a: ScopeStatus, b: ScopeStatus): number {
  const order = Number(isHolding(b)) - Number(isHolding(a));
  if (order !== 0) return order;
  return a.last_refused_at > b.last_refused_at ? -1 : 1;
}

function keyOf({ member, about: { model, service_tier, credential } }: ScopeStatus): string {
  return JSON.stringify([member ?? null, model, service_tier, credential]);
}

function isAlike(a: ScopeFields, b: ScopeFields): boolean {
  return a.model === b.model && a.service_tier === b.service_tier && a.credential === b.credential;
}
