import { callsFor, type LoadResult } from '../support/load.ts';
import {
  CALLERS,
  callEach,
  requestOf,
  requestsInTurn,
  startWithGroups,
} from '../support/many-groups.ts';
import { cpuOfAll } from '../support/process-cpu.ts';
import { printTable, type ReportVerdict } from '../support/report.ts';
import { FULL_TIMING, median, QUICK_TIMING, type Timing } from '../support/rounds.ts';
import type { Subject } from '../support/subjects.ts';
import { startUpstream } from '../support/upstream.ts';
import type { BenchScenario } from './scenario.ts';

/** CPU of a small call with so many groups, as a multiple of that with one. */
const AIMS = [
  { groups: 1, most: null },
  { groups: 100, most: 1.1 },
  { groups: 1_000, most: 1.3 },
] as const;

/** One number of groups, called in one way. */
interface GroupsMeasured {
  readonly groups: number;
  /** Groups that are called: all in turn means an object after the other. */
  readonly spread: 'one of them called' | 'all called in turn';
  readonly most: number | null;
  readonly subject: Subject;
  readonly request: () => Buffer;
  /** CPU of a call, in microseconds, by round. */
  readonly cpuUs: number[];
  readonly callsPerS: number[];
}

async function measure(
  { subject, request, ...measured }: GroupsMeasured,
  timing: Timing,
): Promise<void> {
  const marks: number[] = [];
  const mark = (): number => marks.push(cpuOfAll(subject.pids));
  const load = { port: subject.port, request, callers: CALLERS, mark };
  const slices: LoadResult[] = [];
  for (let left = timing.slices; left > 0; left -= 1) {
    slices.push(await callsFor(load, timing.warmUpMs, timing.measuredMs));
  }
  const sum = (of: (slice: LoadResult) => number): number =>
    slices.reduce((total, slice) => total + of(slice), 0);
  const cpuUs = marks.reduce((total, cpu, at) => total + (at % 2 === 0 ? -cpu : cpu), 0);
  const calls = sum((slice) => slice.calls);
  measured.cpuUs.push(cpuUs / calls);
  measured.callsPerS.push(calls / sum((slice) => slice.seconds));
}

const timesOf = ({ cpuUs }: GroupsMeasured, base: GroupsMeasured): number =>
  median(cpuUs.map((own, round) => own / (base.cpuUs[round] ?? NaN)));

export const groups: BenchScenario = {
  name: 'groups',
  async run({ dir, isQuick, keep, roundIsOver }) {
    const upstream = await startUpstream();
    keep({ stop: () => upstream.close() });
    const all: GroupsMeasured[] = [];
    for (const { groups: count, most } of AIMS.filter((aim) => !isQuick || aim.groups <= 100)) {
      const name = `${count} groups`;
      const subject = keep(await startWithGroups(name, count, { dir, upstreamUrl: upstream.url }));
      await callEach(subject, count);
      const last = requestOf(count - 1);
      const ways: (readonly [GroupsMeasured['spread'], () => Buffer])[] = [
        ['one of them called', () => last],
        ['all called in turn', requestsInTurn(count)],
      ];
      for (const [spread, request] of count === 1 ? ways.slice(1) : ways) {
        all.push({ groups: count, spread, most, subject, request, cpuUs: [], callsPerS: [] });
      }
    }
    const timing = isQuick ? QUICK_TIMING : FULL_TIMING;
    for (let round = 0; round < timing.rounds; round += 1) {
      for (const measured of all) await measure(measured, timing);
      roundIsOver();
    }
    return report(all);
  },
};

function report(all: readonly GroupsMeasured[]): ReportVerdict[] {
  const [base] = all;
  if (base === undefined) return [];
  console.log(`\nSmall JSON calls, ${CALLERS} callers, by groups\n`);
  const rows = all.map((measured) => [
    `${measured.groups}, ${measured.spread}`,
    median(measured.callsPerS).toFixed(0),
    median(measured.cpuUs).toFixed(0),
    timesOf(measured, base).toFixed(2),
  ]);
  printTable([['', 'calls/s', 'CPU µs/call', 'of one group'], ...rows]);
  return all.flatMap((measured): ReportVerdict[] => {
    const { most, spread } = measured;
    if (most === null) return [];
    const times = timesOf(measured, base);
    const aim = `${measured.groups} groups, ${spread}: at most ${most} times the CPU per call of one group`;
    return [{ aim, measured: `${times.toFixed(3)} times`, holds: times <= most }];
  });
}
