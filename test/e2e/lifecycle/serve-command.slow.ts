// Options and warnings of `npm run serve`, and what a signal leaves.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { callsInFlight } from '../../../scripts/serve/admin-client.ts';
import { createAdmin } from '../support/lifecycle-admin.ts';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openCall, openChat } from '../support/lifecycle-call.ts';
import { practiceConfig, STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { clock, until } from '../support/lifecycle-wait.ts';
import {
  configFile,
  dataDir,
  jsonFile,
  limitOf,
  serve,
  startServed,
  untilServed,
  upstream,
  useServeCommand,
} from '../support/serve-command.ts';

useServeCommand();

describe('the configuration of the first start', () => {
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

  it('SIGTERM does not wait for callers that disconnected before an answer, at any stage of a call', async () => {
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
});
