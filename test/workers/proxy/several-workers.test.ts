// Several Workers, each with its own copy of the configuration, bound to one namespace of groups. The
// upstream counts. A Worker here is a fresh instance of all modules, as an isolate of its own would have.
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { Env } from '../../../src/env.ts';
import { NO_COOLDOWN, nothingLeaks, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, configure, env, until } from '../support/worker.ts';

const WORKERS = 4;
const GROUP = 'several';

let strict: Strict;
let workers: SeveralWorkersCall[];

beforeAll(async () => {
  strict = await strictScope('several', { limit: 3, chunks: 3, chunkDelayMs: 50 });
  workers = [];
  for (let at = 0; at < WORKERS; at += 1) workers.push(await startWorker());
  const config: ConfigInput = {
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [
      {
        name: GROUP,
        match: { upstreams: ['up'] },
        limits: { max_concurrency: 3 },
        holds: NO_COOLDOWN,
      },
    ],
  };
  // Loading modules anew resets the objects, which the first calls notice.
  await until(() => configure(config));
});

afterAll(nothingLeaks);

type SeveralWorkersCall = (label: string) => Promise<number>;

async function startWorker(): Promise<SeveralWorkersCall> {
  vi.resetModules();
  const { createApp } = await import('../../../src/http/app.ts');
  const app = createApp() as Required<ExportedHandler<Env>>;
  return async (label) => {
    const messages = [{ role: 'user', content: label }];
    const request = new Request<unknown, IncomingRequestCfProperties>(
      'https://headgate.test/up/v1/chat/completions',
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', stream: true, messages }),
      },
    );
    const ctx = createExecutionContext();
    const response = await app.fetch(request, env, ctx);
    await response.arrayBuffer();
    await waitOnExecutionContext(ctx);
    return response.status;
  };
}

it('several Workers share a limit of 3: the upstream never sees a fourth call', async () => {
  const calls = workers.flatMap((call, worker) =>
    Array.from({ length: 8 }, (_, at) => call(`w${worker}-${at}`)),
  );
  expect(new Set(await Promise.all(calls))).toEqual(new Set([200]));
  expect(await strict.stats()).toMatchObject({ total: 32, peak: 3, rejected429: 0 });
  await untilStatus(GROUP, { in_use: 0, queued: 0, granted_total: 32 });
});

it('a lower limit holds for Workers that have not heard of it', async () => {
  // Not through the helper that lets a Worker know.
  await admin('PATCH', `/groups/${GROUP}`, { limits: { max_concurrency: 1 } });
  await untilStatus(GROUP, { limit: { configured: 1, effective: 1, source: 'configured' } });
  await strict.configure({ limit: 1 });
  const calls = workers.flatMap((call) => [call('a'), call('b')]);
  expect(new Set(await Promise.all(calls))).toEqual(new Set([200]));
  expect(await strict.stats()).toMatchObject({ total: 40, rejected429: 0 });
});
