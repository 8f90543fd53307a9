import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { Script } from '../support/lifecycle-script.ts';
import { runScript } from '../support/lifecycle-script.ts';
import { practiceConfig, STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/** The secrets of operators, as `npm run serve` takes them from its environment. */
const SECRETS = {
  ADMIN_TOKEN: STAGE_TOKEN,
  METRICS_TOKEN: 'only-for-prometheus',
  WEBHOOK_SECRET: `whsec_${Buffer.from('a secret of thirty-two characters').toString('base64')}`,
};

/** Messages that came to the receiver of warnings. */
interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let dataDir: string;
let upstream: StrictUpstream;
let receiver: Server;
let script: Script | null = null;
const delivered: Delivery[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'headgate-secrets-'));
  upstream = await startStrictUpstream();
  delivered.length = 0;
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      delivered.push({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
});

afterEach(async () => {
  await script?.end();
  receiver.closeAllConnections();
  receiver.close();
  await upstream.close();
  await rm(dataDir, { recursive: true, force: true });
});

async function served(secrets: NodeJS.ProcessEnv): Promise<string> {
  const { port } = receiver.address() as AddressInfo;
  const config = {
    ...(practiceConfig(2)(upstream) as object),
    webhook: { url: `http://127.0.0.1:${port}/headgate`, secret: 'WEBHOOK_SECRET' },
  };
  const file = join(dataDir, 'headgate.json');
  await writeFile(file, JSON.stringify(config));
  const args = ['--port', '0', '--data', join(dataDir, 'data'), '--config', file];
  script = runScript(['scripts/serve.ts', ...args], secrets);
  const [, url = ''] = await script.untilPrinted(/listens on (http:\S+),/);
  return url;
}

/** As a receiver checks it: standardwebhooks.com, version 1. */
function isSigned({ headers, body }: Delivery): boolean {
  const key = Buffer.from(SECRETS.WEBHOOK_SECRET.slice('whsec_'.length), 'base64');
  const [id, timestamp] = [headers['webhook-id'], headers['webhook-timestamp']].map(String);
  const signed = `${id}.${timestamp}.${body}`;
  const expected = createHmac('sha256', key).update(signed).digest();
  const [version, given = ''] = String(headers['webhook-signature']).split(',');
  const signature = Buffer.from(given, 'base64');
  return version === 'v1' && signature.length === 32 && timingSafeEqual(signature, expected);
}

const WAYS: readonly (readonly [string, (secret: string) => string])[] = [
  ['as they are', (secret) => secret],
  ['with white space at their ends', (secret) => ` ${secret}\r\n`],
];

it.each(WAYS)(
  'METRICS_TOKEN opens the metrics and nothing else, and a warning arrives signed, with secrets %s',
  async (_, write) => {
    const given = Object.entries(SECRETS).map(([name, secret]) => [name, write(secret)]);
    const url = await served(Object.fromEntries(given) as NodeJS.ProcessEnv);
    upstream.configure({ fail: 'quota' });
    const call = openChat(url, { label: 'refused' });
    expect(await call.answered).toBe(429);
    await call.ended;
    await until('the warning has arrived', () => delivered.length > 0);
    const [delivery] = delivered;
    if (delivery === undefined) throw new Error('nothing was delivered');
    expect(JSON.parse(delivery.body)).toMatchObject({
      type: 'headgate.quota_exhausted',
      data: { group: 'practice' },
    });
    expect(isSigned(delivery)).toBe(true);
    const age = Date.now() / 1_000 - Number(delivery.headers['webhook-timestamp']);
    expect(Math.abs(age)).toBeLessThan(60);

    const ask = async (path: string, token: string): Promise<[number, string]> => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`${url}${path}`, { headers });
      return [response.status, await response.text()];
    };
    const [status, text] = await ask('/metrics', SECRETS.METRICS_TOKEN);
    expect(status).toBe(200);
    expect(text).toMatch(/^headgate_upstream_refusals_total\{.*kind="quota".*\} 1$/m);
    expect((await ask('/metrics', 'another'))[0]).toBe(401);
    expect((await ask('/admin/api/status', SECRETS.METRICS_TOKEN))[0]).toBe(401);
    const printed = script?.output() ?? '';
    expect(Object.values(SECRETS).filter((secret) => printed.includes(secret))).toEqual([]);
  },
);

it('secrets with white space inside are refused and named, at the start and at /, and open nothing', async () => {
  const given = {
    ...SECRETS,
    METRICS_TOKEN: 'only for-prometheus',
    UPSTREAM_TWO: 'sk-one\nsk-two',
  };
  const url = await served(given);
  const page = await (await fetch(url)).text();
  for (const name of ['METRICS_TOKEN', 'UPSTREAM_TWO']) {
    const says = `secret ${name} has white space or control characters inside`;
    expect(page).toContain(`UNUSABLE: the ${says}`);
    expect(script?.output()).toContain(says);
  }
  const metrics = await fetch(`${url}/metrics`, {
    headers: { authorization: `Bearer ${given.METRICS_TOKEN}` },
  });
  expect(metrics.status).toBe(401);
  const admin = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${url}/admin/api${path}`, {
      method,
      headers: { authorization: `Bearer ${STAGE_TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return answer.json();
  };
  const made = await admin('PUT', '/groups/another', {});
  const { warnings } = made as { readonly warnings: readonly string[] };
  expect(warnings.filter((warning) => /METRICS_TOKEN|UPSTREAM_TWO/.test(warning))).toHaveLength(2);
  // What the dashboard shows.
  const fault = 'has white space or control characters inside';
  await admin('PUT', '/upstreams/two', {
    base_url: 'https://two.example',
    auth: { secret: 'UPSTREAM_TWO' },
  });
  expect(await admin('GET', '/upstreams/two')).toMatchObject({
    secret: { name: 'UPSTREAM_TWO', is_set: false, fault },
  });
  expect(page + (script?.output() ?? '') + warnings.join()).not.toMatch(/for-prometheus|sk-one/);
});

it('an ADMIN_TOKEN with white space inside closes the admin routes, and they say why', async () => {
  const url = await served({ ...SECRETS, ADMIN_TOKEN: 'stage admin' });
  const headers = { authorization: 'Bearer stage admin' };
  const answer = await fetch(`${url}/admin/api/status`, { headers });
  const fault = 'has white space or control characters inside';
  expect([answer.status, await answer.json()]).toEqual([
    403,
    expect.objectContaining({ fault, detail: expect.stringContaining(`\`ADMIN_TOKEN\` ${fault}`) }),
  ]);
  expect(await (await fetch(url)).text()).toContain(
    'DISABLED: the secret ADMIN_TOKEN has white space',
  );
  expect(script?.output()).not.toContain('stage admin');
});
