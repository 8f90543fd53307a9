import type { ScopeFields } from '../../../src/contract/shared-shapes.ts';
import type { GroupView } from './status.ts';
import { count } from '../format.ts';

export type ScopeView = NonNullable<GroupView['scopes']>[number];

/** Describes the calls of a scope, such as `model gpt-5, tier flex`. */
export function scopeWords({ model, service_tier: tier, credential }: ScopeFields): string {
  const names = [
    ...(model === null ? [] : [model === '' ? 'no model' : `model ${model}`]),
    ...(tier === null ? [] : [`tier ${tier}`]),
    ...(credential === null ? [] : [`key ${credential}`]),
  ];
  return names.length === 0 ? 'all calls' : names.join(', ');
}

/** Whether a scope holds calls or stops new ones. */
export function isHolding({ queued, paused_until: until, breaker }: ScopeView): boolean {
  return queued > 0 || until !== null || breaker !== 'closed';
}

export function scopeState({ paused_until: until, breaker, limit }: ScopeView): string {
  if (breaker === 'open') return 'breaker open';
  if (until !== null) return 'paused';
  if (breaker === 'half_open') return 'breaker half open: one call probes';
  return limit === null ? 'no limit now' : `limit of ${count(limit)} learned`;
}

/** Returns when calls of a scope start again. null if that is unknown. */
export function scopeEnd({
  paused_until: until,
  breaker_until: probedAt,
}: Pick<ScopeView, 'paused_until' | 'breaker_until'>): string | null {
  if (until === null || probedAt === null) return until ?? probedAt;
  return until > probedAt ? until : probedAt;
}

/** Names the calls that a group's upstream stops while all others start. null if there are none. */
export function stoppedWords({
  about,
  scopes = [],
  paused_until: until,
  breaker,
}: Pick<GroupView, 'about' | 'scopes' | 'paused_until' | 'breaker'>): string | null {
  const own = about !== undefined && (until !== null || breaker !== 'closed') ? [about] : [];
  const all = [...own, ...scopes.filter(isHolding).map((scope) => scope.about)];
  return listWords(all);
}

/** Names the first scope and counts the others. null if the list is empty. */
export function listWords(scopes: readonly ScopeFields[]): string | null {
  const [first, ...others] = [...new Set(scopes.map(scopeWords))];
  if (first === undefined) return null;
  return others.length === 0 ? first : `${first} and ${count(others.length)} more`;
}
