import { printTable } from './report.ts';
import type { RowsScenario, Written } from './rows-scenarios.ts';
import type { Counts, Sum } from './rows-subject.ts';

/** Writes of one call. */
interface PerCall {
  readonly calls: number;
  readonly rows: number;
  readonly bytes: number;
  readonly statements: number;
  readonly turns: number;
  /** Rows by kind of statement. */
  readonly kinds: ReadonlyMap<string, number>;
}

/** Writes of each build in one scenario, by the build's name. */
export type Outcomes = ReadonlyMap<string, Written>;

function since(before: Counts, after: Counts): Map<string, Sum> {
  return new Map(
    Object.entries(after.kinds).map(([kind, sum]) => {
      const { statements, rows, bytes } = before.kinds[kind] ?? {
        statements: 0,
        rows: 0,
        bytes: 0,
      };
      const grown = {
        statements: sum.statements - statements,
        rows: sum.rows - rows,
        bytes: sum.bytes - bytes,
      };
      return [kind, grown];
    }),
  );
}

function perCall({ calls, before, after }: Written): PerCall {
  const kinds = since(before, after);
  const total = (figure: keyof Sum): number =>
    [...kinds.values()].reduce((sum, each) => sum + each[figure], 0) / calls;
  return {
    calls,
    rows: total('rows'),
    bytes: total('bytes'),
    statements: total('statements'),
    turns: (after.turns - before.turns) / calls,
    kinds: new Map([...kinds].map(([kind, { rows }]) => [kind, rows / calls])),
  };
}

/** A point of the history: a row for each minute in which something happened, however many calls. */
const HISTORY = 'insert history';

/** Rows that a call wrote, those of the history aside. */
export function rowsPerCall(written: Written): number {
  const { rows, kinds } = perCall(written);
  return rows - (kinds.get(HISTORY) ?? 0);
}

/** Prints what a scenario gave, a column for each build. */
export function printRows({ title }: RowsScenario, outcomes: Outcomes): void {
  const columns = [...outcomes.values()].map(perCall);
  const line = (name: string, figure: (each: PerCall) => string): string[] => [
    name,
    ...columns.map(figure),
  ];
  const kinds = new Set(columns.flatMap((each) => [...each.kinds.keys()]));
  const largest = (kind: string): number =>
    Math.max(...columns.map((each) => each.kinds.get(kind) ?? 0));
  const written = [...kinds]
    .filter((kind) => largest(kind) > 0)
    .toSorted((a, b) => largest(b) - largest(a));
  console.log(`\n${title}\n`);
  printTable([
    ['a call', ...outcomes.keys()],
    line('rows', ({ rows }) => rows.toFixed(3)),
    ...written.map((kind) => line(`  ${kind}`, (each) => (each.kinds.get(kind) ?? 0).toFixed(3))),
    line('bytes bound', ({ bytes }) => bytes.toFixed(0)),
    line('statements', ({ statements }) => statements.toFixed(3)),
    line('turns that write', ({ turns }) => turns.toFixed(3)),
    line('calls', ({ calls }) => String(calls)),
  ]);
}
