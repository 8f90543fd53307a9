import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StrictUpstream } from '../test/support/strict-upstream.ts';
import { startStrictUpstream } from '../test/support/strict-upstream.ts';
import type { AdminTarget } from './serve/admin-client.ts';
import { importFirst, readConfig, untilReady, writeConfig } from './serve/admin-client.ts';
import { ROOT, WRANGLER } from './serve/build.ts';

const LIMIT = 3;
const DEFAULT_PORT = 8787;

/** The token of `.dev.vars`, or null. */
async function storedToken(): Promise<string | null> {
  const text = await readFile(join(ROOT, '.dev.vars'), 'utf8').catch(() => '');
  const value = /^\s*ADMIN_TOKEN\s*=\s*(.+?)\s*$/m.exec(text)?.[1] ?? '';
  return value.replace(/^(["'])(.*)\1$/, '$2') || null;
}

/** The same port at every start if it is free, so that a stored configuration stays true. */
async function startPractice(port: number): Promise<StrictUpstream> {
  const settings = { limit: LIMIT, chunks: 20, chunkDelayMs: 200 };
  try {
    return await startStrictUpstream({ ...settings, port });
  } catch {
    return startStrictUpstream(settings);
  }
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
  if (await importFirst(target, JSON.stringify(first), 'application/json')) return;
  const stored = await readConfig(target);
  if (stored === null) return;
  const config = JSON.parse(stored.body) as { upstreams?: Record<string, unknown>[] };
  const upstream = config.upstreams?.find(({ id }) => id === 'practice');
  if (upstream === undefined || upstream['base_url'] === baseUrl) return;
  upstream['base_url'] = baseUrl;
  await writeConfig(target, stored.etag, JSON.stringify(config), 'application/json');
}

function describe(url: string, token: string, upstream: StrictUpstream): void {
  const body = `'{"model": "practice", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}'`;
  console.log(`
Headgate      ${url}
practice      ${upstream.url}, allows ${LIMIT} calls at a time and needs no key
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
  const at = passed.indexOf('--port');
  const port = at === -1 ? DEFAULT_PORT : Number(passed[at + 1]);
  const upstream = await startPractice(port + 1);
  const stored = await storedToken();
  const adminToken = stored ?? randomBytes(18).toString('base64url');
  const args = [
    WRANGLER,
    'dev',
    '--ip',
    '127.0.0.1',
    '--var',
    'PRIVATE_UPSTREAMS:allow',
    ...(at === -1 ? ['--port', String(port)] : []),
    ...(stored === null ? ['--var', `ADMIN_TOKEN:${adminToken}`] : []),
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
