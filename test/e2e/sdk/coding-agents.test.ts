// The agents are not run here, but by `npm run test:agents`. The requests that they send are replayed with the
// settings that docs/clients.md gives them, and with each kind of key; the upstream says what it got.
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { CALLER_KEY, QUESTION } from './cases/sdk-case.ts';

const GATEWAY_KEY = 'hg_for-the-tests-of-agents';
const OPERATOR_KEY = 'sk-of-the-operator';

let open: SdkStage;
let keyed: SdkStage;
beforeAll(async () => {
  const hash = `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}`;
  [open, keyed] = await Promise.all([
    startSdkStage(),
    startSdkStage({
      upstreams: (strict) => [
        ...['openai', 'anthropic', 'gemini'].map((id) => ({
          id,
          base_url: strict.url,
          auth: { secret: 'UPSTREAM_KEY' },
        })),
        { id: 'chatgpt', base_url: `${strict.url}/backend-api/codex` },
      ],
      groups: [
        {
          name: 'codex',
          match: { models: ['gpt-5-codex'] },
          limits: { max_concurrency: 4, tpm: 1_000_000_000, itpm: 1_000_000_000 },
        },
      ],
      env: { UPSTREAM_KEY: OPERATOR_KEY },
      keys: [{ id: 'tests', hash }],
    }),
  ]);
});
afterAll(() => Promise.all([open.stop(), keyed.stop()]));

/** A recipe with this Headgate's address and the tests' keys. */
async function recipe(name: string, headgate: string): Promise<string> {
  const text = await readFile(new URL(`./recipes/${name}`, import.meta.url), 'utf8');
  return text
    .replaceAll('https://headgate.example.workers.dev', headgate)
    .replaceAll('sk-ant-your-provider-key', CALLER_KEY)
    .replaceAll('your-provider-or-gateway-key', GATEWAY_KEY)
    .replaceAll('hg_your-gateway-key', GATEWAY_KEY);
}

/** Answer of the strict upstream to a request that it is asked to echo. */
interface CodingAgentsEcho {
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly sha256: string;
}

interface Replay {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

async function replay({ url, headers, body }: Replay, extra = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers, ...extra },
    body: JSON.stringify(body),
  });
}

/** Replays a request and compares what arrived with what was sent, but for the keys. */
async function expectArrival(request: Replay, path: string): Promise<CodingAgentsEcho['headers']> {
  const response = await replay(request, { 'x-strict-echo': '1' });
  expect(response.status).toBe(200);
  const echo = (await response.json()) as CodingAgentsEcho;
  expect(`${echo.path}${echo.query === '' ? '' : '?'}${echo.query}`).toBe(path);
  expect(echo.sha256).toBe(createHash('sha256').update(JSON.stringify(request.body)).digest('hex'));
  for (const [name, value] of Object.entries(request.headers)) {
    if (['authorization', 'x-api-key', 'x-goog-api-key', 'headgate-key'].includes(name)) continue;
    expect(echo.headers[name]).toBe(value);
  }
  expect(JSON.stringify(echo)).not.toContain(GATEWAY_KEY);
  return echo.headers;
}

/** The events of an SSE response, by their names. */
async function eventNames(response: Response): Promise<(string | undefined)[]> {
  const text = await response.text();
  return [...text.matchAll(/^event: (.+)$/gm)].map((match) => match[1]);
}

/** The request that Claude Code sends with the variables of a shell recipe. */
async function claudeCode(name: string, headgate: string): Promise<Replay> {
  const lines = (await recipe(name, headgate)).matchAll(/^export (\w+)="(.*)"$/gm);
  const env = Object.fromEntries([...lines].map(([, key, value]) => [key, value ?? '']));
  const custom = (env['ANTHROPIC_CUSTOM_HEADERS'] ?? '').split('\n').filter(Boolean);
  const token = env['ANTHROPIC_AUTH_TOKEN'];
  const key = env['ANTHROPIC_API_KEY'];
  return {
    url: `${env['ANTHROPIC_BASE_URL'] ?? ''}/v1/messages?beta=true`,
    headers: {
      'user-agent': 'claude-cli/2.0.0 (external, cli)',
      'x-app': 'cli',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14',
      'x-claude-code-session-id': randomUUID(),
      'x-stainless-retry-count': '0',
      'x-stainless-timeout': '600',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(key !== undefined && { 'x-api-key': key }),
      ...Object.fromEntries(custom.map((line: string) => line.split(': ', 2))),
    },
    body: {
      model: 'claude-sonnet-4-5',
      max_tokens: 32_000,
      stream: true,
      system: [{ type: 'text', text: 'You help.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: [{ type: 'text', text: QUESTION }] }],
      metadata: { user_id: 'user_1' },
    },
  };
}

describe('Claude Code', () => {
  test.each([
    { name: 'claude-code.sh', on: () => open, key: ['x-api-key', CALLER_KEY] },
    { name: 'claude-code-both-keys.sh', on: () => keyed, key: ['x-api-key', CALLER_KEY] },
    { name: 'claude-code-gateway-key.sh', on: () => keyed, key: ['x-api-key', OPERATOR_KEY] },
  ])('$name', async ({ name, on, key: [place = '', key] }) => {
    const request = await claudeCode(name, on().url);
    const headers = await expectArrival(request, '/v1/messages?beta=true');
    expect(headers[place]).toBe(key);
    expect(headers['authorization']).toBeUndefined();

    const events = await eventNames(await replay(request));
    expect(events[0]).toBe('message_start');
    expect(events.at(-1)).toBe('message_stop');

    const counting = request.url.replace('/messages?', '/messages/count_tokens?');
    const counted = await replay({ ...request, url: counting });
    expect(await counted.json()).toEqual({ input_tokens: 11 });
    expect(on().strict.stats().uncounted).toBeGreaterThan(0);
  });

  test('the base URL without /anthropic works too: the model tells the upstream', async () => {
    const request = await claudeCode('claude-code.sh', open.url);
    const url = request.url.replace('/anthropic/', '/');
    await expectArrival({ ...request, url }, '/v1/messages?beta=true');
    const counting = url.replace('/messages?', '/messages/count_tokens?');
    expect((await replay({ ...request, url: counting })).status).toBe(200);
  });
});

/** The request that Codex sends with the `config.toml` and these variables in its environment. */
async function codex(
  headgate: string,
  env: Record<string, string>,
  name = 'codex.toml',
): Promise<Replay> {
  const text = await recipe(name, headgate);
  const baseUrl = /^base_url = "(.+)"$/m.exec(text)?.[1] ?? '';
  // Without such a variable it sends the token of its login.
  const key = env[/^env_key = "(.+)"$/m.exec(text)?.[1] ?? ''] ?? CALLER_KEY;
  const [, header = '', variable = ''] =
    /^env_http_headers = \{ "(.+)" = "(.+)" \}$/m.exec(text) ?? [];
  // Codex sends such a header only where its variable is set.
  const value = env[variable];
  return {
    url: `${baseUrl}/responses`,
    headers: {
      authorization: `Bearer ${key}`,
      accept: 'text/event-stream',
      originator: 'codex_cli_rs',
      'user-agent': 'codex_cli_rs/0.60.0 (Linux; x86_64)',
      'session-id': randomUUID(),
      'thread-id': randomUUID(),
      ...(value !== undefined && { [header]: value }),
    },
    body: {
      model: 'gpt-5-codex',
      instructions: 'You help.',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: QUESTION }] }],
      tools: [],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      reasoning: { effort: 'medium', summary: 'auto' },
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: randomUUID(),
    },
  };
}

describe('Codex', () => {
  const both = { OPENAI_API_KEY: CALLER_KEY, HEADGATE_KEY: GATEWAY_KEY };
  test.each([
    {
      with: 'a provider key',
      env: { OPENAI_API_KEY: CALLER_KEY },
      on: () => open,
      arrives: CALLER_KEY,
    },
    {
      with: 'a gateway key',
      env: { OPENAI_API_KEY: GATEWAY_KEY },
      on: () => keyed,
      arrives: OPERATOR_KEY,
    },
    { with: 'both keys', env: both, on: () => keyed, arrives: CALLER_KEY },
  ])('codex.toml with $with', async ({ env, on, arrives }) => {
    const request = await codex(on().url, env);
    const headers = await expectArrival(request, '/v1/responses');
    expect(headers['authorization']).toBe(`Bearer ${arrives}`);

    const events = await eventNames(await replay(request));
    expect(events[0]).toBe('response.created');
    expect(events.at(-1)).toBe('response.completed');
  });

  test.each([
    { route: 'in the path', base: '/chatgpt', headers: {}, path: '/backend-api/codex/responses' },
    {
      route: 'in a header',
      base: '/v1',
      headers: { 'headgate-upstream': 'chatgpt' },
      path: '/backend-api/codex/responses',
    },
  ])(
    'codex-chatgpt.toml: a body in zstd, with its upstream $route',
    async ({ base, headers, path }) => {
      const env = { HEADGATE_KEY: GATEWAY_KEY };
      const request = await codex(keyed.url, env, 'codex-chatgpt.toml');
      const body = zstdCompressSync(JSON.stringify(request.body));
      const post = async (extra: Record<string, string>): Promise<Response> =>
        fetch(request.url.replace('/chatgpt/', `${base}/`), {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'content-encoding': 'zstd',
            ...request.headers,
            ...headers,
            ...extra,
          },
          body,
        });
      const response = await post({ 'x-strict-echo': '1' });
      expect(response.status).toBe(200);
      expect(response.headers.get('headgate-groups')).toBe('codex');
      const echo = (await response.json()) as CodingAgentsEcho;
      expect(echo).toMatchObject({
        path,
        headers: { authorization: `Bearer ${CALLER_KEY}`, 'content-encoding': 'zstd' },
        sha256: createHash('sha256').update(body).digest('hex'),
      });
      expect((await eventNames(await post({}))).at(-1)).toBe('response.completed');
    },
  );
});

/** The variables that a shell recipe sets. */
async function exported(name: string): Promise<Record<string, string>> {
  const lines = (await recipe(name, keyed.url)).matchAll(/^export (\w+)="(.*)"$/gm);
  return Object.fromEntries([...lines].map(([, key = '', value = '']) => [key, value]));
}

/** Requests of agents that have one key and one kind of call. */
const SIMPLE: readonly {
  readonly recipe: string;
  readonly path: string;
  readonly keyIn: string;
  readonly request: () => Promise<Replay>;
}[] = [
  {
    recipe: 'gemini-cli.sh',
    path: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    keyIn: 'x-goog-api-key',
    async request() {
      const env = await exported('gemini-cli.sh');
      return {
        url: `${env['GOOGLE_GEMINI_BASE_URL']}/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse`,
        headers: { 'x-goog-api-key': env['GEMINI_API_KEY'] ?? '' },
        body: { contents: [{ role: 'user', parts: [{ text: QUESTION }] }] },
      };
    },
  },
  {
    recipe: 'qwen-code.sh',
    path: '/v1/chat/completions',
    keyIn: 'authorization',
    async request() {
      const env = await exported('qwen-code.sh');
      return {
        url: `${env['OPENAI_BASE_URL']}/chat/completions`,
        headers: { authorization: `Bearer ${env['OPENAI_API_KEY']}` },
        body: {
          model: env['OPENAI_MODEL'],
          messages: [{ role: 'user', content: QUESTION }],
          stream: true,
          stream_options: { include_usage: true },
        },
      };
    },
  },
  {
    recipe: 'opencode.json',
    path: '/v1/responses',
    keyIn: 'authorization',
    async request() {
      const text = await recipe('opencode.json', keyed.url);
      const { provider } = JSON.parse(text) as {
        provider: { openai: { options: { baseURL: string } } };
      };
      return {
        url: `${provider.openai.options.baseURL}/responses`,
        headers: { authorization: `Bearer ${GATEWAY_KEY}` },
        body: { model: 'gpt-4o-mini', input: QUESTION, stream: true },
      };
    },
  },
];

test.each(SIMPLE)('$recipe', async ({ path, keyIn, request }) => {
  const sent = await request();
  const headers = await expectArrival(sent, path);
  expect(headers[keyIn]).toContain(OPERATOR_KEY);
  const answer = await replay(sent);
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain('data: ');
});
