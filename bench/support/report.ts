import { ratio, typical, type Samples, type Scenario } from './rounds.ts';
import type { Subject } from './subjects.ts';

/** Writes rows under each other: the first column to the left, the rest to the right. */
export function printTable(rows: readonly (readonly string[])[]): void {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    }
  }
  for (const row of rows) {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : cell.padStart(width);
    });
    console.log(`  ${cells.join('  ').trimEnd()}`);
  }
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Subject that the others are compared to. */
export interface Bases {
  readonly native: Subject;
  readonly pipe: Subject;
}

/** Prints what a scenario gave, a line for each subject. */
export function printScenario(scenario: Scenario, samples: Samples, { native, pipe }: Bases): void {
  const isStream = scenario.streamChunks !== null;
  console.log(`\n${scenario.title}\n`);
  const compared = isStream ? 'cpuUs' : 'callsPerS';
  const rows = [...samples.keys()].map((subject) => [
    subject.name,
    typical(samples, subject, 'callsPerS').toFixed(0),
    typical(samples, subject, 'p50Ms').toFixed(1),
    typical(samples, subject, 'p99Ms').toFixed(1),
    typical(samples, subject, 'cpuUs').toFixed(1),
    percent(typical(samples, subject, 'busy')),
    percent(ratio(samples, subject, pipe, compared)),
    percent(ratio(samples, subject, native, compared)),
  ]);
  const unit = isStream ? 'chunk' : 'call';
  const what = isStream ? 'CPU' : 'calls/s';
  printTable([
    ['', 'calls/s', 'p50 ms', 'p99 ms', `CPU µs/${unit}`, 'busy', `${what}: of pipe`, 'of native'],
    ...rows,
  ]);
}

/** Below this a small call's Worker did not get the core that it could have used. */
const BUSY_MIN = 0.9;

/** Says so where other work took the machine's time: the figures are then not worth judging by. */
export function warnOfOtherWork(samples: Samples, { pipe }: Bases): void {
  const busy = typical(samples, pipe, 'busy');
  if (busy > BUSY_MIN) return;
  console.log(`\n  The pipe's workerd got ${percent(busy)} of a core: other work was in the way.`);
}

/** One aim and what came of it. */
export interface ReportVerdict {
  readonly aim: string;
  readonly measured: string;
  readonly holds: boolean;
}

/** Prints the aims; true if all of them hold. */
export function printVerdicts(verdicts: readonly ReportVerdict[]): boolean {
  console.log('\nAims\n');
  const rows = verdicts.map(({ aim, measured, holds }) => [
    aim,
    measured,
    holds ? 'holds' : 'MISSED',
  ]);
  printTable(rows);
  return verdicts.every(({ holds }) => holds);
}
