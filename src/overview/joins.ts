import type { PauseStatus } from '../contract/status.ts';

/** How figures of several pools become one, where they cannot be added up. */

/** The worst first. */
const BREAKERS = ['open', 'half_open'] as const;

/** Finds the worst phase of several breakers. */
export function worstBreaker(
  all: readonly { readonly breaker: 'closed' | 'open' | 'half_open' }[],
): 'closed' | 'open' | 'half_open' {
  return BREAKERS.find((phase) => all.some((each) => each.breaker === phase)) ?? 'closed';
}

/** Finds the latest instant. Null: there is none. */
export function latest(instants: readonly (string | null)[]): string | null {
  return (
    instants
      .filter((at) => at !== null)
      .toSorted()
      .at(-1) ?? null
  );
}

/** Joins the pauses of several pools to the longest one. */
export function longestPause(
  all: readonly { readonly paused_until: string | null; readonly pause?: PauseStatus }[],
): { readonly paused_until: string | null; readonly pause?: PauseStatus } {
  const until = latest(all.map((each) => each.paused_until));
  const pause = all.find((each) => each.paused_until === until)?.pause;
  return { paused_until: until, ...(until !== null && pause !== undefined && { pause }) };
}

/** Finds the smallest bound. Null: nothing is bounded. */
export function smallest(bounds: readonly (number | null)[]): number | null {
  const bounded = bounds.filter((bound) => bound !== null);
  return bounded.length === 0 ? null : Math.min(...bounded);
}

/** Adds bounds up. Null: one of them is none, or there are no bounds. */
export function sumOfBounds(bounds: readonly (number | null)[]): number | null {
  const bounded = bounds.filter((bound) => bound !== null);
  if (bounded.length < bounds.length || bounded.length === 0) return null;
  return bounded.reduce((sum, bound) => sum + bound, 0);
}

/** Adds up counts by name. */
export function sumUp(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const [name, value] of all.flatMap((each) => Object.entries(each))) {
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return Object.fromEntries(sums);
}

/** Picks the quantile of the pool that waits longest: quantiles cannot be added up. */
export function longest(waitsMs: readonly (number | null)[]): number | null {
  const known = waitsMs.filter((ms) => ms !== null);
  return known.length === 0 ? null : Math.max(...known);
}
