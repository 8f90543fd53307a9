/**
 * Cost of open dashboards to the calls. Two Headgates on plain workerd with 200 groups each take calls at a
 * steady pace, in turns: nobody looks at one, and 50 dashboards are open on the other. Says by how much the
 * latency differs. `--quick`: a short run that judges nothing. `--rate <n>`: another number of calls a second.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startServe, type Serve } from '../scripts/serve/start-serve.ts';
import type { DashboardsSeen, DashboardsWanted } from './support/dashboards-process.ts';
import { pacedCalls, type PacedLoad } from './support/paced-load.ts';
import { describePlace } from './support/place.ts';
import { cpuOf } from './support/process-cpu.ts';
import { percent, printTable, printVerdicts } from './support/report.ts';
import { median } from './support/rounds.ts';
import { startUpstream } from './support/upstream.ts';
import { chatRequest } from './support/wire.ts';

const GROUPS = 200;
const DASHBOARDS = 50;
const ADMIN_TOKEN = 'bench-admin-token';

/** The largest change of the median latency with the dashboards open. */
const AIM = 0.05;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rate: { type: 'string', default: '50' },
  },
});
const CALLS_PER_S = Number(values.rate);
const ROUNDS = values.quick ? 1 : 5;
/** Turns of each Headgate in a round. */
const TURNS = values.quick ? 1 : 6;
const TURN_MS = 2_000;
/** Once at the beginning, so that all pools are there and the code is compiled. */
const WARM_UP_MS = 8_000;

/** Outcome of one turn, or of the turns of a round together. */
interface DashboardsSample {
  readonly latenciesMs: readonly number[];
  /** Of workerd, as a part of one core. */
  readonly busy: number;
}

/** A Headgate that takes calls. */
interface DashboardsSubject {
  readonly serve: Serve;
  readonly load: PacedLoad;
}

const PROGRAM = fileURLToPath(new URL('support/dashboards-process.ts', import.meta.url));

const MODELS = Array.from({ length: GROUPS }, (_, index) => `model-${index}`);
const REQUESTS = MODELS.map((name) => chatRequest('/bench/v1/chat/completions', name, null));

async function startSubject(dataDir: string, upstreamUrl: string): Promise<DashboardsSubject> {
  const serve = await startServe({
    port: 0,
    dataDir,
    forwarder: false,
    adminToken: ADMIN_TOKEN,
    config: {
      upstreams: [{ id: 'bench', base_url: upstreamUrl, dialect: 'openai' }],
      groups: MODELS.map((name) => ({
        name,
        match: { models: [name] },
        limits: { max_concurrency: 100 },
      })),
    },
  });
  let next = 0;
  const load: PacedLoad = {
    port: Number(new URL(serve.url).port),
    callsPerS: CALLS_PER_S,
    request() {
      next = (next + 1) % REQUESTS.length;
      return REQUESTS[next] ?? Buffer.alloc(0);
    },
  };
  return { serve, load };
}

/** Opens so many dashboards, or closes all; resolves when that is done. */
async function dashboards(
  child: ChildProcess,
  { load: { port } }: DashboardsSubject,
  count: number,
): Promise<DashboardsSeen> {
  const wanted: DashboardsWanted = { port, token: ADMIN_TOKEN, count };
  const answered = once(child, 'message');
  child.send(wanted);
  const [seen] = (await answered) as [DashboardsSeen];
  return seen;
}

async function turn({ serve, load }: DashboardsSubject): Promise<DashboardsSample> {
  const before = cpuOf(serve.workerdPid());
  const latenciesMs = await pacedCalls(load, TURN_MS);
  return { latenciesMs, busy: (cpuOf(serve.workerdPid()) - before) / (TURN_MS * 1_000) };
}

function joined(slices: readonly DashboardsSample[]): DashboardsSample {
  const latenciesMs = slices.flatMap((each) => each.latenciesMs).toSorted((a, b) => a - b);
  return { latenciesMs, busy: median(slices.map(({ busy }) => busy)) };
}

function quantile({ latenciesMs }: DashboardsSample, part: number): number {
  return latenciesMs[Math.floor(latenciesMs.length * part)] ?? NaN;
}

interface DashboardsRounds {
  readonly without: readonly DashboardsSample[];
  readonly open: readonly DashboardsSample[];
  readonly seen: DashboardsSeen;
}

/** Short turns, so that a machine which gets slower or busier does so for both. */
async function runRounds(
  alone: DashboardsSubject,
  watched: DashboardsSubject,
  child: ChildProcess,
): Promise<DashboardsRounds> {
  await dashboards(child, watched, DASHBOARDS);
  for (const { load } of [alone, watched]) await pacedCalls(load, WARM_UP_MS);
  const without: DashboardsSample[] = [];
  const open: DashboardsSample[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const turns = new Map<DashboardsSubject, DashboardsSample[]>([
      [alone, []],
      [watched, []],
    ]);
    for (let index = 0; index < TURNS; index += 1) {
      // Neither is always the second.
      const inTurn = index % 2 === 0 ? [alone, watched] : [watched, alone];
      for (const subject of inTurn) turns.get(subject)?.push(await turn(subject));
    }
    without.push(joined(turns.get(alone) ?? []));
    open.push(joined(turns.get(watched) ?? []));
  }
  return { without, open, seen: await dashboards(child, watched, 0) };
}

/** The median over the rounds of how much larger a figure is with the dashboards open. */
function change(
  { without, open }: DashboardsRounds,
  of: (sample: DashboardsSample) => number,
): number {
  const ratios = open.map((sample, round) => {
    const base = without[round];
    return base === undefined ? NaN : of(sample) / of(base);
  });
  return median(ratios) - 1;
}

function report(rounds: DashboardsRounds): boolean {
  const row = (name: string, samples: readonly DashboardsSample[]) => [
    name,
    ...[0.5, 0.95, 0.99].map((part) =>
      median(samples.map((sample) => quantile(sample, part))).toFixed(2),
    ),
    percent(median(samples.map(({ busy }) => busy))),
  ];
  const changes = [0.5, 0.95, 0.99].map((part) =>
    percent(change(rounds, (sample) => quantile(sample, part))),
  );
  console.log(`\n${CALLS_PER_S} calls/s over ${GROUPS} groups\n`);
  printTable([
    ['', 'p50 ms', 'p95 ms', 'p99 ms', 'workerd busy'],
    row('no dashboard', rounds.without),
    row(`${DASHBOARDS} dashboards`, rounds.open),
    ['change, median of rounds', ...changes, percent(change(rounds, ({ busy }) => busy))],
  ]);
  const { bytes, groupsEvents } = rounds.seen;
  console.log(
    `\n  A dashboard got ${(groupsEvents / DASHBOARDS).toFixed(0)} events with changed groups, ${(bytes / DASHBOARDS / 1_024).toFixed(0)} KiB in all.`,
  );
  const share = change(rounds, (sample) => quantile(sample, 0.5));
  return printVerdicts([
    {
      aim: `${DASHBOARDS} dashboards: median latency at most ${percent(AIM)} longer`,
      measured: percent(share),
      holds: share <= AIM,
    },
  ]);
}

async function main(): Promise<boolean> {
  const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
  const upstream = await startUpstream();
  const child = fork(PROGRAM);
  const alone = await startSubject(join(dir, 'alone'), upstream.url);
  const watched = await startSubject(join(dir, 'watched'), upstream.url);
  try {
    console.log(`${describePlace(dir)}\nmedians of ${ROUNDS} interleaved rounds`);
    const holds = report(await runRounds(alone, watched, child));
    if (values.quick) console.log('\nA quick run: too short to judge by.');
    return holds || values.quick;
  } finally {
    child.disconnect();
    await Promise.all([alone, watched].map(({ serve }) => serve.stop()));
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  }
}

if (!(await main())) process.exitCode = 1;
