import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runScript, type Script } from '../support/lifecycle-script.ts';
import { STAGE_TOKEN } from '../support/lifecycle-stage.ts';

/** The admin token that `serve` makes at its first start and keeps in the data folder. */

let folder: string;
let data: string;
const scripts: Script[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-admin-token-'));
  data = join(folder, 'data');
});

afterEach(async () => {
  await Promise.all(scripts.splice(0).map((script) => script.end()));
  await rm(folder, { recursive: true, force: true });
});

function run(args: readonly string[], env: NodeJS.ProcessEnv): Script {
  const script = runScript(['scripts/serve.ts', '--data', data, ...args], env);
  scripts.push(script);
  return script;
}

const serve = (env: NodeJS.ProcessEnv = {}): Script => run(['--port', '0'], env);
const tokenFile = (): string => join(data, 'admin-token');
const storedToken = async (): Promise<string> => (await readFile(tokenFile(), 'utf8')).trim();
const isThere = async (): Promise<boolean> => (await readdir(data)).includes('admin-token');

/** Serves until it logged how to sign in, and ends. Returns its URL, what a token opens there, and its output. */
async function start(
  said: RegExp,
  env: NodeJS.ProcessEnv = {},
  tokenOf: () => string | Promise<string> = storedToken,
) {
  const script = serve(env);
  const [, url = ''] = await script.untilPrinted(/listens on (http:\S+),/);
  await script.untilPrinted(said);
  const headers = { authorization: `Bearer ${await tokenOf()}` };
  const { status } = await fetch(`${url}/admin/api/status`, { headers });
  const home = await (await fetch(url)).text();
  script.kill('SIGTERM');
  expect(await script.exited).toBe(0);
  return { url, status, home, output: script.output() };
}

/** Runs `--show-token`, with its two streams apart. */
async function show(env: NodeJS.ProcessEnv = {}): Promise<{ code: number | null; all: string }> {
  const script = run(['--port', '8799', '--show-token'], env);
  return { code: await script.exited, all: script.output() };
}

it('is made at the first start, printed there once with the address, and shown again on request', async () => {
  const first = await start(/Sign in to the dashboard/);
  const token = await storedToken();
  expect(token).toMatch(/^[\w-]{32}$/);
  expect((await stat(tokenFile())).mode & 0o777).toBe(0o600);
  expect(first.status).toBe(200);
  expect(first.output).toContain(`${first.url}/admin#token=${token} `);
  expect(first.output.split(token)).toHaveLength(2);
  expect(first.output).toContain(`npm run serve -- --show-token --data ${data}`);
  expect(first.home).toContain('headgate serve --show-token');

  const second = await start(/The admin token is stored in/);
  expect(second.status).toBe(200);
  expect(second.output).not.toContain(token);
  expect(second.output).toContain(`npm run serve -- --show-token --data ${data}`);

  const shown = await show();
  expect(shown.code).toBe(0);
  // Standard output has the token alone, standard error the address.
  expect(shown.all.split('\n')).toContain(token);
  expect(shown.all).toContain(`http://127.0.0.1:8799/admin#token=${token}`);
});

it('an ADMIN_TOKEN of the environment is used instead, and none is made', async () => {
  const env = { ADMIN_TOKEN: STAGE_TOKEN };
  const { status, output } = await start(/listens on/, env, () => STAGE_TOKEN);
  expect(status).toBe(200);
  expect(output).not.toMatch(/Sign in|admin token/);
  expect(await isThere()).toBe(false);
  const none = await show(env);
  expect(none.code).toBe(1);
  expect(none.all).toContain('There is no admin token in');
});

it('an ADMIN_TOKEN of the environment is used instead of one that was made', async () => {
  await start(/Sign in to the dashboard/);
  const env = { ADMIN_TOKEN: STAGE_TOKEN };
  expect((await start(/listens on/, env, () => STAGE_TOKEN)).status).toBe(200);
  expect((await start(/listens on/, env)).status).toBe(401);
  expect((await show(env)).all).toContain('ADMIN_TOKEN is set in this environment');
});

it('an ADMIN_TOKEN that is refused leaves the admin routes closed', async () => {
  const env = { ADMIN_TOKEN: 'two words' };
  const { status } = await start(/so the admin routes are disabled/, env, () => 'any');
  expect(status).toBe(403);
  expect(await isThere()).toBe(false);
});

it('is forgotten when the start that made it fails, so that the next start prints one', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const failed = run(['--port', String(port)], {});
  expect(await failed.exited).toBe(1);
  expect(await isThere()).toBe(false);
  server.close();
});

it.each([
  [
    'is a file',
    async () => writeFile(data, ''),
    /The data folder \S+ cannot be created or written to/,
  ],
  [
    'has a token that cannot be read',
    async () => void (await mkdir(tokenFile(), { recursive: true })),
    /The admin token in \S+ cannot be read \(EISDIR\)/,
  ],
  [
    'has a token that cannot be used',
    async () => {
      await mkdir(data);
      await writeFile(tokenFile(), 'two words');
    },
    /The admin token in \S+ has white space .* Remove the file/,
  ],
  [
    'takes no token',
    async () => void (await mkdir(join(data, 'admin-token.new', 'x'), { recursive: true })),
    /The admin token cannot be written to \S+ .*--data, or set ADMIN_TOKEN/,
  ],
])('a data folder that %s ends the start with what to do', async (_what, prepare, said) => {
  await prepare();
  const script = serve();
  expect(await script.exited).toBe(1);
  expect(script.output()).toMatch(said);
  expect(script.output()).not.toContain('two words');
});
