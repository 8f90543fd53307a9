/**
 * Measures what reading the usage of a stream costs. Compares, on plain workerd and in one run, the CPU for a
 * chunk of the metered pipe to that of the native one, and says whether the aim is met. `--quick`: a
 * short run that judges nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildMeteringWorker, startPipe, type PipeKind } from './support/metering-subjects.ts';
import { describePlace } from './support/place.ts';
import { percent, printTable, printVerdicts, type ReportVerdict } from './support/report.ts';
import {
  ratio,
  runRounds,
  typical,
  type Samples,
  type Scenario,
  type Timing,
} from './support/rounds.ts';
import type { Subject } from './support/subjects.ts';
import { startUpstream } from './support/upstream.ts';

/** Streams end by themselves: of the timing only the rounds count. */
const FULL: Timing = { rounds: 7, slices: 1, warmUpMs: 0, measuredMs: 0 };
const QUICK: Timing = { ...FULL, rounds: 1 };

const STREAMS: Scenario = {
  title: 'Streams of 500 chunks, 50 at once',
  callers: 50,
  streamChunks: 500,
};

const DROPPING = 'in JavaScript, watched, metered, usage chunk taken out';

const UNMETERED = 'looked at, watched for silence';
const METERED = 'looked at, watched, metered';

const PIPES: readonly (readonly [PipeKind, string])[] = [
  ['native', 'identity pipe'],
  ['watched', 'in JavaScript, watched for silence'],
  ['observed', UNMETERED],
  ['metered', METERED],
  ['estimated', 'looked at, watched, text counted'],
  ['dropping', DROPPING],
];

/** CPU for a chunk, as a multiple of the identity pipe's. */
const AIM = 1.5;

/** CPU for a metered chunk, as a multiple of an unmetered one's. */
const METERED_AIM = 1.08;

/** The same where something is taken out, for which JavaScript has to run for each. */
const DROPPING_AIM = 3.5;

async function compare(dir: string, upstreamUrl: string, timing: Timing): Promise<ReportVerdict[]> {
  const module = await buildMeteringWorker(join(dir, 'built'));
  const subjects: Subject[] = [];
  try {
    for (const [kind, name] of PIPES) {
      subjects.push(await startPipe(name, kind, { dir, module, upstreamUrl }));
    }
    const samples = await runRounds(subjects, STREAMS, timing);
    const [pipe, , ...metered] = subjects;
    if (pipe === undefined) return [];
    console.log(`\n${STREAMS.title}\n`);
    const rows = subjects.map((subject) => [
      subject.name,
      typical(samples, subject, 'cpuUs').toFixed(1),
      percent(typical(samples, subject, 'busy')),
      ratio(samples, subject, pipe, 'cpuUs').toFixed(2),
    ]);
    printTable([['', 'CPU µs/chunk', 'busy', 'times the pipe'], ...rows]);
    const ofPipe = metered.map((subject) => {
      const times = ratio(samples, subject, pipe, 'cpuUs');
      const aim = subject.name === DROPPING ? DROPPING_AIM : AIM;
      return {
        aim: `${subject.name}: at most ${aim} times the CPU per chunk of the ${pipe.name}`,
        measured: `${times.toFixed(2)} times`,
        holds: times <= aim,
      };
    });
    return [...ofPipe, ...meteredVerdicts(samples, subjects)];
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
  }
}

/** Compares metered chunks with unmetered ones, by pairs of one round: other work beside them slows both down. */
function meteredVerdicts(samples: Samples, subjects: readonly Subject[]): ReportVerdict[] {
  const [plain, metered] = [UNMETERED, METERED].map((name) =>
    subjects.find((subject) => subject.name === name),
  );
  if (plain === undefined || metered === undefined) return [];
  const times = ratio(samples, metered, plain, 'cpuUs');
  return [
    {
      aim: `${METERED}: at most ${METERED_AIM} times the CPU per chunk of: ${UNMETERED}`,
      measured: `${times.toFixed(2)} times`,
      holds: times <= METERED_AIM,
    },
  ];
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' } } });
  const timing = values.quick === true ? QUICK : FULL;
  const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
  const upstream = await startUpstream();
  try {
    console.log(`${describePlace(dir)}\nmedians of ${timing.rounds} interleaved rounds`);
    const allHold = printVerdicts(await compare(dir, upstream.url, timing));
    if (values.quick === true) console.log('\nA quick run: too short to judge by.');
    return allHold || values.quick === true;
  } finally {
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
