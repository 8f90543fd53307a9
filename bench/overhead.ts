/**
 * Measures what Headgate costs a call. Compares it, on plain workerd and in one run, to Workers that only
 * pass calls on, and says whether the aims are met. `--quick`: a short run that judges nothing.
 * `--breakdown`: where the cost goes, part by part.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runBreakdown } from './support/breakdown.ts';
import { describePlace } from './support/place.ts';
import {
  percent,
  printScenario,
  printVerdicts,
  warnOfOtherWork,
  type Verdict,
} from './support/report.ts';
import { ratio, runRounds, type Samples, type Scenario, type Timing } from './support/rounds.ts';
import { ADDED_MS, buildSlowSync } from './support/slow-sync.ts';
import { startBare, startHeadgate, type Subject } from './support/subjects.ts';
import { startUpstream } from './support/upstream.ts';

const FULL: Timing = { rounds: 5, slices: 4, warmUpMs: 300, measuredMs: 700 };
const QUICK: Timing = { rounds: 1, slices: 1, warmUpMs: 300, measuredMs: 700 };

const CALLS: readonly Scenario[] = [32, 256].map((callers) => ({
  title: `Small JSON calls, ${callers} callers`,
  callers,
  streamChunks: null,
}));
const STREAMS: Scenario = {
  title: 'Streams of 500 chunks, 50 at once',
  callers: 50,
  streamChunks: 500,
};

/** Aim, as a share of the bare Workers. */
const AIMS = { ofPipe: 0.4, ofNative: 0.22, streamCpuOfPipe: 1.1 };

/** Aim for a slower disk, as a share of the usual one: a call hardly waits for a write. */
const OF_USUAL_DISK = 0.95;

interface Subjects {
  readonly native: Subject;
  readonly pipe: Subject;
  readonly lease: Subject;
  readonly headgates: readonly Subject[];
  /** On a disk whose syncs take longer; null: not possible here. */
  readonly slow: Subject | null;
}

async function startSubjects(
  dir: string,
  upstreamUrl: string,
  note: (subject: Subject) => Subject,
): Promise<Subjects> {
  const bare = async (name: string, kind: 'native' | 'pipe' | 'lease'): Promise<Subject> =>
    note(await startBare(name, kind, dir, upstreamUrl));
  const headgate = async (
    name: string,
    group: 'configured' | 'automatic',
    env: NodeJS.ProcessEnv = {},
  ): Promise<Subject> => note(await startHeadgate({ name, dir, upstreamUrl, group, env }));

  const slowSync = buildSlowSync(dir);
  if (!slowSync.ok) console.log(`\nNo run on a slower disk: ${slowSync.why}.`);
  return {
    native: await bare('native body', 'native'),
    pipe: await bare('identity pipe', 'pipe'),
    lease: await bare('identity pipe, a lease', 'lease'),
    headgates: [
      await headgate('Headgate, configured group', 'configured'),
      await headgate('Headgate, automatic group', 'automatic'),
    ],
    slow: slowSync.ok
      ? await headgate(`Headgate, ${ADDED_MS} ms more a sync`, 'configured', slowSync.env)
      : null,
  };
}

function judgeCalls({ callers }: Scenario, samples: Samples, all: Subjects): Verdict[] {
  const { native, pipe, headgates, slow } = all;
  const [usual] = headgates;
  const verdict = (subject: Subject, base: Subject, least: number): Verdict => {
    const share = ratio(samples, subject, base, 'callsPerS');
    return {
      aim: `${subject.name}, ${callers} callers: calls/s at least ${percent(least)} of the ${base.name}`,
      measured: percent(share),
      holds: share >= least,
    };
  };
  return [
    ...headgates.flatMap((subject) => [
      verdict(subject, pipe, AIMS.ofPipe),
      verdict(subject, native, AIMS.ofNative),
    ]),
    ...(slow === null || usual === undefined ? [] : [verdict(slow, usual, OF_USUAL_DISK)]),
  ];
}

function judgeStreams(samples: Samples, { pipe, headgates }: Subjects): Verdict[] {
  return headgates.map((subject) => {
    const times = ratio(samples, subject, pipe, 'cpuUs');
    return {
      aim: `${subject.name}, streams: at most ${AIMS.streamCpuOfPipe} times the CPU per chunk of the ${pipe.name}`,
      measured: `${times.toFixed(3)} times`,
      holds: times <= AIMS.streamCpuOfPipe,
    };
  });
}

async function compare(dir: string, upstreamUrl: string, timing: Timing): Promise<Verdict[]> {
  const running: Subject[] = [];
  try {
    const subjects = await startSubjects(dir, upstreamUrl, (subject) => {
      running.push(subject);
      return subject;
    });
    const { native, pipe, lease, headgates, slow } = subjects;
    const fastOnes = [native, pipe, lease, ...headgates];
    const verdicts: Verdict[] = [];
    for (const scenario of CALLS) {
      const asked = slow === null ? fastOnes : [...fastOnes, slow];
      const samples = await runRounds(asked, scenario, timing);
      printScenario(scenario, samples, subjects);
      warnOfOtherWork(samples, subjects);
      verdicts.push(...judgeCalls(scenario, samples, subjects));
    }
    const samples = await runRounds(fastOnes, STREAMS, timing);
    printScenario(STREAMS, samples, subjects);
    return [...verdicts, ...judgeStreams(samples, subjects)];
  } finally {
    await Promise.all(running.map((subject) => subject.stop()));
  }
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: { quick: { type: 'boolean' }, breakdown: { type: 'boolean' } },
  });
  const timing = values.quick === true ? QUICK : FULL;
  const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
  const upstream = await startUpstream();
  try {
    console.log(`${describePlace(dir)}\nmedians of ${timing.rounds} interleaved rounds`);
    if (values.breakdown === true) {
      await runBreakdown(dir, upstream.url, timing);
      return true;
    }
    const allHold = printVerdicts(await compare(dir, upstream.url, timing));
    if (values.quick === true) console.log('\nA quick run: too short to judge by.');
    return allHold || values.quick === true;
  } finally {
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
