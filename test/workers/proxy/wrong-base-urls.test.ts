// A wrong base URL is answered with the right one, in the dialect of the caller; a path that its upstream may have goes out.
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { admin, call, configure } from '../support/worker.ts';

const AT = 'https://headgate.test';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('wrong-base-urls');
  await configure(config());
});

function config(): ConfigInput {
  return {
    upstreams: [
      { id: 'house', base_url: strict.url, openai_at: '/v1' },
      { id: 'mounted', base_url: `${strict.url}/api/v3` },
      { id: 'pathed', base_url: `${strict.url}/api` },
      { id: 'openai', base_url: strict.url, openai_at: '/v1' },
      { id: 'completions', base_url: strict.url, openai_at: '/v1' },
      { id: 'azure', base_url: strict.url, dialect: 'azure' },
      { id: 'gemini', base_url: strict.url },
      { id: 'ollama', base_url: strict.url, dialect: 'ollama' },
      { id: 'anthropic', base_url: strict.url },
    ],
  };
}

afterAll(nothingLeaks);

const HEADERS = { authorization: 'Bearer sk-mine' };

async function ask(path: string, method = 'POST', headers: Record<string, string> = {}) {
  const isPost = method === 'POST';
  const answer = await call(path, {
    method,
    headers: { ...HEADERS, 'content-type': 'application/json', ...headers },
    ...(isPost && { body: '{"model":"m"}' }),
  });
  const text = await answer.text();
  const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {};
  return { status: answer.status, reason: answer.headers.get('headgate-reason'), text, json };
}

describe.each<[string, string, 'openai' | 'anthropic' | 'gemini', string]>([
  ['POST', '/chat/completions', 'openai', `Set the base URL to \`${AT}/openai/v1\``],
  ['POST', '/responses', 'openai', `or to \`${AT}/v1\` for models of all upstreams`],
  ['POST', '//embeddings/', 'openai', `\`${AT}/openai/v1\``],
  ['GET', '/models', 'openai', `\`${AT}/openai/v1\``],
  ['POST', '/messages', 'anthropic', `\`${AT}/anthropic/v1\``],
  ['POST', '/models/m:generateContent', 'gemini', `\`${AT}/gemini/v1beta\``],
  ['POST', '/v1beta/models/m:generateContent', 'gemini', `\`${AT}/gemini\``],
  ['POST', '/v1/models/m:generateContent', 'gemini', `\`${AT}/gemini\``],
  ['POST', '/v1/v1beta/models/m:generateContent', 'gemini', `\`${AT}/gemini\``],
  ['POST', '/api/v1/chat/completions', 'openai', `\`${AT}/v1\``],
  ['POST', '/api/chat/completions', 'openai', `\`${AT}/openai/v1\``],
  ['POST', '/opnai/v1/chat/completions', 'openai', `\`${AT}/openai/v1\``],
  ['POST', '/opnai/chat/completions', 'openai', 'Did you mean `openai`?'],
  [
    'POST',
    '/huose/v1/chat/completions',
    'openai',
    `Did you mean \`house\`? Set the base URL to \`${AT}/house/v1\``,
  ],
  ['POST', '/mountd/chat/completions', 'openai', `\`${AT}/mounted\``],
  ['POST', '/antropic/v1/messages', 'anthropic', `Set the base URL to \`${AT}/anthropic\` (`],
  ['POST', '/antropic/messages', 'anthropic', `Set the base URL to \`${AT}/anthropic/v1\``],
  ['POST', '/gemni/v1beta/models/m:streamGenerateContent', 'gemini', `\`${AT}/gemini\``],
  ['GET', '/opnai', 'openai', `Did you mean \`openai\`?`],
  ['POST', '/v1', 'openai', `\`${AT}/v1\``],
  ['POST', '/v1/', 'openai', `\`${AT}/v1\``],
  ['POST', '/v1/house/chat/completions', 'openai', `Set the base URL to \`${AT}/house/v1\``],
  ['POST', '/v1/anthropic/v1/messages', 'anthropic', `Set the base URL to \`${AT}/anthropic\``],
  ['POST', '/v1/chat/completions/chat/completions', 'openai', `\`${AT}/v1\``],
  ['POST', '/v1/chat/completions/responses', 'openai', `\`${AT}/v1\``],
  ['GET', '/openai/v1/chat/completions/models', 'openai', `\`${AT}/openai/v1\``],
  ['POST', '/v1/messages/v1/messages', 'anthropic', `Set the base URL to \`${AT}\``],
  ['POST', '/v1/messages/messages', 'anthropic', `Set the base URL to \`${AT}/v1\``],
  ['POST', '/anthropic/v1/messages/v1/messages', 'anthropic', `\`${AT}/anthropic\``],
])('%s %s', (method, path, dialect, expected) => {
  it('is answered with the right base URL', async () => {
    const seen = await ask(path, method);
    expect(seen.status).toBe(404);
    expect(['upstream_unknown', 'model_unknown']).toContain(seen.reason);
    const { error } = seen.json as { error?: { message?: string; status?: string; code?: string } };
    expect(error?.message).toContain(expected);
    expect(seen.json['type']).toBe(dialect === 'anthropic' ? 'error' : undefined);
    expect(error?.status).toBe(dialect === 'gemini' ? 'NOT_FOUND' : undefined);
  });
});

it.each([
  [{}, { error: { code: 'method_unknown' } }, '/openai/v1'],
  [{ 'anthropic-version': '2023-06-01' }, { type: 'error' }, '/anthropic'],
  [{ 'x-goog-api-key': 'k' }, { error: { status: 'INVALID_ARGUMENT' } }, '/gemini'],
])('POST / says what to set, in the dialect of the caller', async (headers, body, base) => {
  const seen = await ask('/', 'POST', headers as Record<string, string>);
  expect(seen.status).toBe(405);
  expect(seen.json).toMatchObject(body);
  expect(seen.text).toContain(`Set the base URL to \`${AT}${base}\``);
});

it('the address is the one that the caller used', async () => {
  const { text } = await ask('/chat/completions', 'POST', { 'x-forwarded-proto': 'http' });
  expect(text).toContain('`http://headgate.test/openai/v1`');
});

it('a model or a header that nearly names an upstream gets its name', async () => {
  const named = await ask('/v1/chat/completions', 'POST', { 'headgate-upstream': 'huose' });
  expect(named.text).toContain('Did you mean the upstream `house`?');
});

describe('a path that its upstream may have goes out', () => {
  it.each([
    '/house/chat/completions',
    '/house/api/v1/chat/completions',
    '/mounted/v1/chat/completions',
    '/openai/chat/completions',
    '/openai/deployments/d/chat/completions',
    '/completions/v1/completions',
    '/completions/completions',
  ])('%s', async (path) => {
    const { total } = await strict.stats();
    expect(await ask(path)).toMatchObject({ status: 200, reason: null });
    expect((await strict.stats()).total).toBe(total + 1);
  });
});

describe('where the upstream answers 404', () => {
  beforeAll(() => strict.configure({ status: 404 }));
  afterAll(() => strict.configure({ status: null }));

  it.each([
    ['/house/chat/completions', `${AT}/house/v1`],
    ['/house/api/v1/chat/completions', `${AT}/house/v1`],
    ['/mounted/v1/chat/completions', `${AT}/mounted`],
    ['/openai/chat/completions', `${AT}/openai/v1`],
    ['/openai/v1/messages', `${AT}/anthropic`],
    ['/openai/messages', `${AT}/anthropic/v1`],
    ['/openai', `${AT}/openai/v1`],
    ['/openai/', `${AT}/openai/v1`],
    ['/openai/v1', `${AT}/openai/v1`],
    ['/openai/v1/', `${AT}/openai/v1`],
    ['/anthropic/v1/', `\`${AT}/anthropic\` or \`${AT}/anthropic/v1\`,`],
    ['/gemini', `\`${AT}/gemini\` or`],
    ['/gemini/v1beta/', `\`${AT}/gemini\` or`],
    ['/ollama/api', `\`${AT}/ollama\` or \`${AT}/ollama/v1\`,`],
    ['/azure/openai/', `\`${AT}/azure\` or`],
    ['/azure/openai/openai/deployments/d/chat/completions', `URL to \`${AT}/azure\`.`],
    ['/azure/deployments/d/chat/completions', `URL to \`${AT}/azure/openai\`.`],
    ['/openai/deployments/d/chat/completions', `URL to \`${AT}/azure\`.`],
    ['/openai/model/m/converse', 'dialect: bedrock'],
  ])('%s is answered with the right base URL', async (path, expected) => {
    const seen = await ask(path);
    expect(seen).toMatchObject({ status: 404, reason: 'upstream_unknown' });
    expect(seen.text).toContain(expected);
    expect(seen.text).toContain('answered 404');
  });

  it('an upstream that is named behind /v1 goes before it', async () => {
    const headers = { 'headgate-upstream': 'house' };
    const seen = await ask('/v1/house/v1/chat/completions', 'POST', headers);
    expect(seen).toMatchObject({ status: 404, reason: 'upstream_unknown' });
    expect(seen.text).toContain(`Set the base URL to \`${AT}/house/v1\``);
    const unnamed = await ask('/v1/none/v1/chat/completions', 'POST', headers);
    expect(unnamed).toMatchObject({ status: 404, reason: null });
  });

  it.each([
    '/house/v1/chat/completions',
    '/pathed/v1/chat/completions',
    '/house/v1/files/file_1',
    '/house/together/v1/chat/completions',
    '/mounted/chat/completions',
    '/openai/v1/models/none',
    '/anthropic/v1/complete',
    '/azure/openai/deployments/d/chat/completions',
  ])('the answer to %s passes as it came', async (path) => {
    expect(await ask(path)).toMatchObject({ status: 404, reason: null });
  });
});

describe('an answer about something that the call names passes as it came', () => {
  afterEach(() => vi.restoreAllMocks());

  const json = { 'content-type': 'application/json' };
  const answering = (body: string, headers: HeadersInit = json): void => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
      Promise.resolve(new Response(body, { status: 404, headers })),
    );
  };

  it.each([
    '{"error":{"message":"The model `m` does not exist or you do not have access to it."}}',
    '{"error":{"code":"model_not_found","message":"Not found (POST /chat/completions)"}}',
    '{"error":{"code":"DeploymentNotFound","message":"The resource does not exist."}}',
    '{"error":"llm m is unknown"}',
    '{"errors":["Unknown model m"]}',
    '{"description":"no such model"}',
    '{"error":{"message":"No endpoints found for m.","code":404}}',
    '{"error":{"message":"No such File object: file-1"}}',
    '{"error":{"message":"Previous response with id resp_1 not found."}}',
    '{"code":"1211","message":"模型不存在"}',
    'model m not found',
  ])('%s', async (body) => {
    answering(body);
    expect(await ask('/house/chat/completions')).toMatchObject({
      status: 404,
      reason: null,
      text: body,
    });
  });

  it.each([
    '',
    '{"detail":"Not Found"}',
    '{"error":{"message":"Invalid URL (POST /models/chat/completions)"}}',
    '404 page not found',
    '<html><body>No page of this model</body></html>',
  ])('another one names the base URL: %s', async (body) => {
    answering(body);
    const { reason, text } = await ask('/house/chat/completions');
    expect(reason).toBe('upstream_unknown');
    expect(text).toContain(`${AT}/house/v1`);
  });
});

describe('to a key that may not use an upstream', () => {
  beforeAll(async () => {
    const { hash } = (await admin('POST', '/fingerprint', { key: 'hg_narrow' })).json;
    const keys = [{ id: 'narrow', hash, groups: ['house'] }];
    const groups = ['house', 'mounted'].map((id) => ({ name: id, match: { upstreams: [id] } }));
    await configure({ ...config(), groups, keys });
  });
  afterAll(() => configure(config()));

  it.each([
    ['/mountd/chat/completions', {}],
    ['/mountd', {}],
    ['/mountd/files', {}],
    ['/v1/chat/completions', { 'headgate-upstream': 'mountd' }],
  ])('%s does not name it', async (path, headers) => {
    const own = { 'headgate-key': 'hg_narrow' };
    const { status, text } = await ask(path, 'POST', { ...own, ...headers });
    expect(status).toBe(404);
    expect(text).not.toContain('mounted');
    const huose = await ask('/huose/chat/completions', 'POST', own);
    expect(huose.text).toContain(`Did you mean \`house\`?`);
  });

  it('a model that several upstreams serve does not name it', async () => {
    const upstreams = config().upstreams?.map((each) => ({ ...each, models: ['m'] })) ?? [];
    const { hash } = (await admin('POST', '/fingerprint', { key: 'hg_narrow' })).json;
    const groups = [{ name: 'house', match: { upstreams: ['house'] } }];
    await configure({ upstreams, groups, keys: [{ id: 'narrow', hash, groups: ['house'] }] });
    const { reason, text } = await ask('/v1/chat/completions', 'POST', {
      'headgate-key': 'hg_narrow',
    });
    expect(reason).toBe('model_ambiguous');
    expect(text).toContain('Several upstreams serve this model: `house`. Name one');
  });
});
