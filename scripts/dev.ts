import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve as absolute } from 'node:path';
import type { StrictUpstream } from '../test/strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../test/strict-upstream/strict-upstream.ts';
import { cleanSecret } from '../src/runtime/secrets.ts';
import type { AdminTarget } from './serve/admin-client.ts';
import { signInAddress } from './serve/admin-token.ts';
import { importFirst, readConfig, untilReady, writeConfig } from './serve/admin-client.ts';
import { ROOT, WRANGLER } from './serve/build.ts';
import { allowedHosts, readAllowedHost } from './serve/allowed-hosts.ts';
import { makePrivate } from './serve/private-folder.ts';

const LIMIT = 3;
/** The option of wrangler that names the folder of its state. */
const PERSIST_TO = /^--persist-to(?:=|$)/;

/** The option that adds a served host. wrangler does not know it. */
const ALLOW_HOST = '--allow-host';

const PRACTICE = { limit: LIMIT, chunks: 20, chunkDelayMs: 200 };

/** Headgate's port where none is asked for. */
const DEFAULT_PORT = 8787;

/** Maximum pairs of ports that are tried: more than anybody runs at a time on one machine. */
const PAIRS_TRIED = 50;

interface PracticeUpstream {
  readonly port: number;
  readonly upstream: StrictUpstream;
}

/** Reads the token of `.dev.vars`; null: there is none. */
async function storedToken(): Promise<string | null> {
  const text = await readFile(join(ROOT, '.dev.vars'), 'utf8').catch(() => '');
  const written = /^\s*ADMIN_TOKEN\s*=\s*(.+?)\s*$/m.exec(text)?.[1] ?? '';
  const { value, fault } = cleanSecret(written.replace(/^(["'])(.*)\1$/, '$2'));
  if (fault === null || fault === 'is not set') return value;
  throw new Error(`ADMIN_TOKEN in .dev.vars ${fault}. Write it again without them.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

const startPractice = (port: number): Promise<StrictUpstream | null> =>
  startStrictUpstream({ ...PRACTICE, port }).catch(() => null);

/**
 * Takes the usual two ports if they are free, so that a stored configuration stays true; otherwise the next
 * two. Whoever holds the second, the practice upstream's, may use the first: two that start at the
 * same time do not meet.
 */
async function firstFreePlace(): Promise<PracticeUpstream> {
  const end = DEFAULT_PORT + 2 * PAIRS_TRIED;
  for (let port = DEFAULT_PORT; port < end; port += 2) {
    const upstream = await startPractice(port + 1);
    if (upstream === null) continue;
    if (await isFree(port)) return { port, upstream };
    await upstream.close();
  }
  throw new Error(`From ${DEFAULT_PORT} to ${end} no two ports are free. Choose one with --port.`);
}

async function placeAt(port: number): Promise<PracticeUpstream> {
  return {
    port,
    upstream: (await startPractice(port + 1)) ?? (await startStrictUpstream(PRACTICE)),
  };
}

const practice = (baseUrl: string): Record<string, unknown> => ({
  id: 'practice',
  base_url: baseUrl,
  dialect: 'openai',
  openai_at: '/v1',
});

/** Writes the practice configuration, or leads an older one to where the upstream is now. */
async function configure(target: AdminTarget, baseUrl: string): Promise<void> {
  const first = {
    upstreams: [practice(baseUrl)],
    groups: [
      {
        name: 'practice',
        match: { upstreams: ['practice'] },
        limits: { max_concurrency: LIMIT },
      },
    ],
    default_upstream: 'practice',
  };
  const { imported } = await importFirst(target, JSON.stringify(first), 'application/json');
  if (imported) return;
  const stored = await readConfig(target);
  if (stored === null) return;
  const config = JSON.parse(stored.body) as { upstreams?: Record<string, unknown>[] };
  const upstream = config.upstreams?.find(({ id }) => id === 'practice');
  if (upstream === undefined || upstream['base_url'] === baseUrl) return;
  upstream['base_url'] = baseUrl;
  await writeConfig(target, stored.etag, JSON.stringify(config), 'application/json');
}

/** Finds the data folder. Two processes must not write to one database at the same time. */
function stateOf(passed: readonly string[], port: number): string {
  const at = passed.findIndex((one) => PERSIST_TO.test(one));
  const given = passed[at]?.split('=')[1] ?? passed[at + 1];
  const own = port === DEFAULT_PORT ? 'state' : `state-${port}`;
  return absolute(ROOT, at === -1 ? join('.wrangler', own) : (given ?? ''));
}

/** Removes the additional served hosts from the arguments, and returns them. */
function takeAllowedHosts(passed: string[]): string[] {
  const given: string[] = [];
  for (let at = passed.indexOf(ALLOW_HOST); at !== -1; at = passed.indexOf(ALLOW_HOST)) {
    const [, name = ''] = passed.splice(at, 2);
    given.push(readAllowedHost(name));
  }
  return given;
}

/** Lists the served hosts, unless another option sets the address to listen on. */
async function hostsOf(passed: readonly string[], given: readonly string[]): Promise<string[]> {
  if (passed.some((one) => /^--ip(?:=|$)/.test(one))) return [];
  const hosts = await allowedHosts('127.0.0.1', given);
  return hosts === null ? [] : ['--var', `ALLOWED_HOSTS:${hosts}`];
}

/** Passes a token in a private file: every user of the machine can read the arguments of a process. */
async function withToken(state: string, adminToken: string): Promise<string[]> {
  const path = join(state, 'admin-token.env');
  await writeFile(path, `ADMIN_TOKEN=${adminToken}\n`, { mode: 0o600 });
  // Node reads the option too, and exits if there is no such file.
  const all = [join(ROOT, '.dev.vars'), path].filter((one) => existsSync(one));
  return all.flatMap((one) => ['--env-file', one]);
}

function describe(url: string, token: string, upstream: StrictUpstream): void {
  const body = `'{"model": "practice", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}'`;
  console.log(`
Headgate      ${url}
practice      ${upstream.url}, allows ${LIMIT} calls at a time and needs no key
dashboard     ${signInAddress(url, token)}
admin token   ${token}

A streaming call; start more than ${LIMIT} of them and see them wait:
  curl -N ${url}/practice/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer any' -d ${body}
Who holds a slot, who waits:
  curl ${url}/admin/api/status -H 'authorization: Bearer ${token}'
The configuration:
  curl ${url}/admin/api/config -H 'authorization: Bearer ${token}'
`);
}

async function main(): Promise<number> {
  const passed = process.argv.slice(2);
  const given = takeAllowedHosts(passed);
  const at = passed.indexOf('--port');
  const place = at === -1 ? firstFreePlace() : placeAt(Number(passed[at + 1]));
  const { port, upstream } = await place;
  const stored = await storedToken();
  const adminToken = stored ?? randomBytes(18).toString('base64url');
  const state = stateOf(passed, port);
  await makePrivate(state, console.error);
  const args = [
    WRANGLER,
    'dev',
    '--ip',
    '127.0.0.1',
    // Any: by itself wrangler looks for a free one and takes it later, when somebody else may have.
    '--inspector-port',
    '0',
    '--var',
    'PRIVATE_UPSTREAMS:allow',
    ...(await hostsOf(passed, given)),
    ...(at === -1 ? ['--port', String(port)] : []),
    ...(stored === null ? await withToken(state, adminToken) : []),
    ...(passed.some((one) => PERSIST_TO.test(one)) ? [] : ['--persist-to', state]),
    ...passed,
  ];
  const wrangler = spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: 'inherit',
    env: {
      ...process.env,
      CLOUDFLARE_CF_FETCH_ENABLED: 'false',
      WRANGLER_SEND_METRICS: 'false',
    },
  });
  const ended = new Promise<number>((resolve) => {
    wrangler.once('exit', (code) => resolve(code ?? 0));
  });
  const terminate = (): boolean => wrangler.kill('SIGTERM');
  // A Ctrl-C in the terminal reaches wrangler too, and it may end in good order by itself.
  process.on('SIGINT', () => setTimeout(terminate, 1_000).unref());
  process.on('SIGTERM', terminate);
  const url = `http://127.0.0.1:${port}`;
  if (await untilReady(url, () => wrangler.exitCode !== null)) {
    await configure({ url, adminToken }, upstream.url).catch((error: unknown) => {
      console.error('The practice configuration was not written:', error);
    });
    describe(url, adminToken, upstream);
  }
  const code = await ended;
  await upstream.close();
  return code;
}

process.exitCode = await main();
