// The package as people get it: packed, installed into an empty folder, run by the Node of the machine.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureBuilt, ROOT } from '../../../scripts/serve/build.ts';
import { startStrictUpstream, type StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { runToEnd } from '../support/command-line.ts';
import { runProgram, type Script } from '../support/lifecycle-script.ts';
import { practiceConfig, STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const run = promisify(execFile);

/** A registry that is slow, or the copies of an earlier installation. */
const INSTALLING = 300_000;

/** The machine's own programs: without the Node that the project brings along. */
const MACHINE_PATH = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

/** Most bytes of the package: nothing of the project's sources, tests and pictures belongs to it. */
const PACKED_MAX = 1_500_000;

/** A package as `npm pack` tells of it, as far as it is looked at. */
interface PackagePacked {
  readonly size: number;
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

let folder: string;
let packed: PackagePacked;
let upstream: StrictUpstream;
let served: Script | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-package-'));
  upstream = await startStrictUpstream();
  await ensureBuilt();
  const quick = { cwd: ROOT, env: { ...process.env, NODE_ENV: 'production' } };
  await run('npm', ['run', 'build:cli'], quick);
  await run('npm', ['run', 'build:client'], quick);
  // Worker and dashboard are built already; others serve them at this moment.
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await run('npm', pack, quick);
  // A list, or an object by name: which one depends on npm.
  [packed] = Object.values(JSON.parse(stdout) as Record<string, PackagePacked>) as [PackagePacked];
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  const options = ['--prefer-offline', '--omit=dev', '--no-audit', '--no-fund'];
  await run('npm', ['install', ...options, `./${packed.filename}`], { cwd: folder });
}, INSTALLING);

afterAll(async () => {
  await served?.end();
  await upstream.close();
  await rm(folder, { recursive: true, force: true });
});

const env = (url: string): NodeJS.ProcessEnv => ({
  PATH: MACHINE_PATH,
  HEADGATE_URL: url,
  HEADGATE_TOKEN: STAGE_TOKEN,
});

/** Starts the installed program itself: npx does not pass signals on. */
function serve(more: NodeJS.ProcessEnv = {}, ...args: string[]): Script {
  const program = join(folder, 'node_modules', '.bin', 'headgate');
  const data = ['--port', '0', '--data', join(folder, 'data')];
  return runProgram([program, 'serve', ...data, ...args], { PATH: MACHINE_PATH, ...more });
}

it('has what people read first, and is small', () => {
  const paths = packed.files.map(({ path }) => path);
  const wanted = ['README.md', 'LICENSE', 'CHANGELOG.md', 'dist/index.js', 'dist/cli/headgate.js'];
  expect(paths).toEqual(expect.arrayContaining([...wanted, 'dashboard/dist/index.html']));
  const source = /^(?:src|test|scripts|docs)\/|\/src\/|(?<!\.d)\.ts$|\.map$/;
  expect(paths.filter((path) => source.test(path))).toEqual([]);
  expect(packed.size).toBeLessThan(PACKED_MAX);
});

it('has the client for work in a process', async () => {
  const script = "import('headgate/client').then((client) => console.log(Object.keys(client)))";
  const node = ['node', '-e', script];
  const { out } = await runToEnd(node, { cwd: folder, env: { PATH: MACHINE_PATH } });
  expect(out).toBe("[ 'HeadgateError', 'createHeadgate' ]\n");
});

it('serves a call, is looked at, and stops, without the project', async () => {
  const config = join(folder, 'headgate.json');
  await writeFile(config, JSON.stringify(practiceConfig(2)(upstream)));
  served = serve({ ADMIN_TOKEN: STAGE_TOKEN }, '--config', config);
  const [, url = ''] = await served.untilPrinted(/listens on (http:[^\s,]+),/);

  const answer = await fetch(`${url}/practice/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-caller' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello.' }] }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
  expect(upstream.stats()).toMatchObject({ total: 1, peak: 1 });
  expect(await (await fetch(`${url}/admin`)).text()).toMatch(/<script type="module"[^>]+src="/);

  const npx = (...command: string[]) =>
    runToEnd(['npx', '--no-install', 'headgate', ...command], { cwd: folder, env: env(url) });
  const status = await npx('status');
  expect([status.code, status.out]).toEqual([0, expect.stringMatching(/^practice +flowing +/m)]);
  expect((await npx('doctor')).code).toBe(0);
  expect((await npx('canary', '--help')).out).toContain('Usage: headgate canary --url URL');
  await until('its slot is free', async () =>
    /^practice +\S+ +0 /m.test((await npx('status')).out),
  );

  served.kill('SIGTERM');
  expect(await served.exited).toBe(0);

  served = serve({ ADMIN_TOKEN: STAGE_TOKEN });
  const [, again = ''] = await served.untilPrinted(/listens on (http:[^\s,]+),/);
  const kept = await runToEnd(['npx', '--no-install', 'headgate', 'status'], {
    cwd: folder,
    env: env(again),
  });
  expect(kept.out).toMatch(/^practice /m);
  served.kill('SIGTERM');
  expect(await served.exited).toBe(0);
});

it('has a folder for itself, with whatever Node', async () => {
  served = serve();
  await served.untilPrinted(/listens on/);
  const second = serve();
  expect(await second.exited).toBe(1);
  expect(second.output()).toContain('Another Headgate');
  served.kill('SIGKILL');
  await served.exited;
  const third = serve();
  await third.untilPrinted(/listens on/);
  third.kill('SIGTERM');
  expect(await third.exited).toBe(0);
});
