/**
 * Measures what a message of a WebSocket costs through Headgate, beside a bare Worker that sends each side's messages to the
 * other one: CPU of workerd for a message, either way, on plain workerd. Subjects take turns, round by round. A turn of
 * Responses takes its slot and gives it back, and its events are looked at. `--quick`: one short round, judges nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { LOADS, runFrames, type FrameLoad, type FrameTiming } from './support/frame-load.ts';
import { OtherWork } from './support/other-work.ts';
import { describePlace } from './support/place.ts';
import { cpuOfAll } from './support/process-cpu.ts';
import { printTable, printVerdicts, type ReportVerdict } from './support/report.ts';
import { median } from './support/rounds.ts';
import { startBare, startHeadgate, type Subject } from './support/subjects.ts';
import { startUpstream } from './support/upstream.ts';

const FULL: FrameTiming = { rounds: 7, warmUpMs: 500, measuredMs: 2_000 };
const QUICK: FrameTiming = { rounds: 1, warmUpMs: 300, measuredMs: 700 };

const UPSTREAM = new URL('support/socket-upstream.ts', import.meta.url);

/** Most CPU of a message, in times that of the bare Worker. */
const AIM = 1.2;

interface FramesSample {
  readonly perS: number;
  readonly cpuUs: number;
  /** Part of one core that the subject used. */
  readonly busy: number;
}

async function sampleOf(
  { port, path, pids }: Subject,
  load: FrameLoad,
  timing: FrameTiming,
): Promise<FramesSample> {
  const marks: number[] = [];
  const base = `ws://127.0.0.1:${port}${path.replace(/\/v1\/.*$/, '')}`;
  const count = await runFrames(base, load, timing, () => marks.push(cpuOfAll(pids)));
  const [before = 0, after = 0] = marks;
  const measuredUs = timing.measuredMs * 1_000;
  return {
    perS: count / (timing.measuredMs / 1_000),
    cpuUs: (after - before) / count,
    busy: (after - before) / measuredUs,
  };
}

/** Runs one load against all subjects; the answer is the verdict about the second one beside the first. */
async function compare(
  subjects: readonly Subject[],
  load: FrameLoad,
  timing: FrameTiming,
  onRound: () => void,
): Promise<ReportVerdict> {
  const samples = subjects.map((): FramesSample[] => []);
  for (let round = 0; round < timing.rounds; round += 1) {
    for (const [at, subject] of subjects.entries()) {
      samples[at]?.push(await sampleOf(subject, load, timing));
    }
    onRound();
  }
  const [bare = []] = samples;
  const times = samples.map((list) =>
    median(list.map(({ cpuUs }, round) => cpuUs / (bare[round]?.cpuUs ?? NaN))),
  );
  console.log(`\n${load.title}, ${load.connections} connections\n`);
  const rows = subjects.map(({ name }, at) => {
    const of = (field: keyof FramesSample): number =>
      median((samples[at] ?? []).map((sample) => sample[field]));
    const shown = [of('perS').toFixed(0), of('cpuUs').toFixed(1), of('busy').toFixed(2)];
    return [name, ...shown, (times[at] ?? NaN).toFixed(2)];
  });
  printTable([['', 'messages/s', 'CPU µs/message', 'busy', 'times the bare Worker'], ...rows]);
  const measured = times[1] ?? NaN;
  return {
    aim: `${load.title}: at most ${AIM} times the CPU of the bare Worker`,
    measured: `${measured.toFixed(2)} times`,
    holds: measured <= AIM,
  };
}

async function startSubjects(dir: string, upstreamUrl: string): Promise<readonly Subject[]> {
  const config = {
    upstreams: [{ id: 'bench', base_url: upstreamUrl, dialect: 'openai', websocket: 'turns' }],
    groups: [
      { name: 'bench', match: { upstreams: ['bench'] }, limits: { max_concurrency: 2_000 } },
    ],
  };
  const given = { dir, upstreamUrl, config, group: 'configured' } as const;
  return [
    await startBare('bare Worker', 'socket', dir, upstreamUrl),
    await startHeadgate({ ...given, name: 'Headgate' }),
    await startHeadgate({ ...given, name: 'Headgate, serve', isServed: true }),
  ];
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' } } });
  const timing = values.quick === true ? QUICK : FULL;
  const dir = await mkdtemp(join(tmpdir(), 'headgate-frames-'));
  const upstream = await startUpstream(UPSTREAM);
  const subjects = await startSubjects(dir, upstream.url);
  try {
    console.log(`${describePlace(dir)}\nmedians of ${timing.rounds} interleaved rounds`);
    const otherWork = new OtherWork();
    const verdicts: ReportVerdict[] = [];
    for (const load of LOADS) {
      verdicts.push(await compare(subjects, load, timing, () => otherWork.round()));
    }
    otherWork.print();
    const allHold = printVerdicts(verdicts);
    if (values.quick === true) console.log('\nA quick run: too short to judge by.');
    return allHold || values.quick === true;
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()));
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
