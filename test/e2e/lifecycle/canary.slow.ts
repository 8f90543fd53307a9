import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CHECKS } from '../../../scripts/canary/checks.ts';
import { reportSchema, type CanaryReport } from '../../../scripts/canary/report-schema.ts';
import { RESET_LEASE, resettableWorker } from '../support/changed-worker.ts';
import { runScript, type Script } from '../support/lifecycle-script.ts';
import {
  practiceConfig,
  STAGE_TOKEN,
  startStage,
  type LifecycleStage,
  type LifecycleStageOptions,
} from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { startTlsFront, type TlsFront } from '../support/tls-front.ts';

/** `npm run canary` as somebody runs it against a deployment, which here is one of our own. */

/** It waits more than it does, and every check once. */
const TIMEOUT_MS = 240_000;

/** The provider's key of the calls, which nobody is to see. */
const PROVIDER_KEY = 'sk-of-the-canary-4711';

/** Streams that outlast whoever leaves them. */
const LONG_STREAMS = { limit: 50, chunks: 60, chunkDelayMs: 250 };

let folder: string;
let stage: LifecycleStage | null = null;
let script: Script | null = null;
let front: TlsFront | null = null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-canary-'));
});

afterEach(async () => {
  await script?.end();
  await front?.close();
  front = null;
  await stage?.close();
  await rm(folder, { recursive: true, force: true });
});

const start = async (options: Partial<LifecycleStageOptions>): Promise<LifecycleStage> => {
  stage = await startStage({ config: practiceConfig(3), upstream: LONG_STREAMS, ...options });
  return stage;
};

function canary(url: string, ...args: readonly string[]): Script {
  return canaryWith({ PROVIDER_KEY }, url, args);
}

function canaryWith(keys: NodeJS.ProcessEnv, url: string, args: readonly string[]): Script {
  const trusted = front === null ? {} : { NODE_EXTRA_CA_CERTS: front.certificate };
  const env = { ADMIN_TOKEN: STAGE_TOKEN, ...keys, ...trusted };
  script = runScript(['scripts/canary.ts', '--url', url, ...args], env);
  return script;
}

/** Waits until a run has passed; where it has not, its report says why. */
async function toPass(run: Script): Promise<void> {
  if ((await run.exited) !== 0) throw new Error(run.output());
}

/** Asks for the names of all groups. */
async function groupNames(url: string): Promise<string[]> {
  const headers = { authorization: `Bearer ${STAGE_TOKEN}` };
  const response = await fetch(`${url}/admin/api/groups`, { headers });
  const { groups } = (await response.json()) as { groups: { name: string }[] };
  return groups.map(({ name }) => name);
}

/** Asks which versions of the configuration can be restored. */
async function versionsOf(url: string): Promise<number[]> {
  const headers = { authorization: `Bearer ${STAGE_TOKEN}` };
  const response = await fetch(`${url}/admin/api/config/versions`, { headers });
  const { versions } = (await response.json()) as { versions: { version: number }[] };
  return versions.map(({ version }) => version);
}

const reportFile = (): string => join(folder, 'report.json');
const readReport = async (): Promise<CanaryReport> =>
  reportSchema.parse(JSON.parse(await readFile(reportFile(), 'utf8')));

const CALLS_PRACTICE = ['--upstream', 'practice', '--model', 'practice', '--allow-spend'];
const LITTLE = ['--load', '0.05', '--waits-s', '3'];

it(
  'passes, tells what it found, and leaves nothing behind',
  async () => {
    const { url, upstream } = await start({});
    const versions = await versionsOf(url());
    const all = ['--allow-load', ...CALLS_PRACTICE, ...LITTLE, '--json', reportFile()];
    const run = canary(url(), ...all);
    await toPass(run);
    const printed = run.output();
    expect(printed).toContain('All groups of the run were removed.');

    const report = await readReport();
    const results = Object.fromEntries(report.checks.map(({ id, result }) => [id, result]));
    const passed = CHECKS.map(({ id }) => [id, id === 'deploy' ? 'skipped' : 'pass']);
    expect(results).toEqual(Object.fromEntries(passed));
    expect(report).toMatchObject({ passed: true, groups_left: [], upstream: 'practice' });
    for (const { id, found } of report.checks) {
      expect(printed).toContain(id);
      expect(found).not.toBe('');
    }
    expect(await groupNames(url())).toEqual(['practice']);
    expect((await versionsOf(url())).slice(1)).toEqual(versions);
    // Only those calls got there that were meant to.
    expect(upstream.stats().total).toBe(report.sent.calls_to_upstream);
    for (const secret of [STAGE_TOKEN, PROVIDER_KEY]) {
      expect(printed + JSON.stringify(report)).not.toContain(secret);
    }
  },
  TIMEOUT_MS,
);

it(
  'removes its groups when it is stopped, and those of a run that could not',
  async () => {
    const { url } = await start({});
    const killed = canary(url(), '--only', 'silence', '--waits-s', '600');
    await killed.untilPrinted(/calls that wait for/);
    killed.kill('SIGKILL');
    await killed.exited;
    expect(await groupNames(url())).toContainEqual(expect.stringMatching(/^canary-.*-silence$/));

    const stopped = canary(url(), '--only', 'silence', '--waits-s', '600');
    await stopped.untilPrinted(/removing group canary-\w+-silence of an earlier run/);
    await stopped.untilPrinted(/calls that wait for/);
    stopped.kill('SIGINT');
    expect(await stopped.exited).toBe(130);
    expect(stopped.output()).toContain('the run was stopped before');
    expect(await groupNames(url())).toEqual(['practice']);
  },
  TIMEOUT_MS,
);

it(
  'leaves in each way that there is, over HTTP/2 too',
  async () => {
    const { url } = await start({});
    front = await startTlsFront(url(), folder);
    const run = canary(front.url, '--only', 'release', ...CALLS_PRACTICE, '--json', reportFile());
    await toPass(run);
    const [release] = (await readReport()).checks.filter(({ id }) => id === 'release');
    const ways = ['close', 'reset', 'half_close'].map((how) => `HTTP/1.1 ${how}`);
    ways.push('HTTP/2 stream_reset', 'HTTP/2 connection_close');
    const all = ['waiting', 'streaming'].flatMap((state) => ways.map((way) => `${state}, ${way}`));
    const times = release?.figures['free_after_ms'] as Record<string, number>;
    expect(Object.keys(times)).toEqual(all);
    expect(Object.values(times).filter(Number.isFinite)).toHaveLength(all.length);
  },
  TIMEOUT_MS,
);

it(
  "calls with the operator's key by a gateway key that nobody else has",
  async () => {
    const { url, upstream } = await start({
      env: { UPSTREAM_PRACTICE: 'operator-secret' },
      config: ({ url: base }) => ({
        upstreams: [{ id: 'practice', base_url: base, auth: { secret: 'UPSTREAM_PRACTICE' } }],
      }),
    });
    const keyOf = async (id: string): Promise<string> => {
      const headers = {
        'content-type': 'application/json',
        authorization: `Bearer ${STAGE_TOKEN}`,
      };
      const body = JSON.stringify({ id });
      const answer = await fetch(`${url()}/admin/api/keys`, { method: 'POST', headers, body });
      return ((await answer.json()) as { secret: string }).secret;
    };
    const args = ['--only', 'latency', ...CALLS_PRACTICE, ...LITTLE, '--json', reportFile()];
    const shared = canaryWith({ HEADGATE_KEY: await keyOf('team') }, url(), args);
    expect(await shared.exited).toBe(2);
    expect(shared.output()).toContain('Other clients may use the key `team`');

    const key = await keyOf('canary-1');
    const run = canaryWith({ HEADGATE_KEY: key }, url(), args);
    await toPass(run);
    expect(run.output()).not.toContain(key);
    const { sent, checks } = await readReport();
    expect(sent.calls_to_upstream).toBe(1);
    expect(upstream.stats().total).toBe(1);
    // It was granted in the group of the canary, which was there alone.
    expect(checks[0]?.figures['grant_wait_ms']).not.toBeNull();
  },
  TIMEOUT_MS,
);

it(
  'sees that callers do not notice a reset of their pool',
  async () => {
    const module = resettableWorker;
    const upstream = { limit: 50, chunks: 20, chunkDelayMs: 100 };
    const { url } = await start({ module, upstream });
    const options = ['--only', 'deploy', '--during-deploy', ...LITTLE, ...CALLS_PRACTICE];
    const run = canary(url(), ...options, '--json', reportFile());
    await run.untilPrinted(/Deploy now, and press Enter/);
    const name = (await groupNames(url())).find((each) => each.endsWith('-deploy')) ?? '';
    const headers = { authorization: `Bearer ${STAGE_TOKEN}` };
    const group = `${url()}/admin/api/groups/${name}`;
    await until('a probe was refused', async () => {
      const status = (await (await fetch(`${group}/status`, { headers })).json()) as {
        rejected_total: Record<string, number>;
      };
      return (status.rejected_total['queue_timeout'] ?? 0) > 2;
    });
    await fetch(`${group}/leases/${RESET_LEASE}`, { method: 'DELETE', headers });
    run.type('');
    await toPass(run);
    const { checks } = await readReport();
    const deploy = checks.find(({ id }) => id === 'deploy');
    expect(deploy).toMatchObject({
      result: 'pass',
      figures: {
        pool_began_anew: true,
        answers_503: 0,
        waiters_lost: 0,
        streams_cut: 0,
        over_grants: 0,
      },
    });
  },
  TIMEOUT_MS,
);

it('refuses what nobody has consented to, without asking anybody anything', async () => {
  // Nothing listens there.
  const run = canary('http://127.0.0.1:9', '--only', 'overload');
  expect(await run.exited).toBe(2);
  expect(run.output()).toMatch(/overload: .*--allow-load/);
});

it('tells what it would do, and does nothing of it', async () => {
  const run = canary('http://127.0.0.1:9', '--dry-run', '--allow-load', ...CALLS_PRACTICE);
  expect(await run.exited).toBe(0);
  expect(run.output()).toContain('Plan for http://127.0.0.1:9');
  expect(run.output()).toMatch(/egress +0 calls, 200 calls to practice that cost money/);
  expect(run.output()).toMatch(/deploy +skipped/);
});
