// What takes no slot belongs to the whole account of the operator's key: it is closed to callers unless listed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure } from '../support/worker.ts';

const KEYS = {
  plain: 'hg_plain-key-0815',
  held: 'hg_held-key-0815',
  files: 'hg_files-key-0815',
  all: 'hg_all-key-0815',
} as const;

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('operator-routes', { echo: true });
  const base_url = strict.url;
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const hashes = await Promise.all(
    Object.entries(KEYS).map(async ([id, key]) => {
      const { json } = await admin('POST', '/fingerprint', { key });
      return { id, hash: json.hash as string };
    }),
  );
  const rights: Record<string, object> = {
    held: { groups: ['cheap'], allow: ['responses'] },
    files: { allow: ['files', 'batches'] },
    all: { allow: ['*'] },
  };
  const config: ConfigInput = {
    upstreams: [
      { id: 'shut', base_url, auth },
      { id: 'claude', base_url, auth, dialect: 'anthropic' },
      { id: 'gemini', base_url, auth, dialect: 'gemini' },
      { id: 'opaque', base_url, auth, dialect: 'opaque' },
      { id: 'tuned', base_url, auth, allow: ['fine_tuning'] },
      { id: 'own', base_url },
    ],
    groups: [
      { name: 'cheap', match: { upstreams: ['shut'], models: ['m'] } },
      { name: 'dear', match: { upstreams: ['shut'], models: ['gpt-4o'] } },
    ],
    keys: hashes.map((key) => ({ ...key, ...rights[key.id] })),
  };
  await configure(config);
});

afterAll(nothingLeaks);

interface OperatorRoutesSeen {
  readonly status: number;
  readonly reason: string | null;
  readonly text: string;
  readonly lease: boolean;
}

async function ask(
  key: keyof typeof KEYS,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<OperatorRoutesSeen> {
  const body = method === 'POST' || method === 'PUT' ? { body: '{"model":"m"}' } : {};
  const own = { 'headgate-key': KEYS[key], 'content-type': 'application/json', ...headers };
  const response = await call(path, { method, headers: own, ...body });
  return {
    status: response.status,
    reason: response.headers.get('headgate-reason'),
    lease: response.headers.has('headgate-lease'),
    text: await response.text(),
  };
}

describe("with the operator's key", () => {
  it.each([
    ['plain', 'GET', '/shut/v1/models'],
    ['plain', 'GET', '/shut/v1/models/gpt-4o'],
    ['held', 'GET', '/shut/v1/models'],
    ['plain', 'POST', '/shut/v1/responses/input_tokens'],
    ['plain', 'POST', '/claude/v1/messages/count_tokens'],
    ['plain', 'POST', '/gemini/v1beta/models/gemini-2.5-flash:countTokens'],
    ['files', 'POST', '/shut/v1/files'],
    ['files', 'DELETE', '/shut/v1/files/file-1'],
    ['files', 'POST', '/claude/v1/messages/batches'],
    ['held', 'GET', '/shut/v1/responses/resp_1'],
    ['plain', 'POST', '/tuned/v1/fine_tuning/jobs'],
    ['all', 'GET', '/opaque/anything'],
    ['all', 'DELETE', '/shut/v1/models/ft:m'],
  ] as const)('%s may %s %s, without a slot', async (key, method, path) => {
    expect(await ask(key, method, path)).toMatchObject({ status: 200, reason: null, lease: false });
  });

  it.each([
    ['plain', 'POST', '/shut/v1/batches', 'allow: [batches]` of gateway key `plain`'],
    ['held', 'POST', '/shut/v1/batches', 'allow: [batches]'],
    ['plain', 'POST', '/shut/v1/fine_tuning/jobs', 'allow: [fine_tuning]'],
    ['plain', 'DELETE', '/shut/v1/files/file-1', 'allow: [files]'],
    ['plain', 'GET', '/shut/v1/responses/resp_1', 'allow: [responses]'],
    ['plain', 'GET', '/shut/v1/chat/completions', 'allow: [chat]'],
    ['plain', 'GET', '/v1/files', 'allow: [files]'],
    ['files', 'POST', '/shut/v1/batches/..;/vector_stores', 'unknown to Headgate'],
    ['plain', 'GET', '/opaque/anything', 'allow: [opaque]'],
    ['all', 'GET', '/shut/v1/organization/admin_api_keys', 'administers the account'],
    ['all', 'POST', '/shut/v1/organization/invites', 'administers the account'],
    ['all', 'POST', '/opaque/v1/organization/invites', 'administers the account'],
    ['all', 'GET', '/shut/v1/organization/usage/completions', 'administers the account'],
    [
      'all',
      'GET',
      '/shut/v1/models/%c0%ae%c0%ae/organization%c0%afusers',
      'administers the account',
    ],
    [
      'all',
      'GET',
      '/shut/v1/models/x%c0%af..%c0%af..%c0%aforganization',
      'administers the account',
    ],
    ['plain', 'GET', '/shut/v1/models/x%ef%bc%8f..%ef%bc%8f..%ef%bc%8ffiles', 'allow: [files]'],
    ['plain', 'GET', '/shut/v1/models/x%u002f..%u002f..%u002ffiles', 'allow: [files]'],
    ['plain', 'GET', '/shut/v1/models/%ef%bc%8e%ef%bc%8e/ﬁles', 'allow: [files]'],
    ['all', 'POST', '/shut/orgs/theirs/inference/chat/completions', 'administers the account'],
    ['all', 'POST', '/shut/v1/organization/users;/chat/completions', 'administers the account'],
    ['all', 'POST', '/shut/v1/no/such/route', 'unknown to Headgate'],
    ['plain', 'GET', '/shut/v1/no/such/route', 'unknown to Headgate'],
    ['all', 'POST', '/shut/v1/realtime/client_secrets', 'realtime session'],
    ['all', 'POST', '/shut/v1/realtime/calls', 'realtime session'],
    ['all', 'POST', '/shut/v1/chat/completions;x', 'unknown to Headgate'],
  ] as const)('%s may not %s %s: %s', async (key, method, path, words) => {
    const before = (await strict.stats()).total;
    const unified: Record<string, string> = path.startsWith('/v1/')
      ? { 'headgate-upstream': 'shut' }
      : {};
    const seen = await ask(key, method, path, unified);
    expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden' });
    expect(seen.text).toContain(words);
    expect((await strict.stats()).total).toBe(before);
  });

  it('a request that means another method than its own is refused', async () => {
    const headers = { 'x-http-method-override': 'DELETE' };
    const seen = await ask('plain', 'GET', '/gemini/v1beta/models/m', headers);
    expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden' });
  });

  it.each([
    '/shut/v1/conversations',
    '/shut/v1/conversations/conv_1/restart',
    '/shut/v1/agents/completions',
    '/shut/v1/generate',
    '/shut/v1/threads/runs',
    '/shut/v1/threads/thread_1/runs',
    '/shut/v1/threads/thread_1/runs/run_1/submit_tool_outputs',
    '/opaque/anything',
  ])('POST %s takes a slot', async (path) => {
    expect(await ask('plain', 'POST', path)).toMatchObject({ status: 200, lease: true });
  });

  it('a key that lists groups takes slots of these alone, whatever it may do besides', async () => {
    expect(await ask('held', 'POST', '/shut/v1/chat/completions')).toMatchObject({ status: 200 });
    const elsewhere = await ask('held', 'GET', '/claude/v1/responses/resp_1');
    expect(elsewhere).toMatchObject({ status: 403, reason: 'key_forbidden' });
    expect(elsewhere.text).toContain('may not use upstream `claude`');
  });
});

describe("with the caller's own key", () => {
  it.each([
    ['POST', '/own/v1/batches'],
    ['GET', '/own/v1/organization/admin_api_keys'],
    ['POST', '/own/v1/realtime/client_secrets'],
    ['POST', '/own/v1/no/such/route'],
    ['POST', '/shut/v1/files'],
    ['GET', '/opaque/anything'],
  ])('%s %s passes as it did', async (method, path) => {
    const seen = await ask('plain', method, path, { authorization: 'Bearer sk-mine' });
    expect(seen).toMatchObject({ status: 200, lease: false });
  });

  it('a path with a parameter takes its slot all the same', async () => {
    const own = { authorization: 'Bearer sk-mine' };
    for (const path of ['/own/v1/chat/completions;x', '/own/v1/batches/..;/chat/completions']) {
      expect(await ask('plain', 'POST', path, own)).toMatchObject({ status: 200, lease: true });
    }
  });
});
