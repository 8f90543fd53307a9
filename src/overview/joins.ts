import type { GaugeRow } from '../contract/gauges.ts';
import type { MemberStatus, PauseStatus } from '../contract/status.ts';

type JoinRows = Readonly<Record<string, Pick<GaugeRow, 'shape' | 'join' | 'unused'>>>;

/** Names of the rows that contain a column. */
export type NamesWith<Rows, Column extends string> = {
  [Name in keyof Rows]: Column extends keyof Rows[Name] ? Name : never;
}[keyof Rows];

type BreakerPhase = MemberStatus['breaker'];

/** From the worst to the best. */
const BREAKERS: readonly BreakerPhase[] = ['open', 'half_open', 'closed'];

/** The joins of at least one value that is not null. */
const JOINS = {
  sum: (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0),
  tally: sumUp,
  max: (values: readonly number[]) => Math.max(...values),
  min: (values: readonly number[]) => Math.min(...values),
  earliest: (instants: readonly string[]) => instants.toSorted()[0],
  latest,
  first: ([value]: readonly unknown[]) => value,
  worst: (phases: readonly BreakerPhase[]) => BREAKERS.find((phase) => phases.includes(phase)),
} satisfies Record<NonNullable<GaugeRow['join']>, (values: never) => unknown>;

/**
 * Joins the values of several pools, or of a member in several pools, by the column `join` of each row. Rows without
 * that column are left out. Without any pool, the values are those of an unused group.
 */
export function joinRows<Rows extends JoinRows, Values extends object>(
  rows: Rows,
  all: readonly Values[],
): Pick<Values, NamesWith<Rows, 'join'> & keyof Values> {
  const joined: Record<string, unknown> = {};
  for (const [name, { join, unused }] of Object.entries(rows)) {
    if (join === undefined) continue;
    const value = all.length === 0 ? unused : joinValues(join, name, all);
    if (value !== undefined) joined[name] = value;
  }
  return joined as Pick<Values, NamesWith<Rows, 'join'> & keyof Values>;
}

function joinValues(join: keyof typeof JOINS, name: string, all: readonly object[]): unknown {
  const read = (one: object | undefined) => (one as Readonly<Record<string, unknown>>)[name];
  if (all.length === 1) return read(all[0]);
  const values = all.map(read).filter((value) => value !== undefined);
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return values[0];
  return (JOINS[join] as (values: readonly unknown[]) => unknown)(known);
}

export function worstBreaker(all: readonly { readonly breaker: BreakerPhase }[]): BreakerPhase {
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
