import type { PauseStatus } from '../contract/status.ts';

// Joins of figures that cannot be added up.

/** From the worst to the best. */
const BREAKERS = ['open', 'half_open'] as const;

export function worstBreaker(
  all: readonly { readonly breaker: 'closed' | 'open' | 'half_open' }[],
): 'closed' | 'open' | 'half_open' {
  return BREAKERS.find((phase) => all.some((each) => each.breaker === phase)) ?? 'closed';
}

/** Returns the latest instant. null if there is none. */
export function latest(instants: readonly (string | null)[]): string | null {
  return (
    instants
      .filter((at) => at !== null)
      .toSorted()
      .at(-1) ?? null
  );
}

export function longestPause(
  all: readonly { readonly paused_until: string | null; readonly pause?: PauseStatus }[],
): { readonly paused_until: string | null; readonly pause?: PauseStatus } {
  const until = latest(all.map((each) => each.paused_until));
  const pause = all.find((each) => each.paused_until === until)?.pause;
  return { paused_until: until, ...(until !== null && pause !== undefined && { pause }) };
}

/** Returns the smallest bound. null means unbounded. */
export function smallest(bounds: readonly (number | null)[]): number | null {
  const bounded = bounds.filter((bound) => bound !== null);
  return bounded.length === 0 ? null : Math.min(...bounded);
}

/** Adds up bounds. Returns null if one of them is unbounded, or if there are none. */
export function sumOfBounds(bounds: readonly (number | null)[]): number | null {
  const bounded = bounds.filter((bound) => bound !== null);
  if (bounded.length < bounds.length || bounded.length === 0) return null;
  return bounded.reduce((sum, bound) => sum + bound, 0);
}

export function sumUp(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const [name, value] of all.flatMap((each) => Object.entries(each))) {
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return Object.fromEntries(sums);
}

/** Returns the longest of several quantiles of waits, because quantiles cannot be added up. */
export function longest(waitsMs: readonly (number | null)[]): number | null {
  const known = waitsMs.filter((ms) => ms !== null);
  return known.length === 0 ? null : Math.max(...known);
}
