import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import { runScript, type Script } from '../support/lifecycle-script.ts';
import { until } from '../support/lifecycle-wait.ts';

/** One data folder has one Headgate, whoever starts when; and a start that fails leaves nothing running. */
const VERIFICATIONS = 5;
const AT_ONCE = 3;

let folder: string;
const scripts: Script[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-folder-'));
});

afterEach(async () => {
  await Promise.all(scripts.splice(0).map((script) => script.end()));
  await rm(folder, { recursive: true, force: true });
});

function serve(...args: readonly string[]): Script {
  const script = runScript(['scripts/serve.ts', '--port', '0', '--data', folder, ...args]);
  scripts.push(script);
  return script;
}

const LISTENS = /listens on http/;

/** Processes of workerd on the folder. */
async function workerds(): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  const isOurs = (command: string): boolean =>
    /workerd/.test(command) && command.includes(join(folder, 'objects'));
  return pids.filter((_, i) => isOurs(commands[i] ?? '')).map(Number);
}

const noneIsLeft = (): Promise<void> =>
  until('no workerd is left', async () => (await workerds()).length === 0);

describe('several at the same moment', () => {
  it('one starts, and the others say who has the folder and end with 1', async () => {
    for (let verification = 0; verification < VERIFICATIONS; verification += 1) {
      const all = Array.from({ length: AT_ONCE }, () => serve());
      const codes = await Promise.all(
        all.map((script) =>
          Promise.race([
            script.untilPrinted(LISTENS).then(
              () => 'listens',
              () => null,
            ),
            script.exited,
          ]),
        ),
      );
      const first = all[codes.indexOf('listens')];
      const others = all.filter((script) => script !== first);
      expect(await Promise.all(others.map((script) => script.exited))).toEqual([1, 1]);
      for (const other of others) {
        expect(other.output()).toContain(`(process ${first?.pid} on ${hostname()}) uses ${folder}`);
      }
      expect(await workerds()).toHaveLength(1);
      first?.kill('SIGKILL');
      await first?.exited;
    }
    await noneIsLeft();
  });
});

describe('a start that fails leaves no workerd behind', () => {
  it('where the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const script = serve('--port', String(port));
    expect(await script.exited).toBe(1);
    expect(script.output()).toContain('EADDRINUSE');
    other.close();
    expect(await workerds()).toEqual([]);
  });

  it('where a file of its own cannot be written', async () => {
    await mkdir(join(folder, 'workerd.pid'));
    const script = serve();
    expect(await script.exited).toBe(1);
    expect(script.output()).toContain('workerd.pid');
    await noneIsLeft();
  });

  it('where the folder is none', async () => {
    const script = serve('--data', '/dev/null/data');
    expect(await script.exited).toBe(1);
    expect(script.output()).toContain('/dev/null/data');
    await noneIsLeft();
  });
});

it('a folder is free again once its Headgate has stopped, or could not start', async () => {
  const options = { port: 0, dataDir: folder, env: {} };
  await expect(startServe({ ...options, adminToken: 't', config: { groups: 1 } })).rejects.toThrow(
    'groups',
  );
  const first = await startServe(options);
  await expect(startServe(options)).rejects.toThrow(`process ${process.pid} on`);
  await first.stop();
  await first.stop();
  const second = await startServe(options);
  await second.kill9();
  await noneIsLeft();
});
