import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WRANGLER } from '../../../scripts/serve/build.ts';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import { openChat } from '../support/lifecycle-call.ts';
import { runScript } from '../support/lifecycle-script.ts';

/** The commands that a newcomer tries, each as a process of its own. */
let folder: string;

const USUAL_PORT = 8787;

/** A test runner starts in it, which takes a while on a machine that is busy. */
const ALL_OVER = { timeout: 300_000 };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-command-'));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Reads the arguments of all processes, which `ps` shows to every user of the machine. */
async function argumentsOfAll(): Promise<string> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const read = (pid: string): Promise<string> =>
    readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return (await Promise.all(names.map(read))).join('\n');
}

it('npm run demo exits with 0 and prints the comparison', async () => {
  const demo = runScript(['scripts/demo.ts']);
  expect(await demo.exited).toBe(0);
  const output = demo.output();
  expect(output).toMatch(/429 responses\s+9\s+0\n/);
  expect(output).toMatch(/calls completed\s+3 of 12\s+12 of 12\n/);
  expect(output).toMatch(/peak concurrency at the upstream\s+\d+\s+3\n/);
  expect(output).toMatch(/total time\s+[\d.]+ s\s+[\d.]+ s\n/);
  expect(output).toContain('Through Headgate: no 429, all calls completed');
});

it('npm run dev answers, prints a token that opens the admin routes, and ends at SIGTERM', async () => {
  // As if another one ran already. An error says that one does.
  const other = createServer().listen(USUAL_PORT, '127.0.0.1');
  await once(other, 'listening').catch(() => undefined);
  const dev = runScript(['scripts/dev.ts', '--persist-to', join(folder, 'state')]);
  try {
    const [, url = ''] = await dev.untilPrinted(/Headgate +(http:\S+)/);
    const [, token = ''] = await dev.untilPrinted(/admin token +(\S+)/);
    expect(await argumentsOfAll()).not.toContain(token);
    expect((await stat(join(folder, 'state'))).mode & 0o077).toBe(0);
    const [, dashboard = ''] = await dev.untilPrinted(/dashboard +(http\S+)/);
    expect([dashboard, (await fetch(dashboard)).status]).toEqual([
      `${url}/admin#token=${token}`,
      200,
    ]);
    expect(url).not.toBe(`http://127.0.0.1:${USUAL_PORT}`);
    const call = openChat(url, { label: 'try', headers: { 'x-strict-chunk-delay-ms': '0' } });
    expect(await call.answered).toBe(200);
    expect(await call.ended).toBe('complete');
    expect(call.text()).toContain('[DONE]');
    const status = await fetch(`${url}/admin/api/status`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(status.status).toBe(200);
    expect(JSON.stringify(await status.json())).toContain('"practice"');
    dev.kill('SIGTERM');
    expect(await dev.exited).not.toBe(null);
  } finally {
    await dev.end();
    other.close();
  }
});

it('wrangler deploy --dry-run passes', async () => {
  const build = runScript([WRANGLER, 'deploy', '--dry-run', '--outdir', join(folder, 'dist')]);
  expect(await build.exited).toBe(0);
  expect(build.output()).toContain('env.GROUPS');
  expect(await readFile(join(folder, 'dist', 'index.js'), 'utf8')).toContain('GroupObject');
});

it('npm test says little of what passes, and keeps what the runtimes print', ALL_OVER, async () => {
  const log = join(folder, 'test.log');
  // A file that resets objects, which workerd writes whole stacks about.
  const test = runScript(['scripts/test.ts', 'test/workers/proxy/reset.test.ts'], {
    TEST_LOG: log,
  });
  expect(await test.exited).toBe(0);
  expect(test.output().split('\n').length).toBeLessThan(30);
  expect(test.output()).toMatch(/Tests +\d+ passed/);
  expect(test.output()).not.toContain('uncaught exception');
  expect(await readFile(log, 'utf8')).toContain('uncaught exception');
});

it('npm test shows what fails, and what that printed, and ends with 1', ALL_OVER, async () => {
  await writeFile(
    join(folder, 'vitest.config.mjs'),
    "export default { test: { projects: [{ test: { name: 'unit', globals: true, include: ['*.test.mjs'] } }] } };",
  );
  await writeFile(
    join(folder, 'some.test.mjs'),
    "test('passes', () => console.log('said by', 'who passes'));\n" +
      "test('falls', () => { console.log('said by', 'who falls'); expect('this').toBe('that'); });\n",
  );
  const log = join(folder, 'test.log');
  const args = ['scripts/test.ts', '--root', folder, '--project', 'unit'];
  const test = runScript(args, { TEST_LOG: log });
  expect(await test.exited).toBe(1);
  expect(test.output()).toMatch(/FAIL .*some\.test\.mjs > falls/);
  expect(test.output()).toContain("expected 'this' to be 'that'");
  expect(test.output()).toContain('said by who falls');
  expect(test.output()).not.toContain('said by who passes');
  expect(test.output()).toMatch(/Tests +1 failed \| 1 passed/);
});

it('GET / of a fresh Headgate says what is missing and how to set it', async () => {
  const serve = await startServe({ port: 0, dataDir: folder, env: {} });
  try {
    const response = await fetch(serve.url);
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).toMatch(/Admin routes +DISABLED: the secret ADMIN_TOKEN is not set/);
    expect(text).toContain("export ADMIN_TOKEN='…' in the environment that starts Headgate");
    expect(text).not.toContain('wrangler');
    expect(await (await fetch(`${serve.url}/v1`)).text()).toContain('`/v1` is a base URL');
    expect(text).toMatch(/Groups +none configured/);
    expect(text).toMatch(/Gateway keys +none configured/);
    expect(text).toContain(`${serve.url}/openai/v1`);
    const closed = await fetch(`${serve.url}/admin/api/status`, {
      headers: { authorization: 'Bearer guessed' },
    });
    expect(closed.status).toBe(403);
    expect(await closed.text()).toContain('ADMIN_TOKEN');
  } finally {
    await serve.stop();
  }
});
