import type { ReportVerdict } from './report.ts';
import { rowsPerCall, type Outcomes } from './rows-report.ts';
import type { Restart } from './rows-restart.ts';
import { LOADS, LONE_CALLS, type RowsScenario } from './rows-scenarios.ts';

/** The most rows a call may write, besides a point of the history a minute. */
const AIMS: readonly (readonly [RowsScenario, number])[] = [
  [LONE_CALLS.few, 2],
  [LONE_CALLS.many, 2],
  [LOADS.roomy, 0.2],
  [LOADS.full8, 1],
  [LOADS.full16, 0.6],
  [LOADS.full64, 0.6],
];

/** The most rows a call may write in addition because its group counts requests and tokens. */
const AIM_OF_RATES = 0.05;

/** How soon a group must grant again after each of some resets in a row. */
const AIM_OF_RESTART_MS = 1_000;

type Rows = ReadonlyMap<RowsScenario, Outcomes>;

/** Finds the rows that a call wrote; null: that was not measured. */
function rowsOf(build: string, rows: Rows, scenario: RowsScenario): number | null {
  const written = rows.get(scenario)?.get(build);
  return written === undefined ? null : rowsPerCall(written);
}

function judgeRates(build: string, rows: Rows): ReportVerdict[] {
  const without = rowsOf(build, rows, LOADS.roomy);
  const metered = rowsOf(build, rows, LOADS.roomyMetered);
  if (without === null || metered === null) return [];
  return [
    {
      aim: `${LOADS.roomyMetered.title}: at most ${AIM_OF_RATES} rows a call in addition`,
      measured: (metered - without).toFixed(3),
      holds: metered - without <= AIM_OF_RATES,
    },
  ];
}

/** Under living holders, that share the process here and all come back at once, the time is theirs as well. */
function judgeRestart(leases: number, { restart, worst }: Restart): ReportVerdict {
  const longest = Math.max(...[restart, worst].map((back) => back?.slotMs ?? Infinity));
  return {
    aim: `${leases.toLocaleString('en')} leases: a slot within ${AIM_OF_RESTART_MS / 1_000} s of each reset`,
    measured: longest === Infinity ? 'never' : `${longest.toFixed(0)} ms`,
    holds: longest <= AIM_OF_RESTART_MS,
  };
}

/** Holds the figures of one build against the aims, as far as there are any. */
export function judge(
  build: string,
  rows: Rows,
  restarts: ReadonlyMap<number, ReadonlyMap<string, Restart>>,
): ReportVerdict[] {
  const ofRows = AIMS.flatMap(([scenario, most]) => {
    const measured = rowsOf(build, rows, scenario);
    if (measured === null) return [];
    const aim = `${scenario.title}: at most ${most} rows a call`;
    return [{ aim, measured: measured.toFixed(3), holds: measured <= most }];
  });
  const ofRestarts = [...restarts].flatMap(([leases, outcomes]) => {
    const outcome = outcomes.get(build);
    return outcome === undefined ? [] : [judgeRestart(leases, outcome)];
  });
  return [...ofRows, ...judgeRates(build, rows), ...ofRestarts];
}
