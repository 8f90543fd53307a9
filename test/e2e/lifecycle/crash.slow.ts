import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { createAdmin } from '../support/lifecycle-admin.ts';
import { openCall, openChat } from '../support/lifecycle-call.ts';
import type { Script } from '../support/lifecycle-script.ts';
import { runScript } from '../support/lifecycle-script.ts';
import { practiceConfig, STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/** A workerd that ends unasked, under a `serve` that lives on. */
let folder: string;
let upstream: StrictUpstream;
let script: Script;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-crash-'));
  upstream = await startStrictUpstream();
});

afterEach(async () => {
  await script.end();
  await upstream.close();
  await rm(folder, { recursive: true, force: true });
});

const dataDir = (): string => join(folder, 'data');

async function serve(limit = 2): Promise<string> {
  const file = join(folder, 'headgate.json');
  await writeFile(file, JSON.stringify(practiceConfig(limit)(upstream)));
  const args = ['--port', '0', '--data', dataDir(), '--config', file, '--drain-s', '60'];
  script = runScript(['scripts/serve.ts', ...args], { ADMIN_TOKEN: STAGE_TOKEN });
  const [, url = ''] = await script.untilPrinted(/listens on (http:\S+),/);
  return url;
}

/** The process of workerd by its own note; 0: there is none. */
async function workerdPid(): Promise<number> {
  return Number(await readFile(join(dataDir(), 'workerd.pid'), 'utf8').catch(() => '0'));
}

async function bootOf(): Promise<string | undefined> {
  const config = await readFile(join(dataDir(), 'workerd.capnp'), 'utf8');
  return /"BOOT_ID", text = "([^"]+)"/.exec(config)?.[1];
}

async function openFilesOf(pid: number): Promise<readonly string[]> {
  const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
  return /^Max open files\s+(\d+)\s+(\d+)/m.exec(limits)?.slice(1) ?? [];
}

const SERVES_AGAIN = /workerd is serving again as process (\d+)/;

describe('workerd that is killed', () => {
  it('is started again on the same port, with all slots free, and calls that came meanwhile are served', async () => {
    upstream.configure({ limit: 2, silentAfterChunks: 1 });
    const url = await serve();
    const before = ['a', 'b', 'c'].map((label) => openChat(url, { label }));
    await until('all slots are held', () => upstream.stats().inFlight === 2);
    const [first, boot] = [await workerdPid(), await bootOf()];
    process.kill(first, 'SIGKILL');
    expect(new Set(await Promise.all(before.map((call) => call.ended)))).toEqual(new Set(['cut']));
    await script.untilPrinted(/workerd ended with SIGKILL\. Restarting in 250 ms\./);
    await until('the upstream sees the end', () => upstream.stats().inFlight === 0);
    upstream.reset();
    upstream.configure({ silentAfterChunks: null });
    const meanwhile = openChat(url, { label: 'meanwhile' });
    expect(await meanwhile.answered).toBe(200);
    expect(await meanwhile.ended).toBe('complete');

    const [, second = ''] = await script.untilPrinted(SERVES_AGAIN);
    expect(Number(second)).toBe(await workerdPid());
    expect(Number(second)).not.toBe(first);
    expect(await bootOf()).not.toBe(boot);
    upstream.configure({ silentAfterChunks: 1 });
    for (const label of ['d', 'e', 'f']) openChat(url, { label });
    await createAdmin(() => url, STAGE_TOKEN).untilGroup('practice', { in_use: 2, queued: 1 });
    await until('both are at the upstream', () => upstream.stats().inFlight === 2);
    expect(upstream.stats()).toMatchObject({ peak: 2, rejected429: 0 });
  });

  it('does not forget for good which model the upstream stops, nor hold the others', async () => {
    const url = await serve(4);
    const chat = (model: string, headers: Readonly<Record<string, string>> = {}) => {
      const fields = { model, messages: [{ role: 'user', content: 'hi' }] };
      const of = { 'content-type': 'application/json', 'headgate-max-wait': '0', ...headers };
      const path = '/practice/v1/chat/completions';
      return openCall(url, { path, headers: of, body: JSON.stringify(fields) }).answered;
    };
    const full = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };
    expect(await chat('flash')).toBe(200);
    expect(await chat('full', full)).toBe(429);
    const { total } = upstream.stats();
    process.kill(await workerdPid(), 'SIGKILL');
    await script.untilPrinted(SERVES_AGAIN);
    expect([await chat('flash'), await chat('mini')]).toEqual([200, 200]);
    // The pause was written, or is learned again from one call.
    for (let index = 0; index < 5; index += 1) expect(await chat('full', full)).toBe(429);
    expect(upstream.stats().total).toBeLessThanOrEqual(total + 3);
    await createAdmin(() => url, STAGE_TOKEN).request('POST', '/groups/practice/relearn');
    await until('it is served again', async () => (await chat('full')) === 200);
  });

  it('is started again each time, and its folder stays locked', async () => {
    const url = await serve();
    for (let round = 0; round < 2; round += 1) {
      const pid = await workerdPid();
      process.kill(pid, 'SIGKILL');
      await script.untilPrinted(/workerd ended with SIGKILL/);
      const other = runScript(['scripts/serve.ts', '--port', '0', '--data', dataDir()]);
      expect(await other.exited).toBe(1);
      expect(other.output()).toContain(`(process ${script.pid} on`);
      await until('another one serves', async () => ![0, pid].includes(await workerdPid()));
      const call = openCall(url, { method: 'GET', path: '/healthz' });
      expect(await call.answered).toBe(200);
    }
  });

  it('holds up no signal: the program ends, and leaves no process', async () => {
    await serve();
    for (let ends = 1; ends <= 3; ends += 1) {
      process.kill(await workerdPid(), 'SIGKILL');
      if (ends === 3) break;
      // One that ends before it serves is told of in other words.
      const served = () => script.output().match(/workerd is serving again/g)?.length;
      await until('another one serves', () => served() === ends);
    }
    // A second until the next start: it is in that.
    await script.untilPrinted(/Restarting in 1000 ms/);
    script.kill('SIGTERM');
    expect(await script.exited).toBe(0);
    expect(script.output().match(/ended with SIGKILL/g)).toHaveLength(3);
    const commands = await Promise.all(
      (await readdir('/proc'))
        .filter((name) => /^\d+$/.test(name))
        .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
    );
    expect(commands.filter((command) => command.includes(dataDir()))).toEqual([]);
  });
});

describe('open files', () => {
  /** Starts `serve` from a shell with these limits. */
  function serveWith(soft: number, hard: number): void {
    const command = `ulimit -S -n ${soft} && ulimit -H -n ${hard} && exec "$0" "$@"`;
    const args = ['scripts/serve.ts', '--port', '0', '--data', dataDir()];
    script = runScript(args, {}, ['/bin/sh', '-c', command]);
  }

  const hardLimit = (): number =>
    Number(spawnSync('/bin/sh', ['-c', 'ulimit -H -n'], { encoding: 'utf8' }).stdout);

  it('are as many as the hard limit lets workerd have', async () => {
    const hard = Math.min(hardLimit(), 8_192);
    serveWith(512, hard);
    await script.untilPrinted(/listens on/);
    expect(await openFilesOf(await workerdPid())).toEqual([String(hard), String(hard)]);
    script.kill('SIGTERM');
    expect(await script.exited).toBe(0);
    expect(script.output()).not.toContain('may open only');
  });

  it('that are few are told of at the start', async () => {
    serveWith(512, 1_024);
    await script.untilPrinted(/workerd may open only 1024 files/);
    expect(await openFilesOf(await workerdPid())).toEqual(['1024', '1024']);
  });

  it('limit the number of clients, and the longest idle ones are disconnected', async () => {
    serveWith(512, 512);
    const [, port = ''] = await script.untilPrinted(/listens on http:\S+:(\d+)/);
    let cutOff = 0;
    const clients = Array.from({ length: 200 }, () => {
      const client = connect({ port: Number(port), host: '127.0.0.1' });
      client.on('error', () => undefined);
      client.once('close', () => (cutOff += 1));
      return client;
    });
    try {
      // Each client needs three files, and 64 are open without clients. A tenth is kept for addresses other than loopback.
      await until('65 are cut off', () => cutOff >= 65);
      const last = clients.at(-1);
      last?.write('GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n');
      const [data] = last === undefined ? [] : ((await once(last, 'data')) as [Buffer]);
      expect(data?.toString()).toMatch(/^HTTP\/1\.1 200 /);
      expect(cutOff).toBe(65);
    } finally {
      for (const client of clients) client.destroy();
    }
  });
});
