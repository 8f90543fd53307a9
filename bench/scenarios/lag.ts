import { startHaproxy } from '../support/haproxy.ts';
import { startLimitedUpstream, type LimitedUpstream } from '../support/limited-upstream.ts';
import { LoadCaller } from '../support/load.ts';
import { percent, printTable, type ReportVerdict } from '../support/report.ts';
import { startHeadgate, type Subject } from '../support/subjects.ts';
import { slowChatRequest } from '../support/wire.ts';
import type { Bench, BenchScenario } from './scenario.ts';

/** Pace of a queue before an upstream that goes on counting calls after their end, as a share of the ideal one. */
const AIMS = { withoutLag: 0.95, withLag: 0.9, refusedLater: 0.01 };

const LIMIT = 4;
const CALL_MS = 200;
const CALLS = { full: 200, quick: 24 };
const LAGS_MS = [0, 30, 150];

/** How long herds follow one another until the lag is to be known. */
const LATER_MS = 60_000;

/** One herd of calls, all sent at once. */
interface Burst {
  /** How long after the first one of its lane it began. */
  readonly sinceMs: number;
  readonly wallMs: number;
  /** The best that is possible with this lag. */
  readonly idealMs: number;
  /** Calls that came to the upstream, and those of them that it refused. */
  readonly calls: number;
  readonly refusals: number;
  /** Calls whose callers saw the refusal. */
  readonly failed: number;
  readonly peak: number;
}

/** A subject with an upstream of its own, so that all can queue at the same time. */
interface LagLane {
  readonly subject: Subject;
  readonly lagMs: number;
  readonly upstream: LimitedUpstream;
  readonly bursts: Burst[];
  firstAt: number | null;
}

/** Calls in a row on each slot, and the lag between them. */
const idealOf = (calls: number, lagMs: number): number =>
  (calls / LIMIT) * (CALL_MS + lagMs) - lagMs;

async function sendAll(lane: LagLane, calls: number): Promise<void> {
  const { subject, lagMs, upstream, bursts } = lane;
  const terms = { limit: LIMIT, lagMs };
  await upstream.report(terms);
  const request = slowChatRequest(subject.path, CALL_MS);
  const callers = await Promise.all(
    Array.from({ length: calls }, () => LoadCaller.open(subject.port)),
  );
  const startedAt = performance.now();
  lane.firstAt ??= startedAt;
  const statuses = await Promise.all(callers.map((caller) => caller.statusOf(request)));
  const wallMs = performance.now() - startedAt;
  for (const caller of callers) caller.close();
  const counted = await upstream.report(terms);
  bursts.push({
    sinceMs: startedAt - lane.firstAt,
    wallMs,
    idealMs: idealOf(calls, lagMs),
    calls: counted.calls,
    refusals: counted.refused,
    failed: statuses.filter((status) => status !== 200).length,
    peak: counted.peak,
  });
}

async function startLane(bench: Bench, lagMs: number): Promise<LagLane> {
  const upstream = bench.keep(await startLimitedUpstream({ limit: LIMIT, lagMs }));
  const subject = await startHeadgate({
    name: `Headgate, lag ${lagMs} ms`,
    dir: bench.dir,
    upstreamUrl: upstream.url,
    group: 'configured',
    settings: { limits: { max_concurrency: LIMIT } },
    isServed: true,
  });
  return { subject: bench.keep(subject), lagMs, upstream, bursts: [], firstAt: null };
}

async function startHaproxyLane({ dir, keep }: Bench, lagMs: number): Promise<LagLane> {
  const upstream = keep(await startLimitedUpstream({ limit: LIMIT, lagMs }));
  const subject = keep(await startHaproxy(dir, upstream.url, LIMIT));
  const name = `HAProxy, lag ${lagMs} ms`;
  return { subject: { ...subject, name }, lagMs, upstream, bursts: [], firstAt: null };
}

function print(lanes: readonly LagLane[], calls: number): void {
  console.log(`\nLimit ${LIMIT}, ${calls} calls of ${CALL_MS} ms at once, default holds\n`);
  const rows = lanes.flatMap(({ subject, bursts }) =>
    bursts.map((burst, at) => [
      `${subject.name}${at === 0 ? '' : `, burst ${at + 1}`}`,
      (burst.wallMs / 1_000).toFixed(2),
      percent(burst.idealMs / burst.wallMs),
      String(burst.refusals),
      percent(burst.refusals / burst.calls),
      String(burst.failed),
      String(burst.peak),
    ]),
  );
  const heads = [
    '',
    'wall s',
    'of the ideal',
    'refusals',
    'of calls',
    'callers saw',
    'most at once',
  ];
  printTable([heads, ...rows]);
}

const sum = (bursts: readonly Burst[], of: (burst: Burst) => number): number =>
  bursts.reduce((total, burst) => total + of(burst), 0);

/** Judges the first herd, and those that began after the first minute. */
function judge({ subject, lagMs, bursts }: LagLane): ReportVerdict[] {
  const least = lagMs === 0 ? AIMS.withoutLag : AIMS.withLag;
  const late = bursts.filter(({ sinceMs }) => sinceMs >= LATER_MS);
  const some = [
    ['first burst', bursts.slice(0, 1)],
    ['after a minute', late],
  ] as const;
  const paces = some.flatMap(([when, those]): ReportVerdict[] => {
    if (those.length === 0) return [];
    const share = sum(those, ({ idealMs }) => idealMs) / sum(those, ({ wallMs }) => wallMs);
    const aim = `${subject.name}, ${when}: at least ${percent(least)} of the ideal pace`;
    return [{ aim, measured: percent(share), holds: share >= least }];
  });
  const refused = sum(late, ({ refusals }) => refusals) / sum(late, ({ calls }) => calls);
  const failed = sum(bursts, (burst) => burst.failed);
  const refusals = {
    aim: `${subject.name}, after a minute: at most ${percent(AIMS.refusedLater)} of the calls refused by the upstream`,
    measured: percent(refused),
    holds: refused <= AIMS.refusedLater,
  };
  const seen = {
    aim: `${subject.name}: no caller sees a refusal`,
    measured: String(failed),
    holds: failed === 0,
  };
  return late.length === 0 ? [...paces, seen] : [...paces, refusals, seen];
}

/** Sends herds for a minute, and one more, by which the lag is to be known. */
async function goOn(lane: LagLane, calls: number): Promise<void> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < LATER_MS) await sendAll(lane, calls);
  await sendAll(lane, calls);
}

export const lag: BenchScenario = {
  name: 'lag',
  async run(bench) {
    const calls = bench.isQuick ? CALLS.quick : CALLS.full;
    const lanes: LagLane[] = [];
    for (const lagMs of LAGS_MS) lanes.push(await startLane(bench, lagMs));
    const peers: LagLane[] = [];
    if (bench.peers.haproxy) {
      for (const lagMs of LAGS_MS) peers.push(await startHaproxyLane(bench, lagMs));
    }
    // One after the other: three first herds at once would wait for the cores.
    for (const lane of [...lanes, ...peers]) await sendAll(lane, calls);
    if (!bench.isQuick) await Promise.all(lanes.map((lane) => goOn(lane, calls)));
    bench.roundIsOver();
    print([...lanes, ...peers], calls);
    return lanes.flatMap(judge);
  },
};
