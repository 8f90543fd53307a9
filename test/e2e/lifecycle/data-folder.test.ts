import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startServe, type Serve } from '../../../scripts/serve/start-serve.ts';
import type { Script } from '../support/lifecycle-script.ts';
import { runScript } from '../support/lifecycle-script.ts';
import { filesBelow } from '../support/lifecycle-secrets.ts';
import { STAGE_TOKEN } from '../support/lifecycle-stage.ts';

/** Permissions of the files of `serve`, with any umask and any existing files. */
let folder: string;
let data: string;
let script: Script | null = null;
let serving: Serve | null = null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-private-'));
  data = join(folder, 'data');
});

afterEach(async () => {
  await script?.end();
  await serving?.stop();
  [script, serving] = [null, null];
  await rm(folder, { recursive: true, force: true });
});

const LISTENS = /listens on (http:\S+),/;

/** Starts `serve` under a umask that allows all users to read. */
function serve(): Script {
  const through = ['/bin/sh', '-c', 'umask 022; exec "$0" "$@"'];
  const args = ['scripts/serve.ts', '--port', '0', '--data', data];
  script = runScript(args, { ADMIN_TOKEN: STAGE_TOKEN }, through);
  return script;
}

/** Entries with permissions for group or others, with their modes. */
async function wide(): Promise<string[]> {
  const found = [
    data,
    ...(await readdir(data, { recursive: true })).map((name) => join(data, name)),
  ];
  const modes = await Promise.all(found.map((path) => stat(path).catch(() => null)));
  return found.flatMap((path, at) => {
    const mode = (modes[at]?.mode ?? 0) & 0o777;
    return (mode & 0o077) === 0 ? [] : [`${mode.toString(8)} ${relative(folder, path)}`];
  });
}

async function adminKey(url: string): Promise<void> {
  const made = await fetch(`${url}/admin/api/admin-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${STAGE_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'night', role: 'admin' }),
  });
  expect(made.status).toBe(201);
}

it('other users cannot read anything in a new data folder, while it runs and afterwards', async () => {
  const running = serve();
  const [, url = ''] = await running.untilPrinted(LISTENS);
  await adminKey(url);
  expect(await readdir(data)).toContain('workerd.pid');
  expect(await wide()).toEqual([]);
  running.kill('SIGTERM');
  expect(await running.exited).toBe(0);
  expect(await wide()).toEqual([]);
  expect(running.output()).not.toContain('Other users');
});

it('a folder that was open to others is narrowed with everything in it, and the log says so', async () => {
  await mkdir(join(data, 'objects', 'DirectoryObject'), { recursive: true });
  const outside = join(folder, 'outside');
  await writeFile(outside, 'of somebody else', { mode: 0o644 });
  await writeFile(join(data, 'objects', 'DirectoryObject', 'old.sqlite-wal'), '', { mode: 0o644 });
  await symlink(outside, join(data, 'link'));
  await chmod(data, 0o755);
  const running = serve();
  await running.untilPrinted(LISTENS);
  expect(running.output()).toMatch(/Other users of this machine could reach .+ \(mode 0755\)/);
  expect(running.output()).toMatch(/Changed the modes of 3 entries below .+ to 0600 and 0700/);
  expect(running.output()).toMatch(
    /link is a link\. The permissions of its target were not changed/,
  );
  await rm(join(data, 'link'));
  expect(await wide()).toEqual([]);
  expect((await stat(outside)).mode & 0o777).toBe(0o644);
});

describe('an entry of another user stops the start', () => {
  const isRoot = process.geteuid?.() === 0;

  /** Root changes the owner of its own folder; other users choose a folder of root. */
  async function foreign(path: string): Promise<void> {
    if (isRoot) await chown(path, 4_711, 4_711);
    else data = '/usr';
  }

  it.each(['the folder', 'a file in it'])('%s', async (what) => {
    await mkdir(data, { mode: 0o700 });
    const file = join(data, 'workerd.pid');
    await writeFile(file, '0', { mode: 0o600 });
    await foreign(what === 'the folder' ? data : file);
    const running = serve();
    expect(await running.exited).toBe(1);
    expect(running.output()).toMatch(/belongs to another user \(uid \d+\), and this process runs/);
    expect(running.output()).toContain('choose another one with --data');
  });
});

it('no file and no argument contains the secret header of the forwarder', async () => {
  serving = await startServe({ port: 0, dataDir: data, env: {}, adminToken: STAGE_TOKEN });
  const command = await readFile(`/proc/${serving.workerdPid()}/cmdline`, 'utf8');
  const files = (await filesBelow(data)).map((file) => file.data.toString('latin1'));
  for (const text of [command, ...files]) expect(text).not.toMatch(/headgate-cf-[0-9a-f]{8}/);
  // The name in the file is a placeholder: workerd passes a header of that name like any other.
  const config = await readFile(join(data, 'workerd.capnp'), 'utf8');
  const [, written = ''] = /cfBlobHeader = "([^"]+)"/.exec(config) ?? [];
  expect(written).toMatch(/^headgate-cf-/);
  const headers = { [written]: 'this is no JSON, so workerd would refuse it as a cf' };
  expect((await fetch(`${serving.url}/healthz`, { headers })).status).toBe(200);
});
