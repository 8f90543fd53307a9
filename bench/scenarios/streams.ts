import { startHaproxy } from '../support/haproxy.ts';
import { printScenario, type ReportVerdict } from '../support/report.ts';
import { FULL_TIMING, QUICK_TIMING, ratio, runRounds, type Scenario } from '../support/rounds.ts';
import { startBare, startHeadgate, type Subject } from '../support/subjects.ts';
import { startUpstream } from '../support/upstream.ts';
import type { Bench, BenchScenario } from './scenario.ts';

const CALLERS = 200;
const EVERY_MS = 20;
const CHUNKS = { full: 300, quick: 100 };
const HAPROXY_MAX = 2_000;

/** Ways of a stream through Headgate, and the most CPU for a chunk, as a multiple of the identity pipe's. */
const WAYS = [
  { name: 'Headgate, configured group', most: 1.1 },
  { name: 'Headgate, automatic group', group: 'automatic', most: 1.1 },
  { name: 'Headgate, serve', isServed: true, most: 1.3 },
  { name: 'Headgate, usage tracked', settings: { track_usage: 'always' }, most: 1.5 },
  {
    name: 'Headgate, serve, usage tracked',
    isServed: true,
    settings: { track_usage: 'always' },
    most: null,
  },
] as const;

async function startWays({ dir, keep }: Bench, upstreamUrl: string): Promise<Subject[]> {
  const subjects: Subject[] = [];
  for (const { most: _, ...way } of WAYS) {
    const options = { dir, upstreamUrl, group: 'configured', ...way } as const;
    subjects.push(keep(await startHeadgate(options)));
  }
  return subjects;
}

export const streams: BenchScenario = {
  name: 'streams',
  async run(bench) {
    const { dir, isQuick, keep, peers } = bench;
    const upstream = await startUpstream();
    keep({ stop: () => upstream.close() });
    const native = keep(await startBare('native body', 'native', dir, upstream.url));
    const pipe = keep(await startBare('identity pipe', 'pipe', dir, upstream.url));
    const ways = await startWays(bench, upstream.url);
    const asked = [native, pipe, ...ways];
    if (peers.haproxy) asked.push(keep(await startHaproxy(dir, upstream.url, HAPROXY_MAX)));

    const streamChunks = isQuick ? CHUNKS.quick : CHUNKS.full;
    const title = `Streams of ${streamChunks} chunks, one in ${EVERY_MS} ms, ${CALLERS} at once`;
    const scenario: Scenario = { title, callers: CALLERS, streamChunks, chunkEveryMs: EVERY_MS };
    const timing = isQuick ? QUICK_TIMING : FULL_TIMING;
    const samples = await runRounds(asked, scenario, timing, bench.roundIsOver);
    printScenario(scenario, samples, { native, pipe });

    return WAYS.flatMap(({ name, most }): ReportVerdict[] => {
      const subject = ways.find((way) => way.name === name);
      if (most === null || subject === undefined) return [];
      const times = ratio(samples, subject, pipe, 'cpuUs');
      const aim = `${name}, streams: at most ${most} times the CPU per chunk of the ${pipe.name}`;
      return [{ aim, measured: `${times.toFixed(3)} times`, holds: times <= most }];
    });
  },
};
