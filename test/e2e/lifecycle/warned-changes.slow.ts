// Changes that would refuse calls of the last hour say how many: on the command line, and at the first start with a file.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, ROOT } from '../../../scripts/serve/build.ts';
import { startServe, type Serve } from '../../../scripts/serve/start-serve.ts';
import { startStrictUpstream, type StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { runToEnd, type Ended } from '../support/command-line.ts';
import { createAdmin, type Admin } from '../support/lifecycle-admin.ts';
import {
  NO_HOLDS,
  startStage,
  STAGE_TOKEN,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const CALLS = 2;
const REPORTED = new RegExp(`This change rejects calls that pass today: ${CALLS} of \\d+ calls`);
const HEADERS = { 'content-type': 'application/json' };

/** Makes calls that are served. Workers hear of a new key within seconds. */
async function call(
  url: string,
  headers: Readonly<Record<string, string>>,
  calls = CALLS,
): Promise<void> {
  let served = 0;
  await until('the calls are served', async () => {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...HEADERS, ...headers },
      body: JSON.stringify({ model: 'unpriced', messages: [{ role: 'user', content: 'hello' }] }),
    });
    await answer.text();
    if (answer.status === 200) served += 1;
    return served === calls;
  });
}

/** Waits until calls are counted, as the preview of a change that refuses them says. */
async function untilCounted(admin: Admin, config: object, reported = REPORTED): Promise<void> {
  await until('the calls are counted', async () => {
    const answer = await admin.request('POST', '/config/preview', config);
    const { warnings } = (await answer.json()) as { warnings: readonly string[] };
    return warnings.some((warning) => reported.test(warning));
  });
}

describe('the command line', () => {
  let stage: LifecycleStage;

  const config = (per_day: number | null) => ({
    upstreams: [
      {
        id: 'practice',
        base_url: stage.upstream.url,
        dialect: 'openai',
        prices: { priced: { input: 1, output: 1 } },
      },
    ],
    groups: [
      {
        name: 'practice',
        match: { upstreams: ['practice'] },
        limits: { budget_usd: { per_day } },
        holds: NO_HOLDS,
      },
    ],
    require_key: false,
    leases: 'keys',
  });

  const env = () => ({
    PATH: process.env['PATH'],
    HEADGATE_URL: stage.url(),
    HEADGATE_TOKEN: STAGE_TOKEN,
  });

  const headgate = (...args: string[]): Promise<Ended> =>
    runToEnd([process.execPath, 'scripts/headgate.ts', ...args], { cwd: ROOT, env: env() });

  /** Runs a command on a terminal, where a person types an answer. */
  const onTerminal = (input: string, ...args: string[]): Promise<Ended> => {
    const command = [process.execPath, 'scripts/headgate.ts', ...args].join(' ');
    return runToEnd(['script', '-qec', command, '/dev/null'], { cwd: ROOT, env: env(), input });
  };

  const stateOf = async (id: string): Promise<unknown> => {
    const answer = await stage.admin.request('GET', `/keys/${id}`);
    return ((await answer.json()) as { state?: string }).state;
  };

  beforeAll(async () => {
    stage = await startStage({ upstream: { limit: 10 }, config: () => ({}) });
    await stage.admin.request('PUT', '/config', config(null));
    for (const id of ['ci', 'idle']) {
      const made = await stage.admin.request('POST', '/keys', { id });
      const { secret } = (await made.json()) as { secret: string };
      if (id === 'idle') continue;
      await call(`${stage.url()}/practice/v1/chat/completions`, { 'headgate-key': secret });
    }
    await untilCounted(stage.admin, config(5));
  });

  afterAll(() => stage.close());

  it('diff and apply warn of a budget over a model without a price before they change anything', async () => {
    const stored = (await (await stage.admin.request('GET', '/config')).json()) as object;
    const path = join(stage.dataDir, 'budget.json');
    await writeFile(path, JSON.stringify({ ...stored, groups: config(5).groups }));
    for (const warned of [
      await headgate('diff', path),
      await headgate('apply', path),
      await headgate('apply', path, '--yes'),
    ]) {
      expect(warned.err).toMatch(REPORTED);
      expect(warned.err).toContain('the price is unknown for `unpriced` at `practice` (2)');
      expect(warned.err).toContain('fallback_price');
    }
    expect((await stage.admin.request('PUT', '/config', stored)).status).toBe(200);
  });

  it.each([['revoke'], ['delete'], ['rotate', '--grace', '0']])(
    'keys %s asks on a terminal, and a no changes nothing',
    async (command, ...options) => {
      const args = ['keys', command, 'ci', ...options];
      const before = await (await stage.admin.request('GET', '/keys/ci')).json();
      const refused = await onTerminal('n\n', ...args);
      expect(refused.out).toMatch(REPORTED);
      expect(refused.out).toContain('(`key_invalid`): `ci` (2)');
      expect(refused.out).toContain('[y/N]');
      expect(refused.out).toContain('Nothing was changed.');
      expect(refused.code).toBe(1);
      expect(await (await stage.admin.request('GET', '/keys/ci')).json()).toEqual(before);
    },
  );

  it('does not ask where no call would be refused', async () => {
    for (const args of [
      ['rotate', 'ci', '--grace', '60'],
      ['rotate', 'idle', '--grace', '0'],
      ['revoke', 'idle'],
    ]) {
      const { code, out } = await onTerminal('', 'keys', ...args);
      expect([code, out]).toEqual([0, expect.not.stringContaining('[y/N]')]);
    }
    expect(await stateOf('idle')).toBe('revoked');
  });

  it('makes the change after a yes, with --yes, and in a script, which sees the warning', async () => {
    const agreed = await onTerminal('y\n', 'keys', 'rotate', 'ci', '--grace', '0');
    expect([agreed.code, agreed.out]).toEqual([0, expect.stringMatching(/\bhg_\w+/)]);
    expect(agreed.out.match(/This change rejects/g)).toHaveLength(1);
    const sure = await onTerminal('', 'keys', 'rotate', 'ci', '--grace', '0', '--yes');
    expect([sure.code, sure.out]).toEqual([0, expect.not.stringContaining('[y/N]')]);
    const scripted = await headgate('keys', 'revoke', 'ci');
    expect([scripted.code, scripted.err]).toEqual([0, expect.stringMatching(REPORTED)]);
    expect(await stateOf('ci')).toBe('revoked');
  });
});

describe('serve --config', () => {
  let folder: string;
  let upstream: StrictUpstream;
  const running: Serve[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-warned-'));
    upstream = await startStrictUpstream({ limit: 10 });
  });

  afterAll(async () => {
    for (const serve of running) await serve.kill9();
    await upstream.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** The built Worker, whose OpenAI is the test upstream: without a configuration it knows providers alone. */
  async function workerAtUpstream(): Promise<string> {
    const built = await readFile(await ensureBuilt(), 'utf8');
    const path = join(folder, 'worker.js');
    await writeFile(path, built.replaceAll('https://api.openai.com', upstream.url));
    return path;
  }

  it('reports how many calls its first file refuses that passed without one', async () => {
    const options = {
      port: 0,
      dataDir: join(folder, 'data'),
      env: {},
      adminToken: STAGE_TOKEN,
      module: await workerAtUpstream(),
    };
    const first = await startServe(options);
    running.push(first);
    expect(first.warnings).toEqual([]);
    // The call that verifies a provider key is in no history, and another one may be part of that.
    const reported = /This change rejects calls that pass today: [1-9]\d* of \d+ calls/;
    const headers = { authorization: 'Bearer sk-test' };
    await call(`${first.url}/openai/v1/chat/completions`, headers, 1 + CALLS);
    const config = {
      groups: [
        {
          name: 'chat',
          match: { upstreams: ['openai'] },
          limits: { budget_usd: { per_day: 5 } },
        },
      ],
      leases: 'keys',
    };
    await untilCounted(
      createAdmin(() => first.url, STAGE_TOKEN),
      config,
      reported,
    );
    // As at SIGTERM, when what is only in memory is written.
    await first.stop({ drainMs: 30_000 });
    running.pop();

    const configFile = join(folder, 'first.json');
    await writeFile(configFile, JSON.stringify(config));
    const second = await startServe({ ...options, configFile });
    running.push(second);
    expect(second.imported).toBe(true);
    expect(second.warnings).toContainEqual(expect.stringMatching(reported));
    expect(second.warnings.join('\n')).toMatch(/`unpriced` at `openai` \([1-9]\d*\)/);
  });
});
