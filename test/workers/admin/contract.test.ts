// The admin API against its own document: a library that knows JSON Schema reads what is served, every
// operation is called, and whatever comes back must be what the document says.
import { Validator, type Schema } from '@cfworker/json-schema';
import { beforeEach, describe, expect, it } from 'vitest';
import { openApiDocument } from '../../../dashboard/api-docs/openapi.ts';
import { directoryOf } from '../../../src/env.ts';
import { poolOf } from '../../../src/routing/pool.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { createAdminRoutes } from '../../../src/admin/routes.ts';
import { request } from '../support/pool.ts';
import { env, worker } from '../support/worker.ts';
import { asAdmin } from './ask.ts';

const BASE = 'https://headgate.test/admin/api';
const TOKEN = { authorization: 'Bearer test-admin-token', 'content-type': 'application/json' };

const document = openApiDocument();

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    id: operation.operationId,
    path,
    method: method.toUpperCase(),
    operation,
  })),
);
type ContractOperation = (typeof operations)[number];

interface ContractSample {
  /** Makes what the operation needs. */
  readonly before?: () => Promise<unknown>;
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: unknown;
  readonly status?: number;
}

const A_GROUP = { match: { models: ['gpt-4o'] }, limits: { max_concurrency: 5 } };
const group = (name: string) => () =>
  asAdmin('PUT /groups/{name}', { params: { name }, body: A_GROUP });
const split = (name: string) => () =>
  asAdmin('PUT /groups/{name}', {
    params: { name },
    body: {
      members: [{ upstream: 'openai' }, { upstream: 'groq', limits: { max_concurrency: 2 } }],
    },
  });
const webhook = () =>
  asAdmin('PUT /webhook', { body: { url: 'https://nobody.invalid/hook', format: 'slack' } });
const key = (id: string) => () => asAdmin('POST /keys', { body: { id } });
const team = (id: string) => () =>
  asAdmin('PUT /teams/{id}', {
    params: { id },
    body: { limits: { budget_usd: { per_month: 5 } } },
  });
const shared = { before: group('shared'), path: { name: 'shared' } };

async function corrected(name: string): Promise<void> {
  await group(name)();
  await asAdmin('POST /groups/{name}/budget/corrections', {
    params: { name },
    body: { amount_usd: 2.5, id: 'one' },
  });
}

/** A way back to the version of just now. */
const LATELY = { version: 0 };

async function untilNow(): Promise<void> {
  await group('shared')();
  LATELY.version = (await directoryOf(env).snapshot(null))?.version ?? 0;
}

/** One good request for every operation of the document. */
const SAMPLES: Record<string, ContractSample> = {
  listGroups: { before: group('shared'), query: '?limit=1' },
  getGroup: shared,
  putGroup: { path: { name: 'fresh' }, body: A_GROUP, status: 201 },
  patchGroup: { ...shared, body: { limits: { max_concurrency: 2 }, queue: null } },
  deleteGroup: shared,
  configureGroup: { path: { name: 'auto%3Aopenai' }, status: 201 },
  pauseGroup: shared,
  drainGroup: shared,
  resumeGroup: { path: { name: 'auto%3Aopenai' } },
  relearnGroup: shared,
  listCorrections: shared,
  correctBudget: { ...shared, body: { amount_usd: 2.5, period: 'day', note: 'a test' } },
  undoCorrection: {
    before: () => corrected('undone'),
    path: { name: 'undone', id: 'one' },
  },
  takeOutMember: { before: split('two'), path: { name: 'two', member: 'openai' } },
  bringBackMember: { before: split('two'), path: { name: 'two', member: 'openai' } },
  getGroupStatus: { before: split('two'), path: { name: 'two' } },
  getHistory: { before: () => held('past'), path: { name: 'past' }, query: '?step=60' },
  listDecisions: { before: () => refused('why'), path: { name: 'why' }, query: '?limit=2' },
  findCalls: { before: () => refused('looked-up'), query: '?q=looked-up&limit=2' },
  listWarnings: { before: () => refused('warned'), path: { name: 'warned' } },
  getAttention: { before: () => refused('attended'), query: '?rule=refused_by_upstream' },
  listAllWarnings: { before: () => refused('warned-too'), query: '?limit=5' },
  listRefusals: { before: counted, query: '?reason=key_missing&limit=5' },
  getWebhook: { before: webhook },
  putWebhook: { body: { url: 'https://ops.example/hook', secret: 'WEBHOOK_TEST' } },
  deleteWebhook: { before: webhook },
  testWebhook: { before: webhook },
  listLeases: { before: () => held('busy'), path: { name: 'busy' } },
  releaseLease: {
    before: () => held('taken'),
    path: { name: 'taken', id: 'held.1' },
    status: 202,
  },
  listWaiters: { before: () => waiting('line'), path: { name: 'line' } },
  promoteWaiter: { before: () => waiting('turn'), path: { name: 'turn', ticket: 'waits' } },
  cancelWaiter: { before: () => waiting('out'), path: { name: 'out', ticket: 'waits' } },
  listAllLeases: { before: () => held('busy'), query: '?group=busy' },
  listAllWaiters: { before: () => waiting('line'), query: '?group=line' },
  releaseLeases: { before: () => held('taken'), query: '?tenant=nobody&dry_run=true' },
  cancelWaiters: { before: () => waiting('out'), query: '?agent=nobody' },
  switchGroups: { ...shared, path: {}, body: { groups: ['shared'], to: 'pause' } },
  pauseEverything: {},
  resumeEverything: {},
  listUpstreams: { before: group('shared'), query: '?limit=3' },
  getUpstream: { path: { id: 'openai' } },
  putUpstream: {
    path: { id: 'mine' },
    body: { base_url: 'https://llm.example.com', models: ['llama-*'] },
    status: 201,
  },
  patchUpstream: { path: { id: 'groq' }, body: { enabled: false }, status: 201 },
  deleteUpstream: {
    before: () =>
      asAdmin('PUT /upstreams/{id}', { params: { id: 'groq' }, body: { enabled: false } }),
    path: { id: 'groq' },
  },
  listKeyless: { before: keyless },
  listKeys: { before: key('team') },
  createKey: { body: { id: 'team', limits: { rpm: 60 }, groups: ['shared'] }, status: 201 },
  getKey: { before: key('team'), path: { id: 'team' } },
  patchKey: { before: key('team'), path: { id: 'team' }, body: { weight: 2 } },
  deleteKey: { before: () => key('team')().then(key('other')), path: { id: 'team' } },
  rotateKey: { before: key('team'), path: { id: 'team' }, body: { grace_ms: 1_000 } },
  revokeKey: { before: key('team'), path: { id: 'team' } },
  previewKey: { before: key('team'), path: { id: 'team' }, body: { weight: 2 } },
  previewTeam: { path: { id: 'fresh' }, body: { limits: { rpm: 60 } } },
  listTeams: { before: team('apps') },
  getTeam: { before: team('apps'), path: { id: 'apps' } },
  putTeam: { path: { id: 'fresh' }, body: { limits: { rpm: 60 } }, status: 201 },
  patchTeam: { before: team('apps'), path: { id: 'apps' }, body: { note: 'x' } },
  deleteTeam: { before: team('apps'), path: { id: 'apps' } },
  getCosts: { before: group('shared'), query: '?period=day&by=group' },
  getConfig: { before: group('shared') },
  putConfig: { body: { groups: [{ name: 'shared', ...A_GROUP }] } },
  previewConfig: { before: group('shared'), body: { groups: [] } },
  previewGroup: { ...shared, query: '?as=patch', body: { limits: { max_concurrency: 2 } } },
  listVersions: { before: group('shared') },
  rollBack: { before: untilNow, body: LATELY },
  fingerprint: { body: { key: 'sk-4711' } },
  listAudit: { before: group('shared'), query: '?limit=1&action=group' },
  testCall: { before: group('shared'), body: { model: 'gpt-4o', upstream: 'openai' } },
  streamEvents: { before: () => held('seen'), query: '?group=seen' },
  getIsolate: {},
  getStatus: { before: () => held('busy') },
  getSession: {},
  signIn: { body: { token: 'test-admin-token' } },
  signOut: {},
  listAdminKeys: {},
  createAdminKey: { body: { id: 'looker', role: 'viewer' }, status: 201 },
  deleteAdminKey: {
    before: () => asAdmin('POST /admin-keys', { body: { id: 'gone', role: 'viewer' } }),
    path: { id: 'gone' },
  },
  getOpenApi: {},
  getDocs: {},
};

/** Holds a slot of a group of its own. */
async function held(name: string): Promise<void> {
  await group(name)();
  await poolOf(env, name, null, null).acquire(request(name, 'held'));
}

/** Has a call in a group of its own that the upstream refuses, and one that the group itself refuses. */
async function refused(name: string): Promise<void> {
  await group(name)();
  const asked = await poolOf(env, name, null, null).acquire(request(name, 'refused'));
  if (asked.kind !== 'granted') throw new Error(asked.kind);
  await asked.lease.report({ ...SERVED, kind: 'quota' }, false);
  await asked.lease.release('refused', 429);
  const wide = await poolOf(env, name, null, null).acquire(request(name, 'wide', { slots: 9 }));
  expect(wide).toMatchObject({ kind: 'rejected' });
}

/** Counts calls of a caller without a gateway key. */
async function keyless(): Promise<void> {
  const at = new Date().toISOString();
  await directoryOf(env).noteKeyless([
    { upstream: 'openai', caller: 'fp_1', calls: 2, last_at: at },
  ]);
}

/** Counts a call that was refused at the door. */
async function counted(): Promise<void> {
  const at = new Date().toISOString();
  const none = { key: null, key_kind: null, team: null, group: null, model: null };
  const sum = { count: 2, first_at: at, last_at: at, message: 'No key.', request_ids: ['one'] };
  await directoryOf(env).noteRefusals([
    { reason: 'key_missing', upstream: 'openai', ...none, ...sum },
  ]);
}

/** Lets a ticket wait in a group of its own. Nobody asks again, so that it is forgotten soon after. */
async function waiting(name: string): Promise<void> {
  await asAdmin('PUT /groups/{name}', {
    params: { name },
    body: { limits: { max_concurrency: 0 } },
  });
  await poolOf(env, name, null, null).acquire(request(name, 'waits', { sliceMs: 1 }));
}

function sampleOf({ id }: ContractOperation): ContractSample {
  const sample = SAMPLES[id];
  if (sample === undefined) throw new Error(`No sample for ${id}: every operation needs one.`);
  return sample;
}

interface ContractWays {
  readonly headers?: Record<string, string>;
  readonly query?: string;
  readonly rawBody?: string;
  readonly path?: Readonly<Record<string, string>>;
}

async function call(of: ContractOperation, ways: ContractWays = {}) {
  const sample = sampleOf(of);
  const values = ways.path ?? sample.path ?? {};
  const path = of.path.replace(/\{(\w+)\}/g, (_all, name: string) => values[name] ?? 'nobody');
  const body = ways.rawBody ?? (sample.body === undefined ? null : JSON.stringify(sample.body));
  const response = await worker.fetch(BASE + path + (ways.query ?? sample.query ?? ''), {
    method: of.method,
    headers: ways.headers ?? TOKEN,
    ...(body === null ? {} : { body }),
  });
  const type = response.headers.get('content-type')?.split(';')[0] ?? '';
  const text = await textOf(response, type);
  expectDescribed(of, response.status, type, text);
  return { status: response.status, headers: response.headers, text };
}

/** The whole body, or what a stream that never ends begins with. */
async function textOf(response: Response, type: string): Promise<string> {
  if (type !== 'text/event-stream') return response.text();
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return new TextDecoder().decode(first?.value);
}

/** The heart of it: status, media type and body are those of the document. */
function expectDescribed(
  { id, operation }: ContractOperation,
  status: number,
  type: string,
  text: string,
) {
  const described = operation.responses[String(status)];
  expect(described, `${id} answers ${status}, which is not in the document: ${text}`).toBeDefined();
  const schema = described?.content[type]?.schema;
  expect(schema, `${id} ${status} answers ${type}`).toBeDefined();
  expectValid(schema, type.includes('json') ? JSON.parse(text) : text, `${id} ${status}`);
}

function expectValid(schema: unknown, value: unknown, what: string) {
  // References lead into the document, so that its components stand beside the schema.
  const whole = { ...(schema as Schema), components: document.components } as Schema;
  const { valid, errors } = new Validator(whole, '2020-12', false).validate(value);
  expect(valid, `${what}: ${JSON.stringify(errors.slice(-3))}\n${JSON.stringify(value)}`).toBe(
    true,
  );
}

beforeEach(async () => {
  const { version = 0, config } = (await directoryOf(env).snapshot(null)) ?? {};
  if (config === undefined) return;
  const empty = { ...config, groups: [], upstreams: [], keys: [], admin_keys: [] };
  await directoryOf(env).replace(empty, version, 'test', 'reset');
});

describe('the document', () => {
  it('is served as it is made, and as 3.1', async () => {
    const response = await worker.fetch(`${BASE}/openapi.json`);
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(document)));
    expect(document.openapi).toBe('3.1.0');
  });

  it('has every route of the Worker, and no other', () => {
    const served = createAdminRoutes()
      .routes.filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    const described = operations.map(({ method, path }) => `${method} ${path}`);
    expect(served.toSorted()).toEqual(described.toSorted());
  });

  it('refers to nothing that it does not have', () => {
    const refs = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g);
    for (const [, name = ''] of refs) expect(document.components.schemas).toHaveProperty(name);
    const named = JSON.stringify(document).match(/"\$ref":"([^"]+)"/g) ?? [];
    expect(named.every((ref) => ref.includes('#/components/schemas/'))).toBe(true);
    expect(named.length).toBeGreaterThan(20);
  });

  it('has samples of nothing else', () => {
    expect(Object.keys(SAMPLES).toSorted()).toEqual(operations.map(({ id }) => id).toSorted());
  });
});

describe('every operation', () => {
  it.each(operations)('answers what is described: $id', async (of) => {
    const { before, status = 200, body } = sampleOf(of);
    await before?.();
    const schema = of.operation.requestBody?.content['application/json']?.schema;
    if (body !== undefined) expectValid(schema, body, `the body of ${of.id}`);
    const answer = await call(of);
    expect({ ...answer, headers: null }).toMatchObject({ status });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const described = of.operation.responses[String(status)];
    expect(answer.headers.get('etag') !== null).toBe(described?.headers !== undefined);
  });

  it.each(operations.filter(({ operation }) => operation.security.length > 0))(
    'is closed without a token: $id',
    async (of) => {
      expect((await call(of, { headers: {} })).status).toBe(401);
    },
  );

  it.each(operations.filter(({ operation }) => '404' in operation.responses))(
    'says that there is nothing of that name: $id',
    async (of) => {
      const { path = {} } = sampleOf(of);
      const nobody = Object.fromEntries(Object.keys(path).map((name) => [name, 'nobody']));
      expect((await call(of, { path: nobody })).status).toBe(404);
    },
  );

  it.each(
    operations.filter(({ operation }) => operation.parameters.some((each) => each.in === 'path')),
  )('describes what it says to a path that it cannot take: $id', async (of) => {
    const { path = {} } = sampleOf(of);
    const tooLong = Object.fromEntries(Object.keys(path).map((name) => [name, 'x'.repeat(301)]));
    expect(of.operation.responses).toHaveProperty('422');
    expect((await call(of, { path: tooLong })).status).toBe(422);
  });

  it.each(operations.filter(({ operation }) => '412' in operation.responses))(
    'refuses a change on top of another one: $id',
    async (of) => {
      await sampleOf(of).before?.();
      const headers = { ...TOKEN, 'if-match': '"999999"' };
      expect((await call(of, { headers })).status).toBe(412);
      expect(of.operation.parameters.map(({ name }) => name)).toContain('If-Match');
    },
  );

  it.each(operations.filter(({ operation }) => operation.requestBody !== undefined))(
    'refuses a body that it cannot read, and one with a field that nobody knows: $id',
    async (of) => {
      await sampleOf(of).before?.();
      expect((await call(of, { rawBody: '{"a": ' })).status).toBe(400);
      const unknown = await call(of, { rawBody: '{"nonsense": 1}' });
      expect(unknown.status).toBe(422);
      expect(JSON.parse(unknown.text).errors.map(({ path }: { path: string }) => path)).toContain(
        'nonsense',
      );
    },
  );

  it.each(
    operations.filter(({ operation }) =>
      operation.parameters.some(({ name, in: place }) => name === 'limit' && place === 'query'),
    ),
  )('refuses a page that it cannot give: $id', async (of) => {
    for (const query of ['?limit=0', '?limit=1001', '?limit=ten', '?limit=1&page=2']) {
      expect({ query, status: (await call(of, { query })).status }).toEqual({ query, status: 422 });
    }
  });
});
