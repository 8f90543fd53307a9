import { startHaproxy } from '../support/haproxy.ts';
import { startPortkey } from '../support/portkey.ts';
import { percent, printScenario, warnOfOtherWork, type ReportVerdict } from '../support/report.ts';
import { FULL_TIMING, QUICK_TIMING, ratio, runRounds } from '../support/rounds.ts';
import type { Samples, Scenario } from '../support/rounds.ts';
import { ADDED_MS, buildSlowSync } from '../support/slow-sync.ts';
import { startBare, startHeadgate, type Subject } from '../support/subjects.ts';
import { startUpstream } from '../support/upstream.ts';
import type { Bench, BenchScenario } from './scenario.ts';

/** Calls a second, as a share of another's: the more callers, the less of a call is the way to the object. */
const AIMS = [
  { callers: 32, ofPipe: 0.6, ofNative: 0.22, ofPortkey: 2 },
  { callers: 256, ofPipe: 0.65, ofNative: 0.22, ofPortkey: 2 },
] as const;
type Aims = (typeof AIMS)[number];

/** Aim for a slower disk, as a share of the usual one: a call hardly waits for a write. */
const OF_USUAL_DISK = 0.95;

/** More than there are callers: HAProxy's queue stays empty, as Headgate's does. */
const HAPROXY_MAX = 2_000;

interface Subjects {
  readonly native: Subject;
  readonly pipe: Subject;
  readonly headgates: readonly Subject[];
  /** On a disk whose syncs take longer; null: not possible here. */
  readonly slow: Subject | null;
  /** Null: not compared to. */
  readonly portkey: Subject | null;
  /** All, in the order in which they are asked. */
  readonly asked: readonly Subject[];
}

async function startSubjects({ dir, keep, peers }: Bench, upstreamUrl: string): Promise<Subjects> {
  const shared = { dir, upstreamUrl, group: 'configured' } as const;
  const slowSync = buildSlowSync(dir);
  if (!slowSync.ok) console.log(`\nNo run on a slower disk: ${slowSync.why}.`);
  const native = keep(await startBare('native body', 'native', dir, upstreamUrl));
  const pipe = keep(await startBare('identity pipe', 'pipe', dir, upstreamUrl));
  const lease = keep(await startBare('identity pipe, a lease', 'lease', dir, upstreamUrl));
  const headgates = [
    keep(await startHeadgate({ ...shared, name: 'Headgate, configured group' })),
    keep(await startHeadgate({ ...shared, name: 'Headgate, automatic group', group: 'automatic' })),
  ];
  const served = keep(await startHeadgate({ ...shared, name: 'Headgate, serve', isServed: true }));
  const slowName = `Headgate, ${ADDED_MS} ms more a sync`;
  const slow = slowSync.ok
    ? keep(await startHeadgate({ ...shared, name: slowName, env: slowSync.env }))
    : null;
  const haproxy = peers.haproxy ? keep(await startHaproxy(dir, upstreamUrl, HAPROXY_MAX)) : null;
  const portkey =
    peers.portkey === null ? null : keep(await startPortkey(peers.portkey, upstreamUrl));
  const perhaps = [slow, haproxy, portkey].filter((subject) => subject !== null);
  const asked = [native, pipe, lease, ...headgates, served, ...perhaps];
  return { native, pipe, headgates, slow, portkey, asked };
}

function judge(aims: Aims, samples: Samples, all: Subjects): ReportVerdict[] {
  const { native, pipe, headgates, slow, portkey } = all;
  const [usual] = headgates;
  const verdict = (subject: Subject, base: Subject, least: number): ReportVerdict => {
    const share = ratio(samples, subject, base, 'callsPerS');
    return {
      aim: `${subject.name}, ${aims.callers} callers: calls/s at least ${percent(least)} of the ${base.name}`,
      measured: percent(share),
      holds: share >= least,
    };
  };
  return [
    ...headgates.flatMap((subject) => [
      verdict(subject, pipe, aims.ofPipe),
      verdict(subject, native, aims.ofNative),
      ...(portkey === null ? [] : [verdict(subject, portkey, aims.ofPortkey)]),
    ]),
    ...(slow === null || usual === undefined ? [] : [verdict(slow, usual, OF_USUAL_DISK)]),
  ];
}

export const smallCalls: BenchScenario = {
  name: 'calls',
  async run(bench) {
    const upstream = await startUpstream();
    bench.keep({ stop: () => upstream.close() });
    const subjects = await startSubjects(bench, upstream.url);
    const timing = bench.isQuick ? QUICK_TIMING : FULL_TIMING;
    const verdicts: ReportVerdict[] = [];
    for (const aims of AIMS) {
      const { callers } = aims;
      const title = `Small JSON calls, ${callers} callers`;
      const scenario: Scenario = { title, callers, streamChunks: null };
      const samples = await runRounds(subjects.asked, scenario, timing, bench.roundIsOver);
      printScenario(scenario, samples, subjects);
      warnOfOtherWork(samples, subjects);
      verdicts.push(...judge(aims, samples, subjects));
    }
    return verdicts;
  },
};
