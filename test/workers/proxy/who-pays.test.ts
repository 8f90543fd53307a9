// With the operator's key, only the operator chooses the account that pays and steers a gateway behind the upstream.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure } from '../support/worker.ts';

const KEY = 'hg_who-pays-0815';
const OWN = { authorization: 'Bearer sk-mine' };

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('who-pays', { echo: true });
  const { json } = await admin('POST', '/fingerprint', { key: KEY });
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  // The same server under another name counts as another host.
  const elsewhere = strict.url.replace('127.0.0.1', 'localhost');
  const groups: ConfigInput['groups'] = [
    { name: 'pool', match: { upstreams: ['pool'] }, members: [{ name: 'a', upstream: 'far' }] },
    { name: 'near', match: { upstreams: ['near'] }, members: [{ name: 'a', upstream: 'ours' }] },
    {
      name: 'full',
      match: { upstreams: ['full'] },
      limits: { max_concurrency: 0 },
      on_saturated: { spill_to: ['far'], after_ms: 0 },
    },
    { name: 'wide', match: { upstreams: ['wide'] }, members: [{ name: 'a', upstream: 'listing' }] },
  ];
  await configure({
    upstreams: [
      { id: 'ours', base_url: strict.url, auth },
      { id: 'keyless', base_url: strict.url, auth: 'none' },
      {
        id: 'listed',
        base_url: strict.url,
        auth,
        request_headers: ['openai-beta', 'X-Team-*', 'openai-project'],
      },
      { id: 'pool', base_url: strict.url },
      { id: 'near', base_url: strict.url },
      { id: 'full', base_url: strict.url, auth },
      { id: 'wide', base_url: strict.url },
      { id: 'far', base_url: elsewhere, auth },
      { id: 'listing', base_url: elsewhere, auth, request_headers: ['x-kept'] },
    ],
    groups,
    keys: [{ id: 'team', hash: json.hash as string, allow: ['files'] }],
  });
});

afterAll(nothingLeaks);

interface WhoPaysEcho {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: string;
}

async function ask(path: string, headers: Record<string, string>, method = 'POST') {
  const body = method === 'POST' ? { body: '{"model":"m"}' } : {};
  const typed = { 'headgate-key': KEY, 'content-type': 'application/json', ...headers };
  const answer = await call(path, { method, headers: typed, ...body });
  expect(answer.status).toBe(200);
  const echo = await answer.json<WhoPaysEcho>();
  return { echo, dropped: answer.headers.get('headgate-dropped') };
}

const SELECTORS = [
  'OpenAI-Organization',
  'OpenAI-Project',
  'openai_organization',
  'OpenAI.Organization',
  'OpenAI~Project',
  'X-Original-URL',
  'x-rewrite-url',
  'x-api-base',
  'anthropic-workspace-id',
  'X-Goog-User-Project',
  'X-HF-Bill-To',
  'ChatGPT-Account-ID',
  'X-DashScope-WorkSpace',
  'appid',
  'X-Project-Id',
  'X-Org-Id',
  'X-Some-Organisation',
  'x-account',
  'Ocp-Apim-Subscription-Key',
  'Helicone-Target-Url',
  'Helicone-Fallbacks',
  'x-portkey-config',
  'x-litellm-tags',
  'cf-aig-byok-alias',
  'cf-aig-custom-cost',
  'X-OpenRouter-Categories',
  'x-bf-vk',
  'x-ai-eg-model',
  'x-gateway-destination-endpoint',
  'X-Amzn-SageMaker-Target-Model',
  'x-higress-llm-model',
  'x-smg-target-worker',
  'routing-strategy',
  'api_base',
  'X-Original-Host',
  'x-organization-uuid',
  'azureml-model-deployment',
  'X-Vertex-AI-LLM-Request-Type',
];

const CHAT = '/v1/chat/completions';

describe.each(['/ours', '/keyless', '/near', '/pool', '/full'])('at %s', (at) => {
  it.each(SELECTORS)('%s is dropped, and the answer names it', async (name) => {
    const { echo, dropped } = await ask(`${at}${CHAT}`, { [name]: 'theirs', 'openai-beta': 'b' });
    const lower = name.toLowerCase();
    expect(Object.keys(echo.headers)).not.toContain(lower);
    expect(echo.headers['openai-beta']).toBe('b');
    expect(dropped).toBe(lower);
  });

  it('parameters are dropped too', async () => {
    const query = '?userProject=a&%24userProject=b&GroupId=7&organization_id=o&project[]=p&alt=sse';
    const { echo, dropped } = await ask(`${at}${CHAT}${query}`, {});
    expect(echo.query.replace(/^\?/, '')).toBe('alt=sse');
    const names = '?userProject, ?$userProject, ?GroupId, ?organization_id, ?project%5B%5D';
    expect(dropped).toBe(names);
  });

  it('parameters after a semicolon are dropped, because some servers split there', async () => {
    const query = '?a=1;organization=x&b;user_project=y&project=z;c&alt=sse';
    const { echo, dropped } = await ask(`${at}${CHAT}${query}`, {});
    expect(echo.query.replace(/^\?/, '')).toBe('alt=sse');
    expect(dropped).toBe('?organization, ?b;user_project, ?user_project, ?project');
  });

  it('parameters that steer a gateway are dropped', async () => {
    const query = '?api_base=https://other.test&OpenAI-Organization=o&user%00Project=p&alt=sse';
    const { echo, dropped } = await ask(`${at}${CHAT}${query}`, {});
    expect(echo.query.replace(/^\?/, '')).toBe('alt=sse');
    expect(dropped).toBe('?api_base, ?OpenAI-Organization, ?user%00Project');
  });

  it('cookies are dropped too', async () => {
    const { echo, dropped } = await ask(`${at}${CHAT}`, { cookie: 'organization=o; a=b' });
    expect(echo.headers['cookie'] ?? '').not.toContain('organization');
    expect(dropped).toBe('cookie');
  });
});

it('selectors are dropped from a call without a slot too', async () => {
  const { echo, dropped } = await ask('/ours/v1/files', { 'openai-organization': 'o' }, 'GET');
  expect(Object.keys(echo.headers)).not.toContain('openai-organization');
  expect(dropped).toBe('openai-organization');
});

it("selectors are forwarded with the caller's own key, and not named", async () => {
  for (const name of SELECTORS.filter((each) => !each.startsWith('Ocp'))) {
    const { echo, dropped } = await ask(`/ours${CHAT}?userProject=a`, { ...OWN, [name]: 'mine' });
    expect(echo.headers[name.toLowerCase()]).toBe('mine');
    expect(echo.query).toContain('userProject=a');
    expect(dropped).toBeNull();
  }
});

it('an operator can list the forwarded headers, selectors included', async () => {
  const { echo, dropped } = await ask(`/listed${CHAT}`, {
    'openai-beta': 'b',
    'x-team-name': 't',
    'x-other': 'o',
    'openai-project': 'p',
    'openai-organization': 'o',
    cookie: 'a=b',
    accept: 'application/json',
    'user-agent': 'client/1',
  });
  const names = Object.keys(echo.headers);
  expect(echo.headers).toMatchObject({
    'openai-beta': 'b',
    'x-team-name': 't',
    'openai-project': 'p',
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': 'client/1',
    authorization: expect.stringMatching(/^Bearer /) as string,
  });
  expect(names.filter((name) => /^(?:x-other|cookie|openai-organization)$/.test(name))).toEqual([]);
  expect(dropped).toBe('openai-organization');
  // The caller's own key is forwarded with all its headers.
  const own = await ask(`/listed${CHAT}`, { ...OWN, 'x-other': 'o' });
  expect(own.echo.headers['x-other']).toBe('o');
});

const MAYBE_SECRET = {
  'x-custom-pass': 's',
  'x-session': 's',
  'x-kept': 'k',
  cookie: 'a=b',
  referer: 'https://intranet.test/doc?token=1',
  'idempotency-key': 'i',
  'x-stainless-lang': 'js',
};

it.each(['/pool', '/full'])('only well-known headers reach another host by %s', async (at) => {
  const { echo } = await ask(`${at}${CHAT}`, MAYBE_SECRET);
  const names = Object.keys(echo.headers);
  for (const gone of ['x-custom-pass', 'x-session', 'x-kept', 'cookie', 'referer']) {
    expect(names).not.toContain(gone);
  }
  expect(echo.headers).toMatchObject({ 'idempotency-key': 'i', 'x-stainless-lang': 'js' });
});

it('the upstream at another host may list its headers', async () => {
  const { echo } = await ask(`/wide${CHAT}`, MAYBE_SECRET);
  expect(echo.headers).toMatchObject({ 'x-kept': 'k' });
  expect(Object.keys(echo.headers)).not.toContain('x-session');
});

it("a member at the same host gets the caller's headers without credentials", async () => {
  const { echo } = await ask(`/near${CHAT}`, { ...MAYBE_SECRET, 'x-session-token': 's' });
  expect(echo.headers).toMatchObject({ 'x-custom-pass': 's', 'x-session': 's' });
  expect(Object.keys(echo.headers)).not.toContain('x-session-token');
});
