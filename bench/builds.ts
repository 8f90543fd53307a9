/**
 * Compares the CPU of small calls, or of stream chunks, between this build and others, in one run on plain workerd.
 *
 * The builds take turns, slice by slice, so a slow machine affects all of them equally. Each build is started many
 * times, because two processes of the same build differ by several percent. The order rotates, because the process
 * that starts first costs a little more.
 *
 * - `--module <name>=<path>`: `dist/index.js` of another build. Required, and may be repeated.
 * - `--starts <n>`: number of starts per build (default 12). A multiple of the number of builds is fair to all.
 * - `--rounds <n>`: number of rounds after each start (default 1).
 * - `--callers <n>`: number of concurrent callers (default 32, or 200 for streams).
 * - `--stream-chunks <n>`: measures streams of this many chunks, one every 20 ms, instead of small calls.
 *
 * The exit code is 1 if a call or chunk of this build needs more than `MOST` times the CPU of another build, by the
 * median of all rounds.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { OtherWork } from './support/other-work.ts';
import { describePlace } from './support/place.ts';
import { percent, printTable, printVerdicts, type ReportVerdict } from './support/report.ts';
import {
  FULL_TIMING,
  quantile,
  ratio,
  runRounds,
  typical,
  type Sample,
  type Samples,
} from './support/rounds.ts';
import { startHeadgate, type SubjectsHeadgateOptions, type Subject } from './support/subjects.ts';
import { startUpstream } from './support/upstream.ts';

/** Maximum CPU of a call or chunk, as a ratio to another build. */
const MOST = 1.01;

const GROUPS = ['configured', 'automatic'] as const;

const { values } = parseArgs({
  options: {
    module: { type: 'string', multiple: true, default: [] },
    starts: { type: 'string', default: '12' },
    rounds: { type: 'string', default: '1' },
    callers: { type: 'string' },
    'stream-chunks': { type: 'string' },
  },
});

const chunks = values['stream-chunks'];
const streamChunks = chunks === undefined ? null : Number(chunks);
const CHUNK_EVERY_MS = 20;
const callers = Number(values.callers ?? (streamChunks === null ? 32 : 200));
const UNIT = streamChunks === null ? 'call' : 'chunk';
const timing = { ...FULL_TIMING, rounds: Number(values.rounds) };
/** For several seconds after a start V8 still optimizes hot code, which would count as a cost of the calls. */
const WARM_UP = { rounds: 1, slices: 1, warmUpMs: 4_000, measuredMs: 100 };
const TITLE =
  streamChunks === null
    ? `Small JSON calls, ${callers} callers`
    : `Streams of ${streamChunks} chunks, one in ${CHUNK_EVERY_MS} ms, ${callers} at once`;

/** Returns the middle half of the ratios of two subjects, round by round. */
function spread(samples: Samples, subject: Subject, base: Subject): string {
  const bases = samples.get(base) ?? [];
  const ratios = (samples.get(subject) ?? []).map(
    ({ cpuUs }, round) => cpuUs / (bases[round]?.cpuUs ?? NaN),
  );
  return [0.25, 0.75].map((part) => percent(quantile(ratios, part))).join(' to ');
}

interface BenchBuild {
  readonly name: string;
  /** Path of the built module. Absent: this build. */
  readonly module?: string;
}

function otherBuilds(): BenchBuild[] {
  if (values.module.length === 0) throw new TypeError('--module <name>=<path> is required.');
  return values.module.map((text) => {
    const [name = '', path = ''] = text.split('=');
    if (name === '' || path === '') {
      throw new TypeError(`--module ${text}: expected <name>=<path>.`);
    }
    return { name, module: resolve(path) };
  });
}

/** Prints the CPU of all builds, and compares the first build with each of the others. */
function judge(samples: Samples): ReportVerdict[] {
  const [own, ...others] = samples.keys();
  if (own === undefined) return [];
  console.log(`\n${TITLE}\n`);
  printTable([
    ['', 'calls/s', 'p50 ms', 'p99 ms', `CPU µs/${UNIT}`],
    ...[own, ...others].map((subject) => [
      subject.name,
      typical(samples, subject, 'callsPerS').toFixed(0),
      typical(samples, subject, 'p50Ms').toFixed(1),
      typical(samples, subject, 'p99Ms').toFixed(1),
      typical(samples, subject, 'cpuUs').toFixed(1),
    ]),
  ]);
  return others.map((base) => {
    const measured = ratio(samples, own, base, 'cpuUs');
    return {
      aim: `CPU of a ${UNIT}, at most ${percent(MOST)} of ${base.name}`,
      measured: `${percent(measured)} (middle half ${spread(samples, own, base)})`,
      holds: measured <= MOST,
    };
  });
}

/** Starts all builds, runs the rounds in turn, and stops the builds. */
async function runStart(
  builds: readonly BenchBuild[],
  options: Omit<SubjectsHeadgateOptions, 'name' | 'module'>,
  onRound: () => void,
): Promise<Samples> {
  const subjects: Subject[] = [];
  try {
    for (const build of builds) {
      const name = `${build.name}, ${options.group} group`;
      subjects.push(await startHeadgate({ ...options, ...build, name }));
    }
    const scenario = { title: TITLE, callers, streamChunks, chunkEveryMs: CHUNK_EVERY_MS };
    await runRounds(subjects, scenario, WARM_UP);
    return await runRounds(subjects, scenario, timing, onRound);
  } finally {
    for (const subject of subjects) await subject.stop();
  }
}

/** Joins the samples of several starts of the same builds. The subjects of the first start represent all starts. */
function joined(starts: readonly Samples[]): Samples {
  const [first = new Map<Subject, readonly Sample[]>()] = starts;
  const all = starts.flatMap((samples) => [...samples]);
  const of = ({ name }: Subject): Sample[] =>
    all.flatMap(([subject, samples]) => (subject.name === name ? samples : []));
  return new Map([...first.keys()].map((subject) => [subject, of(subject)]));
}

async function main(): Promise<boolean> {
  const builds: BenchBuild[] = [{ name: 'this build' }, ...otherBuilds()];
  const dir = await mkdtemp(join(tmpdir(), 'headgate-builds-'));
  const otherWork = new OtherWork();
  const verdicts: ReportVerdict[] = [];
  console.log(describePlace(dir));
  const upstream = await startUpstream();
  try {
    for (const group of GROUPS) {
      const starts: Samples[] = [];
      while (starts.length < Number(values.starts)) {
        const options = {
          dir: join(dir, `${group}-${starts.length}`),
          upstreamUrl: upstream.url,
          group,
        };
        const first = starts.length % builds.length;
        const inTurn = [...builds.slice(first), ...builds.slice(0, first)];
        starts.push(await runStart(inTurn, options, () => otherWork.round()));
      }
      verdicts.push(...judge(joined(starts)));
    }
    otherWork.print();
    return printVerdicts(verdicts);
  } finally {
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
