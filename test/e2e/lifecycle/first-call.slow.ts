import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { openCall } from '../support/lifecycle-call.ts';
import { practiceConfig, STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/** A caller that goes by `healthz` knocks from before the start on. What does its first call find? */
const STARTS = 8;
const GATEWAY_KEYS = [{ id: 'team', hash: `sha256:${'0'.repeat(64)}` }];

let upstream: StrictUpstream;
let folder: string;

beforeEach(async () => {
  upstream = await startStrictUpstream({ chunks: 1 });
  folder = await mkdtemp(join(tmpdir(), 'headgate-first-'));
});

afterEach(async () => {
  await upstream.close();
  await rm(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function statusOf(url: string, method: string, path: string): Promise<number> {
  const body = method === 'POST' ? JSON.stringify({ model: 'm', messages: [] }) : '';
  const call = openCall(url, { method, path, headers: { authorization: 'Bearer sk-first' }, body });
  const status = await call.answered;
  await call.ended;
  return status;
}

/** Knocks until `healthz` answers, then calls at once; answers with the statuses of its calls. */
async function callWhenHealthy(url: string): Promise<number[]> {
  const isHealthy = async (): Promise<boolean> => {
    try {
      return (await statusOf(url, 'GET', '/healthz')) === 200;
    } catch {
      return false;
    }
  };
  await until('it is healthy', isHealthy);
  return Promise.all([
    statusOf(url, 'POST', '/practice/v1/chat/completions'),
    statusOf(url, 'GET', '/v1/models'),
  ]);
}

async function firstStatuses(run: number, more: object, adminToken: string): Promise<number[]> {
  const port = await freePort();
  const first = callWhenHealthy(`http://127.0.0.1:${port}`);
  const config = { ...(practiceConfig(3)(upstream) as object), ...more };
  const dataDir = join(folder, String(run));
  const serve = await startServe({ port, dataDir, env: {}, config, adminToken });
  try {
    return await first;
  } finally {
    await serve.kill9();
  }
}

it('finds the upstreams that are imported at the start', async () => {
  for (let run = 0; run < STARTS; run += 1) {
    expect(await firstStatuses(run, {}, run % 2 === 0 ? STAGE_TOKEN : '')).toEqual([200, 200]);
  }
});

it('is asked for the key that is imported at the start, also where upstreams are built in', async () => {
  for (let run = 0; run < STARTS; run += 1) {
    const keys = { keys: GATEWAY_KEYS };
    expect(await firstStatuses(run, keys, run % 2 === 0 ? STAGE_TOKEN : '')).toEqual([401, 401]);
  }
});
