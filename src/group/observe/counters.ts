import type { Figure, GaugeRow } from '../../contract/gauges.ts';

type CounterRows = Readonly<Record<string, Pick<GaugeRow<string, string>, 'shape' | 'total'>>>;

type Counters<Rows> = {
  readonly [
    Name in keyof Rows as Rows[Name] extends { readonly total: string } ? Name : never
  ]: Figure<Rows[Name]>;
};

type TotalOf<Rows> = {
  [Name in keyof Rows]: Rows[Name] extends { readonly total: infer Total extends string }
    ? Total
    : never;
}[keyof Rows];

type Tally = Readonly<Partial<Record<string, number>>>;

/** Returns a function that reads the counters of a table of gauges from the totals of a pool or member. */
export function counterReader<Rows extends CounterRows>(
  rows: Rows,
): (totals: Readonly<Record<TotalOf<Rows>, number | Tally>>) => Counters<Rows> {
  const counted = Object.entries(rows).flatMap(([name, { total }]) =>
    total === undefined ? [] : [[name, total as TotalOf<Rows>] as const],
  );
  return (totals) => {
    const counters: Record<string, number | Tally> = {};
    for (const [name, total] of counted) {
      const value = totals[total];
      counters[name] = typeof value === 'object' ? { ...value } : value;
    }
    return counters as Counters<Rows>;
  };
}
