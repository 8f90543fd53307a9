import { startHaproxy } from '../support/haproxy.ts';
import { startLimitedUpstream, type LimitedUpstream } from '../support/limited-upstream.ts';
import { LoadCaller } from '../support/load.ts';
import { printTable, type ReportVerdict } from '../support/report.ts';
import { median, quantile } from '../support/rounds.ts';
import { startHeadgate, type Subject } from '../support/subjects.ts';
import { slowChatRequest } from '../support/wire.ts';
import type { Bench, BenchScenario } from './scenario.ts';

/** A slot that changes hands: gap at the upstream, in milliseconds, and as a multiple of HAProxy's in the same run. */
const AIMS = { gapMs: 1.2, ofHaproxy: 4 };

/** One holds the slot, and the others wait for it. */
const CALLERS = 3;
const CALL_MS = 20;
const KINDS = [
  { name: 'JSON', chunks: null },
  { name: 'stream', chunks: 4 },
] as const;
type HandoverKind = (typeof KINDS)[number];

const FULL = { rounds: 7, calls: 40 };
const QUICK = { rounds: 2, calls: 15 };

/** Gaps at the beginning of each turn, while connections are opened. */
const WARM_UP_GAPS = 5;

/** Calls without a pause by which a subject gets warm: what runs 50 times a second is not compiled for long. */
const WARM_UP_CALLS = { full: 3_000, quick: 300 };

/** Gaps of one subject with one kind of answer, a list for each round. */
interface HandoverMeasured {
  readonly subject: Subject;
  readonly kind: HandoverKind;
  readonly rounds: number[][];
  peak: number;
}

async function callInTurn(
  { subject, kind }: Pick<HandoverMeasured, 'subject' | 'kind'>,
  callMs: number,
  calls: number,
): Promise<void> {
  const request = slowChatRequest(subject.path, callMs, kind.chunks);
  let left = calls;
  const run = async (): Promise<void> => {
    const caller = await LoadCaller.open(subject.port);
    while (left > 0) {
      left -= 1;
      await caller.call(request);
    }
    caller.close();
  };
  await Promise.all(Array.from({ length: CALLERS }, run));
}

async function measureTurn(
  measured: HandoverMeasured,
  upstream: LimitedUpstream,
  calls: number,
): Promise<void> {
  const terms = { limit: null, lagMs: 0 };
  await upstream.report(terms);
  await callInTurn(measured, CALL_MS, calls + WARM_UP_GAPS);
  const { gapsMs, peak } = await upstream.report(terms);
  measured.rounds.push(gapsMs.slice(WARM_UP_GAPS));
  measured.peak = Math.max(measured.peak, peak);
}

function timesOf({ rounds }: HandoverMeasured, base: HandoverMeasured): number {
  return median(rounds.map((gaps, round) => median(gaps) / median(base.rounds[round] ?? [])));
}

function print(all: readonly HandoverMeasured[]): void {
  console.log('\nA slot that changes hands at limit 1: gap at the upstream, by its own clock\n');
  const rows = all.map((measured) => {
    const gaps = measured.rounds.flat();
    const base = haproxyOf(all, measured);
    return [
      `${measured.subject.name}, ${measured.kind.name}`,
      ...[0.1, 0.5, 0.9].map((part) => quantile(gaps, part).toFixed(2)),
      base === undefined ? '' : timesOf(measured, base).toFixed(2),
      String(measured.peak),
    ];
  });
  printTable([['', 'p10 ms', 'median ms', 'p90 ms', 'of HAProxy', 'most at once'], ...rows]);
}

const haproxyOf = (
  all: readonly HandoverMeasured[],
  { kind }: HandoverMeasured,
): HandoverMeasured | undefined =>
  all.find((other) => other.kind === kind && other.subject.name.startsWith('HAProxy'));

function judge(all: readonly HandoverMeasured[]): ReportVerdict[] {
  return all
    .filter(({ subject }) => subject.name.startsWith('Headgate'))
    .flatMap((measured) => {
      const { subject, kind, rounds, peak } = measured;
      const what = `${subject.name}, ${kind.name}`;
      const gapMs = median(rounds.flat());
      const base = haproxyOf(all, measured);
      const times = base === undefined ? null : timesOf(measured, base);
      return [
        {
          aim: `${what}: a slot changes hands in at most ${AIMS.gapMs} ms`,
          measured: `${gapMs.toFixed(2)} ms`,
          holds: gapMs <= AIMS.gapMs,
        },
        ...(times === null
          ? []
          : [
              {
                aim: `${what}: in at most ${AIMS.ofHaproxy} times what HAProxy takes`,
                measured: `${times.toFixed(2)} times`,
                holds: times <= AIMS.ofHaproxy,
              },
            ]),
        {
          aim: `${what}: one call at once at the upstream`,
          measured: String(peak),
          holds: peak === 1,
        },
      ];
    });
}

async function startSubjects({ dir, keep, peers }: Bench, upstreamUrl: string): Promise<Subject[]> {
  const settings = { limits: { max_concurrency: 1 }, holds: { release_cooldown_ms: 0 } };
  const shared = { dir, upstreamUrl, group: 'configured', settings } as const;
  const subjects = [
    keep(await startHeadgate({ ...shared, name: 'Headgate' })),
    keep(await startHeadgate({ ...shared, name: 'Headgate, serve', isServed: true })),
  ];
  if (peers.haproxy) subjects.push(keep(await startHaproxy(dir, upstreamUrl, 1)));
  return subjects;
}

export const handover: BenchScenario = {
  name: 'handover',
  async run(bench) {
    const upstream = bench.keep(await startLimitedUpstream({ limit: null, lagMs: 0 }));
    const subjects = await startSubjects(bench, upstream.url);
    const all = KINDS.flatMap((kind) =>
      subjects.map((subject): HandoverMeasured => ({ subject, kind, rounds: [], peak: 0 })),
    );
    const { rounds, calls } = bench.isQuick ? QUICK : FULL;
    const warmUp = bench.isQuick ? WARM_UP_CALLS.quick : WARM_UP_CALLS.full;
    for (const measured of all) await callInTurn(measured, 0, warmUp);
    for (let round = 0; round < rounds; round += 1) {
      for (const measured of all) await measureTurn(measured, upstream, calls);
      bench.roundIsOver();
    }
    print(all);
    return judge(all);
  },
};
