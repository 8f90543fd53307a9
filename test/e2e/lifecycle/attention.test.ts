// What needs a person, on one deployment with several faults: the admin API, the dashboard's feed, `headgate doctor`,
// `headgate status`, the metrics and the webhook all say the same.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';
import { EventReader } from '../../support/event-reader.ts';
import { runToEnd } from '../support/command-line.ts';
import {
  NO_HOLDS,
  startStage,
  STAGE_TOKEN,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

interface AttentionEntry {
  readonly rule: string;
  readonly subject: { readonly id: string };
  readonly reason?: string;
  readonly says: string;
}

const REFUSAL = {
  error: { message: 'quota exceeded', type: 'insufficient_quota', code: 'insufficient_quota' },
};

/** A provider that refuses or serves by the path, and the receiver of the webhook. */
let provider: Server;
const hooks: {
  readonly data: { readonly attention: AttentionEntry; readonly cleared_at?: string };
}[] = [];
let stage: LifecycleStage;

beforeAll(async () => {
  provider = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const body = await text(request);
      const isRefused = request.url?.startsWith('/refusing/') === true;
      if (request.url === '/hook') hooks.push(JSON.parse(body) as (typeof hooks)[number]);
      response.writeHead(isRefused ? 429 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isRefused ? REFUSAL : { object: 'list', data: [] }));
    };
    answer().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    provider.listen(0, '127.0.0.1', resolve);
  });
  stage = await startStage({
    config: () => ({ leases: 'keys' }),
    env: { WEBHOOK_TEST: 'a-secret-of-the-webhook' },
  });
});

afterAll(async () => {
  await stage.close();
  provider.closeAllConnections();
  provider.close();
});

/** Names an entry. Two may have the same rule and subject, and then their reasons differ. */
const keyOf = ({ rule, subject, reason }: AttentionEntry): string =>
  [rule, subject.id, ...(reason === undefined ? [] : [reason])].join(' ');
const withoutReason = (key: string): string => key.split(' ').slice(0, 2).join(' ');

async function command(...args: string[]) {
  const { code, out } = await runToEnd([process.execPath, 'scripts/headgate.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], HEADGATE_URL: stage.url(), HEADGATE_TOKEN: STAGE_TOKEN },
  });
  return { code, out };
}

async function asked(path: string): Promise<Response> {
  return fetch(`${stage.url()}${path}`, { headers: { authorization: `Bearer ${STAGE_TOKEN}` } });
}

async function listed(): Promise<AttentionEntry[]> {
  const response = await asked('/admin/api/attention');
  return ((await response.json()) as { attention: AttentionEntry[] }).attention;
}

const providerOrigin = (): string => `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;

/** A deployment with an upstream that refuses, a secret that is missing and a paused group. */
function brokenConfig(): object {
  const origin = providerOrigin();
  return {
    leases: 'keys',
    upstreams: [
      { id: 'refusing', base_url: `${origin}/refusing`, dialect: 'openai' },
      {
        id: 'sealed',
        base_url: `${origin}/sealed`,
        dialect: 'openai',
        auth: { secret: 'UPSTREAM_NOT_SET' },
      },
    ],
    groups: [
      { name: 'refused', match: { upstreams: ['refusing'] }, holds: NO_HOLDS },
      { name: 'halted', match: { models: ['halted-*'] }, paused: true },
    ],
  };
}

async function put(config: object): Promise<void> {
  const answer = await stage.admin.request('PUT', '/config', config);
  expect([answer.status, await answer.text()]).toEqual([200, expect.anything()]);
}

/** Breaks the deployment, and calls it. */
async function breakIt(): Promise<void> {
  await put(brokenConfig());
  for (let index = 0; index < 6; index += 1) {
    const answer = await fetch(`${stage.url()}/refusing/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-caller' },
      body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    expect(answer.status).toBe(429);
    await answer.body?.cancel();
  }
  const sealed = '/sealed/v1/models';
  for (const [path, headers] of [
    ['/nowhere/v1/models', {}],
    [sealed, {}],
    [sealed, { 'headgate-key': 'hg_unknown' }],
  ] as const) {
    const answer = await fetch(`${stage.url()}${path}`, { headers });
    await answer.body?.cancel();
  }
}

it('all five say the same, with the words of the provider', async () => {
  const before = await command('doctor', '--json');
  expect([before.code, await listed()]).toEqual([0, []]);
  await breakIt();
  const expected = [
    'refused_by_upstream refused',
    'secret_missing sealed',
    'key_refused sealed key_missing',
    'key_refused sealed key_invalid',
    'calls_refused headgate upstream_unknown',
    'paused halted',
  ];
  const isWhole = async (): Promise<boolean> => {
    const keys = (await listed()).map(keyOf);
    return expected.every((key) => keys.includes(key));
  };
  await until('all faults are found', isWhole);
  // The list is read 5 s after a change of the configuration, and then once a minute.
  const hook = { url: `${providerOrigin()}/hook`, secret: 'WEBHOOK_TEST', kinds: ['attention'] };
  await put({ ...brokenConfig(), webhook: hook });
  const all = await listed();
  const keys = all.map(keyOf);
  expect(all[0]?.says).toMatch(
    /^`refusing` refuses every call: \d+ × 429 'quota exceeded' in \d minutes?\.$/,
  );

  const status = await command('status', '--json');
  const { attention } = JSON.parse(status.out) as { attention: AttentionEntry[] };
  expect(attention.map(keyOf)).toEqual(keys);

  const doctor = await command('doctor', '--json');
  expect(doctor.code).toBe(1);
  const { findings } = JSON.parse(doctor.out) as { findings: { detail: string; check: string }[] };
  const found = findings.flatMap(({ check, detail }) => {
    const [, rule = null] = /^([a-z]+(?:_[a-z]+)*): /.exec(detail) ?? [];
    return rule === null ? [] : [`${rule} ${check.replace(/^[a-z ]+: /, '')}`];
  });
  expect(found.toSorted()).toEqual(keys.map(withoutReason).toSorted());

  const metrics = await (await asked('/metrics')).text();
  const counted = [...metrics.matchAll(/^headgate_attention\{rule="(\w+)"\} (\d+)$/gm)].flatMap(
    ([, rule = '', count]) => Array.from({ length: Number(count) }, () => rule),
  );
  expect(counted.toSorted()).toEqual(all.map(({ rule }) => rule).toSorted());

  const { body } = await asked('/admin/api/events');
  if (body === null) throw new Error('There is no feed.');
  const reader = new EventReader(body as unknown as ReadableStream);
  await until('the dashboard has the list', () => reader.of('attention').length > 0);
  const shown = reader.of('attention').at(-1) as { attention: AttentionEntry[] };
  expect(shown.attention.map(keyOf)).toEqual(keys);
  await reader.close();

  const sent = (): string[] => hooks.map(({ data }) => keyOf(data.attention));
  const hasAll = (): boolean => keys.every((key) => sent().includes(key));
  await until('the webhook has all', hasAll, { withinMs: 150_000 });
  expect(sent().toSorted()).toEqual(keys.toSorted());
});
