// Each check passes before a deployment that keeps its promises, and fails before one that breaks that promise.
import { afterAll, expect, it } from 'vitest';
import { CHECKS } from '../../../scripts/canary/checks.ts';
import { paceOf, type CanaryPace } from '../../../scripts/canary/pace.ts';
import { reportSchema, type CanaryReport } from '../../../scripts/canary/report-schema.ts';
import { runCanary, type RunOptions } from '../../../scripts/canary/run.ts';
import { until } from '../../../scripts/canary/wait.ts';
import { startDouble, type Double, type Faults } from './double.ts';

const TOKEN = 'the-admin-token';

/** They wait much and compute little. */
const TEST = { timeout: 120_000, concurrent: true };

const doubles: Double[] = [];

afterAll(() => Promise.all(doubles.map((double) => double.close())));

/** Little of everything; patience is what a busy machine may need. */
const PACE: CanaryPace = {
  ...paceOf({ load: 0.01, long: false, waitsS: [0.5] }),
  settleMs: 0,
  overload: { ratesPerS: [20, 40], stepMs: 200 },
  memory: { waiters: [5, 10], stepMs: 20_000 },
  release: { withinMs: 20_000, lookEveryMs: 10 },
  isolates: { calls: 10, everyMs: 1 },
  egress: { calls: 4, atOnce: 2 },
  deploy: { waiters: 3, streams: 4, probeMs: 50, maxMs: 60_000, afterMs: 2_500 },
  feed: { openMs: 1_000 },
};

async function start(faults: Faults = {}): Promise<Double> {
  const double = await startDouble(faults);
  doubles.push(double);
  return double;
}

/** Deploys once counts have begun, without which nobody could tell that they begin anew. */
async function deployTo(double: Double): Promise<void> {
  const group = () => [...double.groups.values()].find(({ name }) => name.endsWith('-deploy'));
  await until(() => (group()?.decisions() ?? 0) > 3, { withinMs: 60_000, everyMs: 10 });
  double.reset();
}

interface RunChoice {
  readonly pace?: Partial<CanaryPace>;
  readonly upstream?: RunOptions['upstream'];
  readonly deployed?: () => Promise<void>;
}

/** Runs one check before a double. */
function run(double: Double, id: string, choice: RunChoice = {}): Promise<CanaryReport> {
  const { pace = {}, upstream = { id: 'up', model: 'some-model' } } = choice;
  return runCanary({
    target: { url: double.url, token: TOKEN, gatewayKey: null, providerKey: 'sk-1' },
    checks: CHECKS,
    choice: { only: [id], consents: new Set(['load', 'upstream', 'deploy']) },
    pace: { ...PACE, ...pace },
    upstream,
    signal: new AbortController().signal,
    say: () => undefined,
    deployed: choice.deployed ?? (() => deployTo(double)),
  });
}

const resultOf = (report: CanaryReport, id: string) =>
  reportSchema.parse(report).checks.find((check) => check.id === id);

it.each(CHECKS.map(({ id }) => id))('%s passes before one that is well', TEST, async (id) => {
  const double = await start();
  const report = await run(double, id);
  expect(resultOf(report, id)).toMatchObject({ result: 'pass' });
  expect(report).toMatchObject({ passed: true, groups_left: [] });
  expect([...double.groups.keys()]).toEqual([]);
  expect(JSON.stringify(report)).not.toContain(TOKEN);
  expect([...double.tokens]).toEqual([`Bearer ${TOKEN}`]);
});

const IMPATIENT = { release: { withinMs: 300, lookEveryMs: 10 } };

it.each<[string, string, Faults, RegExp, Partial<CanaryPace>?]>([
  ['latency', 'is slow', { delayMs: 700 }, /adds \d{3,} ms/, { latency: { calls: 1, grants: 1 } }],
  [
    'latency',
    'answers something else',
    { answers: { status: 500, reason: 'internal' } },
    /500 internal/,
  ],
  [
    'isolates',
    'reads the configuration for each call',
    { alwaysReadsConfig: true },
    /configuration: 10 /,
  ],
  ['release', 'keeps who has left', { keepsLeavers: true }, /close: not within/, IMPATIENT],
  ['silence', 'cuts who waits', { cutsWaitsAfterMs: 100 }, /silent: no response/],
  ['upload', 'cuts an upload that waits', { cutsWaitsAfterMs: 100 }, /no response/],
  ['feed', 'has no feed', { feed: 'refused' }, /returned 503/],
  ['feed', 'tells nothing at first', { feed: 'without_snapshot' }, /snapshots: 0/],
  ['cost', 'takes more than it says', { countsTwice: true }, /each call: 2\.00/],
  ['egress', 'is refused by its provider', { refusedByProvider: true }, /403 for 2 of 4/],
  [
    'overload',
    'is overloaded at once',
    { answers: { status: 503, reason: 'limiter_overloaded' } },
    /overloaded at 20/,
  ],
  [
    'overload',
    'breaks under load',
    { answers: { status: 500, reason: 'internal' } },
    /500 internal/,
  ],
  ['memory', 'begins anew', { restartsAt: 8 }, /restarts: 1/],
  [
    'memory',
    'forgets who waits',
    { forgetsBeyond: 7 },
    /lost: 3/,
    { memory: { waiters: [10], stepMs: 500 } },
  ],
  ['deploy', 'grants too much', { overGrants: true }, /over-grants: [1-9]/],
  ['deploy', 'cuts streams', { cutsStreams: true }, /streams cut: [1-9]/],
  [
    'deploy',
    'refuses who waits',
    { answers: { status: 503, reason: 'limiter_unavailable' } },
    /503 responses: [1-9]\d*; queued calls lost: 3/,
  ],
])('%s fails before one that %s', TEST, async (id, _how, faults, says, pace = {}) => {
  const report = await run(await start(faults), id, { pace });
  expect(resultOf(report, id)).toMatchObject({
    result: 'fail',
    found: expect.stringMatching(says),
  });
  expect(report.passed).toBe(false);
});

it('does not pass where its groups stay', TEST, async () => {
  const report = await run(await start({ keepsGroups: true }), 'cost');
  expect(resultOf(report, 'cost')).toMatchObject({ result: 'pass' });
  expect(report.groups_left).toEqual(
    ['try', 'cost', 'upstream'].map((label) => `canary-${report.run}-${label}`),
  );
  expect(report.passed).toBe(false);
});

it('proves nothing by a deploy that reset no pool', TEST, async () => {
  const deployed = () => Promise.resolve();
  const report = await run(await start(), 'deploy', { upstream: null, deployed });
  expect(resultOf(report, 'deploy')).toMatchObject({
    result: 'skipped',
    found: expect.stringContaining('the check proves nothing'),
  });
});

it('removes what an earlier run has left, and nothing else', TEST, async () => {
  const double = await start();
  const put = (name: string, model: string) =>
    fetch(`${double.url}/admin/api/groups/${name}`, {
      method: 'PUT',
      body: JSON.stringify({ match: { models: [model] }, limits: { max_concurrency: 1 } }),
    });
  await put('canary-of-the-house', 'gpt-4o');
  await put('house', 'headgate-canary-x');
  await put('canary-aa11-cost', 'headgate-canary-aa11-cost');
  await run(double, 'cost');
  expect([...double.groups.keys()]).toEqual(['canary-of-the-house', 'house']);
});
