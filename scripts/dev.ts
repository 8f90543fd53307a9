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
/** Wrangler's option for the folder of its state. */
const PERSIST_TO = /^--persist-to(?:=|$)/;

/** The option that adds a served host name. It is not passed to wrangler. */
const ALLOW_HOST = '--allow-host';

const PRACTICE = { limit: LIMIT, chunks: 20, chunkDelayMs: 200 };

const DEFAULT_PORT = 8787;

/** Maximum pairs of ports to try, which is more than the servers that run on one machine. */
const PAIRS_MAX = 50;

interface PracticeUpstream {
  readonly port: number;
  readonly upstream: StrictUpstream;
}

/** Reads the token in `.dev.vars`. null if there is none. */
async function storedToken(): Promise<string | null> {
  const text = await readFile(join(ROOT, '.dev.vars'), 'utf8').catch(() => '');
  const written = /^\s*ADMIN_TOKEN\s*=\s*(.+?)\s*$/m.exec(text)?.[1] ?? '';
  const { value, fault } = cleanSecret(written.replace(/^(["'])(.*)\1$/, '$2'));
  if (fault === null || fault === 'is not set') return value;
  throw new Error(`ADMIN_TOKEN in .dev.vars ${fault}. Set it again without them.`);
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
 * Uses the default pair of ports if it is free, so that a stored configuration stays valid, and otherwise the next free
 * pair. The practice upstream's port is claimed first, so two processes that start at the same time do not collide.
 */
async function firstFreePair(): Promise<PracticeUpstream> {
  const end = DEFAULT_PORT + 2 * PAIRS_MAX;
  for (let port = DEFAULT_PORT; port < end; port += 2) {
    const upstream = await startPractice(port + 1);
    if (upstream === null) continue;
    if (await isFree(port)) return { port, upstream };
    await upstream.close();
  }
  throw new Error(
    `No two adjacent ports are free from ${DEFAULT_PORT} to ${end}. Choose a port with --port.`,
  );
}

async function pairAt(port: number): Promise<PracticeUpstream> {
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

/** Writes the practice configuration, or updates the upstream's address in a stored one. */
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

/** Returns the data folder. Each port has its own, because two processes must not write to the same database. */
function stateOf(passed: readonly string[], port: number): string {
  const at = passed.findIndex((one) => PERSIST_TO.test(one));
  const given = passed[at]?.split('=')[1] ?? passed[at + 1];
  const own = port === DEFAULT_PORT ? 'state' : `state-${port}`;
  return absolute(ROOT, at === -1 ? join('.wrangler', own) : (given ?? ''));
}

/** Removes the additional host names from the arguments and returns them. */
function takeAllowedHosts(passed: string[]): string[] {
  const given: string[] = [];
  for (let at = passed.indexOf(ALLOW_HOST); at !== -1; at = passed.indexOf(ALLOW_HOST)) {
    const [, name = ''] = passed.splice(at, 2);
    given.push(readAllowedHost(name));
  }
  return given;
}

/** Returns the variable with the served hosts, unless another option sets the address to listen on. */
async function hostsOf(passed: readonly string[], given: readonly string[]): Promise<string[]> {
  if (passed.some((one) => /^--ip(?:=|$)/.test(one))) return [];
  const hosts = await allowedHosts('127.0.0.1', given);
  return hosts === null ? [] : ['--var', `ALLOWED_HOSTS:${hosts}`];
}

/** Passes the token in a private file, because every user of the machine can read the arguments of a process. */
async function withToken(state: string, adminToken: string): Promise<string[]> {
  const path = join(state, 'admin-token.env');
  await writeFile(path, `ADMIN_TOKEN=${adminToken}\n`, { mode: 0o600 });
  // Node reads this option too, and exits if the file does not exist.
  const all = [join(ROOT, '.dev.vars'), path].filter((one) => existsSync(one));
  return all.flatMap((one) => ['--env-file', one]);
}

function describe(url: string, token: string, upstream: StrictUpstream): void {
  const body = `'{"model": "practice", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}'`;
  console.log(`
Headgate      ${url}
practice      ${upstream.url}, allows ${LIMIT} concurrent calls and requires no key
dashboard     ${signInAddress(url, token)}
admin token   ${token}

A streaming call. Start more than ${LIMIT} at once to see them queue:
  curl -N ${url}/practice/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer any' -d ${body}
The state of the groups:
  curl ${url}/admin/api/status -H 'authorization: Bearer ${token}'
The configuration:
  curl ${url}/admin/api/config -H 'authorization: Bearer ${token}'
`);
}

async function main(): Promise<number> {
  const passed = process.argv.slice(2);
  const given = takeAllowedHosts(passed);
  const at = passed.indexOf('--port');
  const pair = at === -1 ? firstFreePair() : pairAt(Number(passed[at + 1]));
  const { port, upstream } = await pair;
  const stored = await storedToken();
  const adminToken = stored ?? randomBytes(18).toString('base64url');
  const state = stateOf(passed, port);
  await makePrivate(state, console.error);
  const args = [
    WRANGLER,
    'dev',
    '--ip',
    '127.0.0.1',
    // With 0, the system assigns a port. Wrangler would search for a free one and open it later, when it may be in use.
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
  // A Ctrl-C in the terminal also reaches wrangler, which may exit in an orderly way on its own.
  process.on('SIGINT', () => setTimeout(terminate, 1_000).unref());
  process.on('SIGTERM', terminate);
  const url = `http://127.0.0.1:${port}`;
  if (await untilReady(url, () => wrangler.exitCode !== null)) {
    await configure({ url, adminToken }, upstream.url).catch((error: unknown) => {
      console.error('Cannot write the practice configuration:', error);
    });
    describe(url, adminToken, upstream);
  }
  const code = await ended;
  await upstream.close();
  return code;
}

process.exitCode = await main();
