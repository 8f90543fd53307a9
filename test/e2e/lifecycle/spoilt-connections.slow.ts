import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Spoiling, SpoilingUpstream } from '../support/spoiling-upstream.ts';
import { SPOILINGS, startSpoilingUpstream } from '../support/spoiling-upstream.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';

/**
 * Bytes behind an answer are the beginning of the next one on the same connection, as workerd sees it. Its
 * pool of connections is only there on plain workerd.
 */
const CALLS = 2_000;
const AT_ONCE = 20;
const SPOILING_EVERY = 50;

let upstream: SpoilingUpstream;
let stage: LifecycleStage;
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

beforeAll(async () => {
  upstream = await startSpoilingUpstream();
  stage = await startStage({
    config: () => ({
      upstreams: [{ id: 'raw', base_url: upstream.url }],
      groups: [
        {
          name: 'raw',
          match: { upstreams: ['raw'] },
          limits: { max_concurrency: AT_ONCE },
          holds: NO_HOLDS,
        },
      ],
    }),
  });
});

afterAll(async () => {
  agent.destroy();
  await stage.close();
  await upstream.close();
});

interface SpoiltConnectionsReport {
  readonly status: number;
  readonly text: string;
}

function send(
  { method, path }: { method: string; path: string },
  label: string,
  spoiling: Spoiling | null,
): Promise<SpoiltConnectionsReport> {
  return new Promise((resolve, reject) => {
    const body = method === 'POST' ? '{}' : '';
    const outgoing = request(`${stage.url()}/raw/v1/${path}`, {
      method,
      agent,
      headers: {
        'x-label': label,
        ...(body !== '' && { 'content-length': body.length }),
        ...(spoiling !== null && { 'x-spoil': spoiling }),
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (answer) => {
      let text = '';
      answer.on('data', (data: Buffer) => {
        text += data.toString();
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    outgoing.end(body);
  });
}

it.each([
  ['with a slot', { method: 'POST', path: 'chat/completions' }],
  ['without a slot', { method: 'GET', path: 'models' }],
])('bytes behind an answer cost no other call %s its own', async (_, what) => {
  const name = what.method;
  let next = 0;
  const innocent: SpoiltConnectionsReport[] = [];
  const work = async (): Promise<void> => {
    while (next < CALLS) {
      const at = next;
      next += 1;
      const kind = SPOILINGS[(at / SPOILING_EVERY) % SPOILINGS.length];
      const spoiling = at % SPOILING_EVERY === 0 ? (kind ?? null) : null;
      const reported = await send(what, `${name}-${at}`, spoiling);
      if (spoiling === null) innocent.push(reported);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  expect(innocent.filter(({ status, text }) => status !== 200 || text !== '{}')).toEqual([]);
  // All connections that were to be spoilt are, or there was nothing to see here. Whether a call meets one is the runtime's.
  const spoilt = [...upstream.spoilt].filter((label) => label.startsWith(name));
  expect(spoilt).toHaveLength(CALLS / SPOILING_EVERY);
});
