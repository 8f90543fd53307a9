/**
 * Compares small calls of this build with those of other builds, in one run on plain workerd: the builds take turns, slice by
 * slice, so a machine that slows down does so for all of them. `--module <name>=<path>`, once or more: another build's
 * `dist/index.js`. `--rounds <n>`: how many rounds (default 15). `--callers <n>`: callers at once (default 32). The exit code
 * is 1 if a call of this build needs more CPU than `MOST` times that of another build.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { OtherWork } from './support/other-work.ts';
import { describePlace } from './support/place.ts';
import { percent, printTable, printVerdicts, type Verdict } from './support/report.ts';
import {
  FULL_TIMING,
  quantile,
  ratio,
  runRounds,
  typical,
  type Samples,
} from './support/rounds.ts';
import { startHeadgate, type Subject } from './support/subjects.ts';
import { startUpstream } from './support/upstream.ts';

/** The most CPU that a call may need, as a ratio to the same call of another build. */
const MOST = 1.01;

const GROUPS = ['configured', 'automatic'] as const;

const { values } = parseArgs({
  options: {
    module: { type: 'string', multiple: true, default: [] },
    rounds: { type: 'string', default: '15' },
    callers: { type: 'string', default: '32' },
  },
});

/** Returns the middle half of the ratios of two subjects, round by round. */
function spread(samples: Samples, subject: Subject, base: Subject): string {
  const bases = samples.get(base) ?? [];
  const ratios = (samples.get(subject) ?? []).map(
    ({ cpuUs }, round) => cpuUs / (bases[round]?.cpuUs ?? NaN),
  );
  return [0.25, 0.75].map((part) => percent(quantile(ratios, part))).join(' to ');
}

interface Build {
  readonly name: string;
  /** Path of the built module. Absent: this build. */
  readonly module?: string;
}

function otherBuilds(): Build[] {
  if (values.module.length === 0) throw new TypeError('--module <name>=<path> is required.');
  return values.module.map((text) => {
    const [name = '', path = ''] = text.split('=');
    if (name === '' || path === '') {
      throw new TypeError(`--module ${text}: expected <name>=<path>.`);
    }
    return { name, module: resolve(path) };
  });
}

/** Prints what the builds need for a small call, and judges the first one against each of the others. */
function judge(title: string, samples: Samples): Verdict[] {
  const [own, ...others] = samples.keys();
  if (own === undefined) return [];
  console.log(`\n${title}\n`);
  printTable([
    ['', 'calls/s', 'p50 ms', 'p99 ms', 'CPU µs/call'],
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
      aim: `CPU of a call, at most ${percent(MOST)} of ${base.name}`,
      measured: `${percent(measured)} (middle half ${spread(samples, own, base)})`,
      holds: measured <= MOST,
    };
  });
}

async function main(): Promise<boolean> {
  const builds: Build[] = [{ name: 'this build' }, ...otherBuilds()];
  const dir = await mkdtemp(join(tmpdir(), 'headgate-builds-'));
  const started: { stop(): unknown }[] = [];
  const callers = Number(values.callers);
  const timing = { ...FULL_TIMING, rounds: Number(values.rounds) };
  const otherWork = new OtherWork();
  const verdicts: Verdict[] = [];
  try {
    console.log(describePlace(dir));
    const upstream = await startUpstream();
    started.push({ stop: () => upstream.close() });
    for (const group of GROUPS) {
      const subjects: Subject[] = [];
      for (const build of builds) {
        const name = `${build.name}, ${group} group`;
        const options = { ...build, name, dir, upstreamUrl: upstream.url, group };
        const subject = await startHeadgate(options);
        started.push(subject);
        subjects.push(subject);
      }
      const title = `Small JSON calls, ${callers} callers`;
      const scenario = { title, callers, streamChunks: null };
      verdicts.push(
        ...judge(title, await runRounds(subjects, scenario, timing, () => otherWork.round())),
      );
    }
    otherWork.print();
    return printVerdicts(verdicts);
  } finally {
    for (const thing of started.toReversed()) await thing.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
