import { readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { streamsAtOnce } from '../support/load.ts';
import { printTable, type ReportVerdict } from '../support/report.ts';
import { median } from '../support/rounds.ts';
import { startBare, startHeadgate, type Subject } from '../support/subjects.ts';
import { startUpstream } from '../support/upstream.ts';
import type { Bench, BenchScenario } from './scenario.ts';

const STREAMS = 200;
const EVERY_MS = 20;
const CHUNKS = { full: 500, quick: 100 };
const ROUNDS = { full: 3, quick: 1 };

/** How much of a stream has passed when it is measured. */
const MIDST = 0.8;

/** Maximum memory of a stream through Headgate, as a multiple of the identity pipe's: 280 KiB where that has 260. */
const MOST = 1.08;

type MemoryStart = (dir: string, upstreamUrl: string) => Promise<Subject>;

const headgate =
  (name: string, settings: object): MemoryStart =>
  (dir, upstreamUrl) =>
    startHeadgate({ name, dir, upstreamUrl, group: 'configured', settings });

const PIPE = 'identity pipe';
const SUBJECTS: Readonly<Record<string, MemoryStart>> = {
  'native body': (dir, url) => startBare('native body', 'native', dir, url),
  [PIPE]: (dir, url) => startBare(PIPE, 'pipe', dir, url),
  'Headgate, neither side watched': headgate('unwatched', {
    holds: { idle_ms: null, stalled_ms: null },
  }),
  'Headgate, configured group': headgate('watched', {}),
  'Headgate, usage tracked': headgate('tracked', { track_usage: 'always' }),
};

/** Resident memory of a process, in KiB. */
function rssKib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}

/** Measures what a stream adds to a process that has just started, in KiB. */
async function kibPerStream({ pids, port, request }: Subject, chunks: number): Promise<number> {
  const [pid = 0] = pids;
  const stream = request(chunks, EVERY_MS);
  const before = rssKib(pid);
  const load = { port, request: () => stream, callers: STREAMS, mark() {} };
  const inTheMidst = delay(chunks * EVERY_MS * MIDST).then(() => rssKib(pid));
  const [during] = await Promise.all([inTheMidst, streamsAtOnce(load)]);
  return (during - before) / STREAMS;
}

async function measure(
  start: MemoryStart,
  { dir, isQuick }: Bench,
  upstreamUrl: string,
): Promise<number> {
  const subject = await start(await mkdtemp(join(dir, 'memory-')), upstreamUrl);
  try {
    return await kibPerStream(subject, isQuick ? CHUNKS.quick : CHUNKS.full);
  } finally {
    await subject.stop();
  }
}

export const memory: BenchScenario = {
  name: 'memory',
  async run(bench) {
    const upstream = bench.keep(await startKept());
    const kib = new Map(Object.keys(SUBJECTS).map((name) => [name, [] as number[]]));
    for (let round = 0; round < (bench.isQuick ? ROUNDS.quick : ROUNDS.full); round += 1) {
      for (const [name, start] of Object.entries(SUBJECTS)) {
        kib.get(name)?.push(await measure(start, bench, upstream.url));
      }
      bench.roundIsOver();
    }
    const pipeKib = median(kib.get(PIPE) ?? []);
    console.log(`\nMemory of ${STREAMS} open streams in a process that has just started\n`);
    const rows = [...kib].map(([name, rounds]) => [
      name,
      median(rounds).toFixed(0),
      (median(rounds) / pipeKib).toFixed(2),
    ]);
    printTable([['', 'KiB a stream', 'times the pipe'], ...rows]);
    return [...kib]
      .filter(([name]) => name.startsWith('Headgate'))
      .map(([name, rounds]): ReportVerdict => {
        const times = median(rounds) / pipeKib;
        const aim = `${name}, memory of a stream: at most ${MOST} times that of the ${PIPE}`;
        return { aim, measured: `${times.toFixed(2)} times`, holds: times <= MOST };
      });
  },
};

async function startKept(): Promise<{ url: string; stop(): Promise<void> }> {
  const upstream = await startUpstream();
  return { url: upstream.url, stop: () => upstream.close() };
}
