import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callsInFlight } from '../../../scripts/serve/admin-client.ts';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { createAdmin } from '../support/lifecycle-admin.ts';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openCall, openChat } from '../support/lifecycle-call.ts';
import type { Script } from '../support/lifecycle-script.ts';
import { runScript } from '../support/lifecycle-script.ts';
import { practiceConfig, STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { clock, FIGURE, until } from '../support/lifecycle-wait.ts';

/** `npm run serve` as people start it: a process, a folder, a file, signals. */
let dataDir: string;
let upstream: StrictUpstream;
const scripts: Script[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'headgate-serve-'));
  upstream = await startStrictUpstream();
});

afterEach(async () => {
  await Promise.all(scripts.splice(0).map((script) => script.end()));
  await upstream.close();
  await rm(dataDir, { recursive: true, force: true });
});

interface Served {
  readonly script: Script;
  readonly url: string;
}

function serve(args: readonly string[], env: NodeJS.ProcessEnv): Script {
  const data = ['--port', '0', '--data', join(dataDir, 'data')];
  const script = runScript(['scripts/serve.ts', ...data, ...args], env);
  scripts.push(script);
  return script;
}

async function untilServed(script: Script): Promise<Served> {
  const [, url = ''] = await script.untilPrinted(/listens on (http:\S+),/);
  return { script, url };
}

/** Serves with the admin routes open. */
const startServed = (...args: readonly string[]): Promise<Served> =>
  untilServed(serve(args, { ADMIN_TOKEN: STAGE_TOKEN }));

async function configFile(name: string, text: string): Promise<string> {
  const path = join(dataDir, name);
  await writeFile(path, text);
  return path;
}

const jsonFile = (limit: number): Promise<string> =>
  configFile('headgate.json', JSON.stringify(practiceConfig(limit)(upstream)));

async function limitOf(url: string): Promise<number | null> {
  return (await createAdmin(() => url, STAGE_TOKEN).group('practice')).limit.effective;
}

describe('the configuration of the first start', () => {
  it('is imported from JSON, and not again at the second start', async () => {
    const first = await startServed('--config', await jsonFile(3));
    await first.script.untilPrinted(/Imported the configuration from/);
    expect(await limitOf(first.url)).toBe(3);
    first.script.kill('SIGTERM');
    expect(await first.script.exited).toBe(0);

    const second = await startServed('--config', await jsonFile(7));
    await second.script.untilPrinted(/was not imported because a configuration exists/);
    expect(await limitOf(second.url)).toBe(3);
  });

  it('is imported from YAML, with the admin routes closed too', async () => {
    const yaml = [
      'upstreams:',
      `  - { id: practice, base_url: '${upstream.url}' }`,
      'groups:',
      '  - name: practice',
      '    match: { upstreams: [practice] }',
      '    limits: { max_concurrency: 2 }',
    ].join('\n');
    const file = await configFile('headgate.yaml', yaml);
    const closed = await untilServed(serve(['--config', file], { ADMIN_TOKEN: 'two words' }));
    await closed.script.untilPrinted(/Imported the configuration from/);
    await closed.script.untilPrinted(
      /ADMIN_TOKEN has white space .*, so the admin routes are disabled/,
    );
    expect((await fetch(`${closed.url}/admin/api/config`)).status).toBe(403);
    closed.script.kill('SIGTERM');
    expect(await closed.script.exited).toBe(0);

    const open = await startServed('--config', file);
    expect(await limitOf(open.url)).toBe(2);
  });

  it('is imported from the format of another system, with what was left out', async () => {
    const entry = (provider: string) =>
      `{ name: ${provider}, max_concurrency: 2, providers: [${provider}] }`;
    const groups = `concurrency_groups: [${entry('openai')}, ${entry('nowhere')}]`;
    const file = await configFile('foreign.yaml', groups);
    const { script, url } = await untilServed(
      serve(['--config', file], { ADMIN_TOKEN: STAGE_TOKEN }),
    );
    await script.untilPrinted(/Not imported: concurrency_groups\[1\]\.providers\[0\]: /);
    const stored = await fetch(`${url}/admin/api/config`, {
      headers: { authorization: `Bearer ${STAGE_TOKEN}` },
    });
    expect(await stored.json()).toMatchObject({ groups: [{ name: 'openai' }] });
    script.kill('SIGTERM');
    expect(await script.exited).toBe(0);
  });

  it.each([
    ['with an ADMIN_TOKEN', { ADMIN_TOKEN: STAGE_TOKEN }],
    ['without one', {}],
  ])('is imported with its warnings, %s', async (_, env) => {
    const warned = /Group `practice` counts calls with callers' own provider keys .* together/;
    const { script } = await untilServed(serve(['--config', await jsonFile(3)], env));
    await script.untilPrinted(warned);
    expect(script.output()).toContain('api_key');
    script.kill('SIGTERM');
    expect(await script.exited).toBe(0);
    const second = await untilServed(serve(['--config', await jsonFile(3)], env));
    await second.script.untilPrinted(/was not imported/);
    expect(second.script.output()).not.toMatch(warned);
  });

  it('that is refused ends the start with 1 and the path of the field', async () => {
    const wrong = { groups: [{ name: 'practice', limits: { max_concurency: 3 } }] };
    const script = serve(['--config', await configFile('wrong.json', JSON.stringify(wrong))], {});
    expect(await script.exited).toBe(1);
    expect(script.output()).toContain('groups[0].limits.max_concurency');
    expect(script.output()).toContain('The configuration was rejected');
    // Nothing was kept of it: the corrected one counts as the first.
    const corrected = await startServed('--config', await jsonFile(4));
    await corrected.script.untilPrinted(/Imported the configuration from/);
    expect(await limitOf(corrected.url)).toBe(4);
  });

  it('that does not exist ends the start with 1', async () => {
    const script = serve(['--config', join(dataDir, 'nowhere.yaml')], {});
    expect(await script.exited).toBe(1);
    expect(script.output()).toContain('the file does not exist');
  });
});

it.each([
  [
    'JURISDICTION',
    'europe',
    /The variable `JURISDICTION` is \\"europe\\". Expected eu, fedramp, us, or an empty value/,
  ],
  [
    'DIRECTORY_LOCATION',
    'moon',
    /The variable `DIRECTORY_LOCATION` is \\"moon\\". Expected wnam, enam/,
  ],
])('a %s that does not exist ends the start with 1', async (name, value, message) => {
  const script = serve([], { [name]: value });
  expect(await script.exited).toBe(1);
  expect(script.output()).toMatch(message);
});

it('warns that any client may call if other machines reach it and no gateway key is configured', async () => {
  const OPEN = /No gateway key is configured, so every client that can reach http:\S+ may call/;
  const wide = await startServed('--host', '0.0.0.0');
  await wide.script.untilPrinted(OPEN);
  wide.script.kill('SIGTERM');
  expect(await wide.script.exited).toBe(0);

  // The warning would be printed after that line.
  const known = /Sign in to the dashboard/;
  const local = await untilServed(serve(['--host', '127.0.0.1'], {}));
  await local.script.untilPrinted(known);
  local.script.kill('SIGTERM');
  await local.script.exited;
  expect(local.script.output()).not.toMatch(OPEN);
});

it('does not warn if gateway keys are configured', async () => {
  const config = {
    ...(practiceConfig(2)(upstream) as object),
    keys: [{ id: 'team', hash: `sha256:${'a'.repeat(64)}` }],
  };
  const file = await configFile('keys.json', JSON.stringify(config));
  const { script } = await startServed('--host', '0.0.0.0', '--config', file);
  await script.untilPrinted(/Put a proxy with TLS in front of it/);
  script.kill('SIGTERM');
  expect(await script.exited).toBe(0);
  expect(script.output()).not.toContain('No gateway key is configured');
});

it('lets bodies hold as much as --body-memory-mib says, and ends with 1 where that is too little', async () => {
  await startServed('--body-memory-mib', '96');
  const config = await readFile(join(dataDir, 'data', 'workerd.capnp'), 'utf8');
  expect(config).toContain('(name = "BODY_MEMORY_MIB", text = "96")');
  const script = serve(['--body-memory-mib', '47'], {});
  expect(await script.exited).toBe(1);
  expect(script.output()).toContain('--body-memory-mib 47: expected a whole number of MiB');
});

it('serves with a JURISDICTION and a DIRECTORY_LOCATION, though it has one place', async () => {
  const places = { JURISDICTION: 'eu', DIRECTORY_LOCATION: 'weur' };
  const args = ['--config', await jsonFile(3)];
  const { url } = await untilServed(serve(args, { ADMIN_TOKEN: STAGE_TOKEN, ...places }));
  expect(await limitOf(url)).toBe(3);
});

describe('a signal', () => {
  const send = (url: string, count: number): LifecycleOpenCall[] =>
    Array.from({ length: count }, (_, i) => openChat(url, { label: `call-${i}` }));

  it('SIGTERM lets streams and queued calls end, refuses new connections, and exits with 0', async () => {
    upstream.configure({ limit: 1, silentAfterChunks: 1, chunks: 3 });
    const { script, url } = await startServed('--config', await jsonFile(1));
    const calls = send(url, 3);
    await createAdmin(() => url, STAGE_TOKEN).untilGroup('practice', { in_use: 1, queued: 2 });
    script.kill('SIGTERM');
    await script.untilPrinted(/SIGTERM: waiting for calls in flight/);
    const late = openCall(url, { method: 'GET', path: '/healthz' });
    await expect(late.answered).rejects.toThrow('ECONNREFUSED');
    expect(upstream.stats()).toMatchObject({ inFlight: 1, total: 1 });

    upstream.configure({ silentAfterChunks: null });
    upstream.resume();
    expect(await Promise.all(calls.map((call) => call.answered))).toEqual([200, 200, 200]);
    const ends = await Promise.all(calls.map((call) => call.ended));
    expect(ends).toEqual(['complete', 'complete', 'complete']);
    for (const call of calls) expect(call.text()).toContain('[DONE]');
    expect(await script.exited).toBe(0);
    expect(upstream.stats()).toMatchObject({ completed: 3, peak: 1, aborted: 0 });
  });

  it('SIGTERM waits for nobody who has left before an answer, wherever the call was then', async () => {
    const { script, url } = await startServed('--drain-s', '600', '--config', await jsonFile(1));
    const admin = createAdmin(() => url, STAGE_TOKEN);
    const silent = { 'x-strict-first-byte-delay-ms': '600000' };
    const holder = openChat(url, { label: 'holder', headers: silent });
    await until('the holder is upstream', () => upstream.stats().inFlight === 1);
    const queued = openChat(url, { label: 'queued' });
    await admin.untilGroup('practice', { in_use: 1, queued: 1 });
    const slotless = openCall(url, { method: 'GET', path: '/practice/v1/models', headers: silent });
    const uploading = openCall(url, {
      path: '/practice/v1/chat/completions',
      headers: { 'content-type': 'application/json' },
      bodyBytes: 10_000,
      body: '{"messages":[',
    });
    await until('all are under way', async () => (await callsInFlight(url)) === 4);
    for (const call of [holder, queued, slotless, uploading]) call.leave('FIN');
    await until('nothing is in flight', async () => (await callsInFlight(url)) === 0);
    script.kill('SIGTERM');
    expect(await script.exited).toBe(0);
  });

  it('leaves a log in which each line has its time and level, and nothing of workerd that was cut', async () => {
    upstream.configure({ silentAfterChunks: 1 });
    const { script, url } = await startServed('--drain-s', '0.2', '--config', await jsonFile(2));
    const calls = send(url, 4);
    await calls[0]?.answered;
    const startedAt = Date.now() - 60_000;
    script.kill('SIGTERM');
    expect(await script.exited).toBe(0);
    await Promise.allSettled(calls.map((call) => call.ended));
    const lines = script.output().trim().split('\n');
    expect(lines.length).toBeGreaterThanOrEqual(3);
    for (const line of lines) {
      const { at, level, event, message } = JSON.parse(line) as Readonly<Record<string, string>>;
      expect(Date.parse(at ?? '')).toBeGreaterThan(startedAt);
      expect(['info', 'warn']).toContain(level);
      expect(event).toMatch(/^\w+$/);
      expect(message ?? '').not.toMatch(/stack:|\.c\+\+:/);
    }
  });

  it('SIGTERM ends the wait after --drain-s', async () => {
    upstream.configure({ silentAfterChunks: 1 });
    const { script, url } = await startServed('--drain-s', '1', '--config', await jsonFile(1));
    const [call] = send(url, 1);
    expect(await call?.answered).toBe(200);
    const askedAt = clock();
    script.kill('SIGTERM');
    expect(await script.exited).toBe(0);
    expect(clock() - askedAt).toBeGreaterThan(950);
    expect(await call?.ended).toBe('cut');
    await until('the upstream sees it', () => upstream.stats().aborted === 1);
  });

  it(
    'kill -9 of the process takes workerd along, and a restart serves in full within 2 s',
    FIGURE,
    async () => {
      upstream.configure({ limit: 2, silentAfterChunks: 1 });
      const startedAt = clock();
      const first = await startServed('--config', await jsonFile(2));
      const startMs = clock() - startedAt;
      send(first.url, 4);
      await until('all slots are held', () => upstream.stats().inFlight === 2);
      first.script.kill('SIGKILL');
      expect(await first.script.exited).toBe(null);
      await until('the upstream sees the end', () => upstream.stats().inFlight === 0);
      upstream.reset();

      const restartedAt = clock();
      const second = await startServed();
      send(second.url, 4);
      await until('all slots are held again', () => upstream.stats().inFlight === 2);
      // Or half as long again as the first start just took, on a machine that is busy with other things.
      expect(clock() - restartedAt).toBeLessThan(Math.max(2_000, 1.5 * startMs));
      expect(upstream.stats().rejected429).toBe(0);
    },
  );
});
