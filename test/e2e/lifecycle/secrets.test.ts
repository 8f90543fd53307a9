import { afterAll, beforeAll, expect, it } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import type { LifecycleCallOptions } from '../support/lifecycle-call.ts';
import { openCall } from '../support/lifecycle-call.ts';
import type { LifecycleSecretsFinding, Secret } from '../support/lifecycle-secrets.ts';
import { filesBelow, keyHash, leaks, makeSecret } from '../support/lifecycle-secrets.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, STAGE_TOKEN, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/**
 * Uses keys in every place and every way of going wrong, and then looks for them in all that Headgate
 * said and kept: logs, rows, audit, status, leases, export, every answer with its headers.
 */
const caller = {
  bearer: makeSecret('the bearer key', 'sk-proj-'),
  anthropic: makeSecret('the x-api-key', 'sk-ant-api03-'),
  goog: makeSecret('the x-goog-api-key', 'AIzaSy'),
  azure: makeSecret('the api-key', 'az'),
  query: makeSecret('the key in the query', 'AIzaQu'),
};
const gateway = makeSecret('the gateway key', 'hg_');
const strange = makeSecret('a gateway key that nobody knows', 'hg_');
const operator = makeSecret('the key of the operator', 'sk-operator-');
const pasted = makeSecret('a key in a refused document', 'sk-pasted-');
const guessed = makeSecret('a wrong admin token', 'guess-');
const admin = makeSecret('the admin token', STAGE_TOKEN);
const secrets: readonly Secret[] = [
  ...Object.values(caller),
  gateway,
  strange,
  operator,
  pasted,
  guessed,
];

const findings: LifecycleSecretsFinding[] = [];
let stage: LifecycleStage;

function note(where: string, data: string | Buffer): void {
  findings.push({ where, data: Buffer.from(data) });
}

/** The dialects, each with the place where its clients put their keys. */
const WAYS: readonly { readonly path: string; readonly headers: Record<string, string> }[] = [
  {
    path: '/practice/v1/chat/completions',
    headers: { authorization: `Bearer ${caller.bearer.value}` },
  },
  {
    path: '/claude/v1/messages',
    headers: { 'x-api-key': caller.anthropic.value, 'anthropic-version': '2023-06-01' },
  },
  {
    path: '/gem/v1beta/models/g:streamGenerateContent?alt=sse',
    headers: { 'x-goog-api-key': caller.goog.value },
  },
  { path: `/gem/v1beta/models/g:generateContent?key=${caller.query.value}`, headers: {} },
  {
    path: '/az/openai/deployments/d/chat/completions?api-version=2026-01-01',
    headers: { 'api-key': caller.azure.value },
  },
];

const BODY = JSON.stringify({
  model: 'm',
  stream: true,
  max_tokens: 5,
  messages: [{ role: 'user', content: 'Hello!' }],
  contents: [{ role: 'user', parts: [{ text: 'Hello!' }] }],
});

function config(upstream: StrictUpstream, extra: Readonly<Record<string, unknown>> = {}): unknown {
  const { url } = upstream;
  return {
    upstreams: [
      { id: 'practice', base_url: url },
      { id: 'claude', base_url: url, dialect: 'anthropic' },
      { id: 'gem', base_url: url, dialect: 'gemini' },
      { id: 'az', base_url: url, dialect: 'azure' },
      { id: 'dead', base_url: 'http://127.0.0.1:1' },
      { id: 'dead-gem', base_url: 'http://127.0.0.1:1', dialect: 'gemini' },
      { id: 'ours', base_url: url, auth: { secret: 'UPSTREAM_OURS_KEY' } },
      { id: 'unset', base_url: url, auth: { secret: 'UPSTREAM_UNSET_KEY' } },
    ],
    groups: [
      {
        name: 'practice',
        limits: { max_concurrency: 3 },
        holds: NO_HOLDS,
        partition_by: ['caller'],
      },
    ],
    ...extra,
  };
}

beforeAll(async () => {
  stage = await startStage({
    config,
    env: { UPSTREAM_OURS_KEY: operator.value },
    upstream: { chunks: 2 },
  });
});

afterAll(() => stage.close());

/** Sends a call and notes what comes back; answers with the status. */
async function send(
  what: string,
  options: Partial<LifecycleCallOptions> & { path: string },
): Promise<number> {
  const call = openCall(stage.url(), {
    body: BODY,
    ...options,
    headers: { 'content-type': 'application/json', ...options.headers },
  });
  const status = await call.answered;
  await call.ended;
  note(`the answer to ${what}`, `${JSON.stringify(call.headers())}\n${call.text()}`);
  return status;
}

async function ask(method: string, path: string, body?: unknown): Promise<number> {
  const response = await stage.admin.request(method, path, body);
  const headers = JSON.stringify([...response.headers]);
  note(`the answer to ${method} ${path.slice(0, 40)}`, `${headers}\n${await response.text()}`);
  return response.status;
}

/** Every way to send a key, through every way that a call can go; answers with the statuses. */
async function sendAll(what: string, headers: Record<string, string>): Promise<number[]> {
  const statuses: number[] = [];
  for (const way of WAYS) {
    const all = { ...way.headers, ...headers };
    statuses.push(await send(`${what}: ${way.path.split('?')[0]}`, { ...way, headers: all }));
  }
  return statuses;
}

it('keys pass through successes, errors and rejections', async () => {
  expect(new Set(await sendAll('a success', {}))).toEqual(new Set([200]));
  expect(new Set(await sendAll('an upstream 401', { 'x-strict-status': '401' }))).toEqual(
    new Set([401]),
  );
  expect(new Set(await sendAll('an upstream 429', { 'x-strict-status': '429' }))).toEqual(
    new Set([429]),
  );
  expect(new Set(await sendAll('an upstream 500', { 'x-strict-status': '500' }))).toEqual(
    new Set([500]),
  );
  expect(new Set(await sendAll('a reset', { 'x-strict-reset-before-headers': '1' }))).toEqual(
    new Set([502]),
  );
  await sendAll('a broken stream', { 'x-strict-break-after-chunks': '1' });
  expect(new Set(await sendAll('a wrong header', { 'headgate-max-wait': 'soon' }))).toEqual(
    new Set([400]),
  );
  expect(await ask('PATCH', '/groups/practice', { limits: { max_concurrency: 0 } })).toBe(200);
  expect(new Set(await sendAll('a rejection', { 'headgate-max-wait': '0' }))).toEqual(
    new Set([429]),
  );
  expect(new Set(await sendAll('a time-out', { 'headgate-max-wait': '20ms' }))).toEqual(
    new Set([429]),
  );
  expect(await ask('PATCH', '/groups/practice', { limits: { max_concurrency: 3 } })).toBe(200);
});

it('keys go to upstreams that are not there, or not known', async () => {
  const [query, bearer] = [`key=${caller.query.value}`, `Bearer ${caller.bearer.value}`];
  const headers = { authorization: bearer };
  const gem = `/dead-gem/v1beta/models/g:generateContent?${query}`;
  expect(await send('a dead upstream', { path: '/dead/v1/chat/completions', headers })).toBe(502);
  expect(await send('a dead upstream with a query', { path: gem })).toBe(502);
  const list = `/dead-gem/v1beta/models?${query}`;
  expect(await send('a dead model list', { path: list, method: 'GET', body: '' })).toBe(502);
  expect(await send('an unknown upstream', { path: `/nowhere/v1/x?${query}`, headers })).toBe(404);
  const unified = '/v1/chat/completions';
  expect(await send('an unknown model', { path: `${unified}?${query}`, headers })).toBe(404);
  expect(await send('no JSON', { path: unified, headers, body: '{"model": ' })).toBe(400);
});

it('keys are held by leases and waiters while somebody looks', async () => {
  const headers = {
    authorization: `Bearer ${caller.bearer.value}`,
    'x-strict-silent-after-chunks': '1',
  };
  const path = '/practice/v1/chat/completions';
  const calls = Array.from({ length: 5 }, () =>
    openCall(stage.url(), { path, headers, body: BODY }),
  );
  await stage.admin.untilGroup('practice', { in_use: 3, queued: 2 });
  for (const looked of ['/groups/practice/leases', '/groups/practice/status', '/status']) {
    expect(await ask('GET', looked)).toBe(200);
  }
  findings.push(...(await filesBelow(stage.dataDir)));
  const [first] = await stage.admin.leases('practice');
  expect(await ask('DELETE', `/groups/practice/leases/${first?.id}`)).toBe(202);
  for (const call of calls) call.leave('RST');
  await until('all have left', () => stage.upstream.stats().inFlight === 0);
  await stage.admin.untilIdle();
});

it('the key of the operator is used behind a gateway key alone', async () => {
  const keys = [{ id: 'team', hash: keyHash(gateway) }];
  expect(await ask('PUT', '/config', config(stage.upstream, { keys }))).toBe(200);
  const path = '/ours/v1/chat/completions';
  const known = { 'headgate-key': gateway.value };
  const isKnown = async (): Promise<boolean> =>
    (await send('a gateway key', { path, headers: known })) === 200;
  await until('the key is known', isKnown, { everyMs: 50 });
  expect(await send('no gateway key', { path })).toBe(401);
  const asBearer = { authorization: `Bearer ${gateway.value}` };
  expect(await send('a gateway key as bearer', { path, headers: asBearer })).toBe(200);
  const inQuery = `/gem/v1beta/models/g:generateContent?key=${gateway.value}`;
  expect(await send('a gateway key in the query', { path: inQuery })).toBe(200);
  const refused = { ...known, 'x-strict-status': '403' };
  expect(await send('a refusal of the upstream', { path, headers: refused })).toBe(403);
  const reset = { ...known, 'x-strict-reset-before-headers': '1' };
  expect(await send('a reset of the upstream', { path, headers: reset })).toBe(502);
  expect(await send('a strange key', { path, headers: { 'headgate-key': strange.value } })).toBe(
    401,
  );
  const unset = '/unset/v1/chat/completions';
  expect(await send('a secret that is not set', { path: unset, headers: known })).toBe(424);
  expect(new Set(await sendAll('both keys', known))).toEqual(new Set([200]));
});

/** Documents with a key where none belongs; each must be refused without repeating it. */
const REFUSED: readonly unknown[] = [
  { keys: [{ id: 'a', hash: pasted.value }] },
  { keys: [{ id: 'a', hash: `sha256:${pasted.value}` }] },
  { keys: [{ id: 'a', key: pasted.value }] },
  { keys: [pasted.value] },
  { upstreams: [{ id: 'x', base_url: `https://me:${pasted.value}@example.com` }] },
  { upstreams: [{ id: 'x', base_url: `https://example.com/?key=${pasted.value}` }] },
  { upstreams: [{ id: 'x', base_url: pasted.value }] },
  { upstreams: [{ id: 'x', base_url: 'https://example.com', auth: { secret: pasted.value } }] },
  { upstreams: [{ id: 'x', base_url: 'https://example.com', auth: pasted.value }] },
  { upstreams: [{ id: 'x', base_url: 'https://example.com', api_key: pasted.value }] },
  { upstreams: [{ id: 'x', base_url: 'https://example.com', dialect: pasted.value }] },
  { groups: [{ name: 'g', match: { keys: [pasted.value] } }] },
  { groups: [{ name: 'g', match: { upstreams: [pasted.value] } }] },
  { groups: [{ name: 'g', partition_by: [pasted.value] }] },
  { groups: [{ name: 'g', limits: { max_concurrency: pasted.value } }] },
  { groups: [{ name: 'g', location: pasted.value }] },
  { groups: [{ name: `G ${pasted.value}` }] },
  { default_upstream: pasted.value },
  { cors_origins: [`https://example.com/?key=${pasted.value}`] },
  { [pasted.value]: 1 },
  { concurrency_groups: [{ name: 'g', max_concurrency: 1, providers: [pasted.value] }] },
  { model: 'gpt-4', rate_limit: { rpm: pasted.value } },
  pasted.value,
];

it('refused changes do not repeat a key that stands where none belongs', async () => {
  const accepted: unknown[] = [];
  for (const document of REFUSED) {
    if ((await ask('PUT', '/config', document)) !== 422) accepted.push(document);
  }
  expect(accepted).toEqual([]);
  for (const text of [`{"api_key": "${pasted.value}",`, `api_key: "${pasted.value}\n  - x: [`]) {
    const response = await fetch(`${stage.url()}/admin/api/config`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${STAGE_TOKEN}`, 'content-type': 'application/yaml' },
      body: text,
    });
    expect(response.status).toBe(400);
    note('the answer to a document that cannot be read', await response.text());
  }
  const wrong = await fetch(`${stage.url()}/admin/api/status`, {
    headers: { authorization: `Bearer ${guessed.value}` },
  });
  expect(wrong.status).toBe(401);
  note('the answer to a wrong admin token', await wrong.text());
  expect(await ask('PATCH', '/groups/practice', { note: pasted.value })).toBe(422);
  expect(await ask('POST', '/fingerprint', { key: caller.bearer.value })).toBe(200);
});

it('none of them is in the logs, the rows, the audit, the status, the export or any answer', async () => {
  const looked = ['/audit?limit=1000', '/status', '/groups', '/config', '/config?format=yaml'];
  for (const path of looked) expect(await ask('GET', path)).toBe(200);
  findings.push(...(await filesBelow(stage.dataDir)));
  await stage.stop();
  findings.push(...(await filesBelow(stage.dataDir)));
  note('the log', stage.logs());
  const databases = findings.filter(({ where }) => where.endsWith('.sqlite'));
  expect(databases.length).toBeGreaterThan(2);
  expect(leaks([...secrets, { ...admin, traces: [STAGE_TOKEN] }], findings)).toEqual([]);
  // The search finds what is there: the hash of the gateway key stands in the export.
  const hash = { ...gateway, traces: [keyHash(gateway)] };
  expect(leaks([hash], findings)).toContain('the gateway key in the answer to GET /config');
});
