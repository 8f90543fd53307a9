// A Headgate on a loopback address serves only the names of this machine, so web pages cannot reach it by their own name.
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { practiceConfig, startStage, type LifecycleStage } from '../support/lifecycle-stage.ts';

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({
    config: practiceConfig(5),
    upstream: { chunks: 1 },
    allowHosts: ['gw.example'],
  });
});

afterAll(() => stage.close());

interface AllowedHostsAnswer {
  readonly status: number | undefined;
  readonly reason: string | string[] | undefined;
  readonly text: string;
}

function ask(
  path: string,
  host: string,
  method = 'GET',
  more: object = {},
): Promise<AllowedHostsAnswer> {
  const { port } = new URL(stage.url());
  return new Promise((resolve, reject) => {
    const asking = request(
      { host: '127.0.0.1', port, path, method, headers: { host, ...more } },
      (answer) => {
        let text = '';
        answer.on('data', (data: Buffer) => (text += data.toString()));
        const { statusCode: status, headers } = answer;
        answer.on('end', () => resolve({ status, reason: headers['headgate-reason'], text }));
      },
    );
    asking.on('error', reject);
    asking.end(method === 'POST' ? '{"model":"m","messages":[]}' : undefined);
  });
}

const ROUTES = [
  ['GET', '/'],
  ['GET', '/healthz'],
  ['GET', '/status'],
  ['GET', '/admin'],
  ['GET', '/admin/api/status'],
  ['POST', '/leases'],
  ['GET', '/practice/v1/models'],
  ['POST', '/practice/v1/chat/completions'],
] as const;

describe.each([
  'evil.example',
  'evil.example:8787',
  'localhost.evil.example',
  'localhost.',
  'gwxexample',
  '192.0.2.1',
])('by the name %s', (host) => {
  it.each(ROUTES)('%s %s is a 421 that says how to serve it', async (method, path) => {
    const origin = { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' };
    const before = stage.upstream.stats().total;
    const answer = await ask(path, host, method, { ...origin, 'content-type': 'application/json' });
    expect(answer).toMatchObject({ status: 421, reason: 'host_unknown' });
    expect(answer.text).toContain('--allow-host');
    expect(stage.upstream.stats().total).toBe(before);
  });
});

it('refuses a WebSocket with such a name', async () => {
  const more = { connection: 'upgrade', upgrade: 'websocket' };
  expect(await ask('/practice/v1/realtime', 'evil.example', 'GET', more)).toMatchObject({
    status: 421,
  });
});

it.each([
  'localhost',
  'LOCALHOST:1',
  '127.0.0.1',
  '127.0.0.1:8787',
  '[::1]',
  '[::1]:99',
  'gw.example:443',
])('serves %s', async (host) => {
  expect(await ask('/healthz', host)).toMatchObject({ status: 200 });
  const headers = { authorization: 'Bearer sk-own', 'content-type': 'application/json' };
  const answer = await ask('/practice/v1/chat/completions', host, 'POST', headers);
  expect(answer).toMatchObject({ status: 200 });
});
