import { createHash } from 'node:crypto';
import { startLimitedUpstream, type LimitedUpstream } from '../support/limited-upstream.ts';
import { LoadCaller } from '../support/load.ts';
import { startPortkey } from '../support/portkey.ts';
import { percent, printTable, type ReportVerdict } from '../support/report.ts';
import { startHeadgate, type Subject } from '../support/subjects.ts';
import { withKey } from '../support/wire.ts';
import type { Bench, BenchScenario } from './scenario.ts';

/** Throughput of several keys, one of which takes less than is configured, against what the upstreams can do. */
const AIMS = { share: 0.95, seen: 0 };

/** Calls that each key takes at once, by its upstream. Four are configured for each. */
const TAKES = [4, 4, 4, 2];
const CONFIGURED = 4;
const IDEAL_SLOTS = TAKES.reduce((sum, slots) => sum + slots, 0);

/** As short as those of models get. */
const CALL_MS = 500;
const CALLS = { full: 700, quick: 70 };

/** Callers that have one call under way each: more than there are slots, so that a slot never lacks one. */
const CALLERS = 28;

const GATEWAY_KEY = 'hg_0123456789abcdef0123456789abcdef';

/** The end of the calls of one subject. */
interface MembersRun {
  readonly name: string;
  readonly wallMs: number;
  readonly calls: number;
  /** Calls whose callers saw something else than an answer. */
  readonly failed: number;
  /** Calls that each upstream refused, and the most that it had at once. */
  readonly refused: readonly number[];
  readonly peaks: readonly number[];
}

async function startKeys({ keep }: Bench): Promise<readonly LimitedUpstream[]> {
  const started: LimitedUpstream[] = [];
  for (const limit of TAKES) {
    started.push(keep(await startLimitedUpstream({ limit, lagMs: 0, callMs: CALL_MS })));
  }
  return started;
}

function configOf(keys: readonly LimitedUpstream[]): object {
  const hash = `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}`;
  return {
    upstreams: keys.map(({ url }, index) => ({
      id: index === 0 ? 'bench' : `bench-${index}`,
      base_url: url,
      dialect: 'openai',
      auth: { secret: `UPSTREAM_BENCH_${index}` },
    })),
    groups: [
      {
        name: 'bench',
        match: { upstreams: ['bench', 'bench-*'] },
        members: keys.map((_, index) => ({
          name: `key-${index}`,
          upstream: index === 0 ? 'bench' : `bench-${index}`,
          limits: { max_concurrency: CONFIGURED },
        })),
      },
    ],
    keys: [{ id: 'bench', hash }],
  };
}

/** Has callers send one call after the other, until so many were sent. */
async function load(
  name: string,
  port: number,
  request: Buffer,
  keys: readonly LimitedUpstream[],
  calls: number,
): Promise<MembersRun> {
  const reportAll = () =>
    Promise.all(
      keys.map((key, index) =>
        key.report({ limit: TAKES[index] ?? null, lagMs: 0, callMs: CALL_MS }),
      ),
    );
  await reportAll();
  const callers = await Promise.all(Array.from({ length: CALLERS }, () => LoadCaller.open(port)));
  let left = calls;
  let failed = 0;
  const startedAt = performance.now();
  const callOn = async (caller: LoadCaller): Promise<void> => {
    while (left > 0) {
      left -= 1;
      if ((await caller.statusOf(request)) !== 200) failed += 1;
    }
  };
  await Promise.all(callers.map(callOn));
  const wallMs = performance.now() - startedAt;
  for (const caller of callers) caller.close();
  const counted = await reportAll();
  const [refused, peaks] = [counted.map((key) => key.refused), counted.map((key) => key.peak)];
  return { name, wallMs, calls, failed, refused, peaks };
}

const idealMs = (calls: number): number => (calls / IDEAL_SLOTS) * CALL_MS;

/** Throughput of what was served, as a part of what the upstreams can do. */
const shareOf = ({ calls, failed, wallMs }: MembersRun): number =>
  ((calls - failed) * CALL_MS) / IDEAL_SLOTS / wallMs;

function print(runs: readonly MembersRun[], calls: number): void {
  console.log(
    `\n${TAKES.length} keys that take ${TAKES.join(', ')} calls at once, ${CALLERS} callers, ${calls} calls of ${CALL_MS} ms: ` +
      `${(idealMs(calls) / 1_000).toFixed(1)} s at best\n`,
  );
  printTable([
    [
      '',
      'wall s',
      'served, of the ideal',
      'callers saw a refusal',
      'refused by key',
      'most at once',
    ],
    ...runs.map((run) => [
      run.name,
      (run.wallMs / 1_000).toFixed(2),
      percent(shareOf(run)),
      percent(run.failed / run.calls),
      run.refused.join(' '),
      run.peaks.join(' '),
    ]),
  ]);
}

async function startOurs(bench: Bench, keys: readonly LimitedUpstream[]): Promise<Subject> {
  const env = Object.fromEntries(
    keys.map((_, index) => [`UPSTREAM_BENCH_${index}`, `sk-${index}`]),
  );
  const subject = await startHeadgate({
    name: 'Headgate, members',
    dir: bench.dir,
    upstreamUrl: keys[0]?.url ?? '',
    group: 'configured',
    config: configOf(keys),
    env,
    isServed: true,
  });
  return bench.keep(subject);
}

function judge(run: MembersRun): ReportVerdict[] {
  return [
    {
      aim: `${run.name}: no caller sees a refusal`,
      measured: String(run.failed),
      holds: run.failed <= AIMS.seen,
    },
    {
      aim: `${run.name}: at least ${percent(AIMS.share)} of what the keys can do`,
      measured: percent(shareOf(run)),
      holds: shareOf(run) >= AIMS.share,
    },
  ];
}

export const members: BenchScenario = {
  name: 'members',
  async run(bench) {
    const calls = bench.isQuick ? CALLS.quick : CALLS.full;
    const keys = await startKeys(bench);
    const ours = await startOurs(bench, keys);
    const request = withKey(ours.request(null), GATEWAY_KEY);
    const runs = [await load(ours.name, ours.port, request, keys, calls)];
    const { portkey } = bench.peers;
    const [first, ...others] = keys.map(({ url }) => url);
    if (portkey !== null && first !== undefined) {
      const peer = bench.keep(await startPortkey(portkey, first, ...others));
      const name = `${peer.name}, weighted`;
      runs.push(await load(name, peer.port, peer.request(null), keys, calls));
    }
    bench.roundIsOver();
    print(runs, calls);
    return runs.slice(0, 1).flatMap(judge);
  },
};
