// Every recipe of docs/clients.md works through Headgate, and the page quotes it word for word.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { configSchema } from '../../../src/contract/config/config.ts';
import { collect } from '../support/comparable.ts';
import { holdSlot } from '../support/held-slot.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { CALLER_KEY, QUESTION } from './cases/sdk-case.ts';
import { askAnthropic, askOpenai } from './recipes/ai-sdk.ts';
import { ask as anthropic } from './recipes/anthropic.ts';
import { connect as connectToAzure } from './recipes/azure.ts';
import { connect as connectToBedrock } from './recipes/bedrock.ts';
import { connect as connectWithBothKeys } from './recipes/both-keys.ts';
import { ask as genai } from './recipes/genai.ts';
import { ask as langchain } from './recipes/langchain.ts';
import { ask as llamaindex } from './recipes/llamaindex.ts';
import { chat as chatWithOllama } from './recipes/ollama.ts';
import { ask as anyProvider } from './recipes/openai-any-provider.ts';
import { ask as openai } from './recipes/openai.ts';
import { askUnlessBusy } from './recipes/skip-when-busy.ts';

/** The part of LiteLLM's configuration that says where calls go. */
interface LiteLlmConfig {
  readonly model_list: readonly {
    readonly litellm_params: { readonly model: string; readonly api_base: string };
  }[];
}

const GATEWAY_KEY = 'hg_for-the-tests-of-clients';
const OPERATOR_KEY = 'sk-of-the-operator';
const RECIPES = new URL('./recipes/', import.meta.url);
const PAGE = new URL('../../../docs/clients.md', import.meta.url);

const read = (name: string): Promise<string> => readFile(new URL(name, RECIPES), 'utf8');

/** The upstreams of the recipe, at the address of the strict one. */
async function recipeUpstreams(url: string): Promise<{ id: string; base_url: string }[]> {
  const config = configSchema.parse(parse(await read('upstreams.yaml')));
  return config.upstreams.map((upstream) => ({ ...upstream, base_url: url }));
}

/** Callers bring provider keys. */
let open: SdkStage;
/** Callers have gateway keys, and the operator has stored the keys of the providers. */
let keyed: SdkStage;
beforeAll(async () => {
  const holds = { release_cooldown_ms: 0, cancel_cooldown_ms: 0 };
  [open, keyed] = await Promise.all([
    startSdkStage({
      upstreams: async (strict) => recipeUpstreams(strict.url),
      groups: [
        { name: 'mini', match: { models: ['gpt-4o-mini'] }, limits: { max_concurrency: 1 }, holds },
      ],
    }),
    startSdkStage({
      upstreams: async (strict) =>
        [
          ...['openai', 'anthropic', 'gemini'].map((id) => ({ id, base_url: strict.url })),
          ...(await recipeUpstreams(strict.url)),
        ].map((upstream) => ({ ...upstream, auth: { secret: 'UPSTREAM_KEY' } })),
      env: { UPSTREAM_KEY: OPERATOR_KEY },
      keys: [
        { id: 'tests', hash: `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}` },
      ],
    }),
  ]);
});
afterAll(() => Promise.all([open.stop(), keyed.stop()]));

describe.each([
  { with: 'a provider key', stage: () => open, key: CALLER_KEY },
  { with: 'a gateway key in its place', stage: () => keyed, key: GATEWAY_KEY },
])('with $with', ({ stage, key }) => {
  test.each([
    { name: 'openai', ask: openai, model: 'gpt-4o-mini' },
    { name: 'openai-any-provider', ask: anyProvider, model: 'gemini-2.5-flash' },
    { name: 'anthropic', ask: anthropic, model: 'claude-haiku-4-5' },
    { name: 'genai', ask: genai, model: 'gemini-2.5-flash' },
    { name: 'ai-sdk, OpenAI', ask: askOpenai, model: 'gpt-4o-mini' },
    { name: 'ai-sdk, Anthropic', ask: askAnthropic, model: 'claude-haiku-4-5' },
    { name: 'langchain', ask: langchain, model: 'gpt-4o-mini' },
    { name: 'llamaindex', ask: llamaindex, model: 'gpt-4o-mini' },
  ])('$name streams the answer', async ({ ask, model }) => {
    const { url, strict } = stage();
    strict.reset();
    const pieces = (await collect(ask(url, key, QUESTION))).filter(Boolean);
    expect(pieces.join('')).toBe(`[${model}] How much water does`);
    expect(pieces.length).toBeGreaterThan(3);
    expect(strict.stats().total).toBe(1);
  });

  test.each([
    { name: 'azure', connect: connectToAzure, model: 'my-deployment' },
    { name: 'bedrock', connect: connectToBedrock, model: 'openai.gpt-oss-20b-1:0' },
  ])('$name connects', async ({ connect, model }) => {
    const messages = [{ role: 'user' as const, content: QUESTION }];
    const { completions } = connect(stage().url, key).chat;
    const chunks = await collect(await completions.create({ model, messages, stream: true }));
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
    expect(text).toBe(`[${model}] How much water does`);
  });

  test('litellm: its deployment leads to an answer, where its client would send the call', async () => {
    const { model_list: deployments } = parse(await read('litellm.yaml')) as LiteLlmConfig;
    const { model, api_base: base } = deployments[0]?.litellm_params ?? { model: '', api_base: '' };
    const baseURL = base.replace('https://headgate.example.workers.dev', stage().url);
    const client = new OpenAI({ baseURL, apiKey: key, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: QUESTION }];
    const name = model.replace(/^openai\//, '');
    const answer = await client.chat.completions.create({ model: name, messages });
    expect(answer.choices[0]?.message.content).toBe('[gpt-4o-mini] How much water does');
  });

  test('ollama streams lines', async () => {
    const response = await chatWithOllama(stage().url, key, QUESTION);
    const lines = (await response.text()).trimEnd().split('\n');
    const parts = lines.map((line) => JSON.parse(line) as { message: { content: string } });
    expect(parts.map(({ message }) => message.content).join('')).toContain('[llama3.2] How much');
    expect(lines.length).toBeGreaterThan(3);
  });
});

describe('keys', () => {
  const request = {
    model: 'gpt-4o-mini',
    messages: [{ role: 'user' as const, content: QUESTION }],
  };
  const echo = { headers: { 'x-strict-echo': '1' } };

  test('with a gateway key alone the operator’s key goes upstream', async () => {
    const client = connectWithBothKeys(keyed.url, GATEWAY_KEY, GATEWAY_KEY);
    const seen = JSON.stringify(await client.chat.completions.create(request, echo));
    expect(seen).toContain(`Bearer ${OPERATOR_KEY}`);
    expect(seen).not.toContain(GATEWAY_KEY);
  });

  test('both-keys: the caller’s provider key goes upstream, the gateway key does not', async () => {
    const client = connectWithBothKeys(keyed.url, GATEWAY_KEY, CALLER_KEY);
    const seen = JSON.stringify(await client.chat.completions.create(request, echo));
    expect(seen).toContain(`Bearer ${CALLER_KEY}`);
    expect(seen).not.toContain(GATEWAY_KEY);
    expect(seen).not.toContain('headgate-');
  });

  test('the list of models holds what the operator’s keys open', async () => {
    const client = connectWithBothKeys(keyed.url, GATEWAY_KEY, GATEWAY_KEY);
    const list = await client.withOptions({ baseURL: `${keyed.url}/v1` }).models.list();
    expect(list.data.map(({ id }) => id)).toContain('openai/gpt-4o-mini');
  });
});

describe('the README', () => {
  test('shows a model of Anthropic that an OpenAI client reaches at /v1', async () => {
    const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8');
    const [, model = ''] = /`(anthropic\/claude-[\w-]+)`/.exec(readme) ?? [];
    const client = new OpenAI({ baseURL: `${keyed.url}/v1`, apiKey: GATEWAY_KEY });
    const messages = [{ role: 'user' as const, content: QUESTION }];
    const answer = await client.chat.completions.create({ model, messages });
    const plainName = model.replace('anthropic/', '');
    expect(answer.choices[0]?.message.content).toBe(`[${plainName}] How much water does`);
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    const chunks = await collect(stream);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(
      `[${plainName}] How much water does`,
    );
    const echo = { headers: { 'x-strict-echo': '1' } };
    const seen = await client.chat.completions.create({ model, messages }, echo);
    expect(seen).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${OPERATOR_KEY}` },
    });
  });
});

test('skip-when-busy: an answer, or null while the slot is taken', async () => {
  const question = (): ReturnType<typeof askUnlessBusy> =>
    askUnlessBusy(open.url, CALLER_KEY, QUESTION);
  expect((await question())?.choices[0]?.message.content).toContain('How much water');
  const held = await holdSlot(open.url, 'gpt-4o-mini');
  expect(await question()).toBeNull();
  await held.letGo();
});

describe('docs/clients.md', () => {
  const languages: Readonly<Record<string, string>> = {
    ts: 'ts',
    yaml: 'yaml',
    sh: 'sh',
    toml: 'toml',
    json: 'json',
    mjs: 'js',
    py: 'python',
    java: 'java',
    go: 'go',
    cs: 'csharp',
  };

  test('quotes every recipe word for word, and no code besides', async () => {
    const page = await readFile(PAGE, 'utf8');
    const names = await readdir(RECIPES);
    const quotes = await Promise.all(
      names.map(async (name) => {
        const language = languages[name.slice(name.lastIndexOf('.') + 1)] ?? 'text';
        return `\`\`\`${language}\n${await read(name)}\`\`\``;
      }),
    );
    for (const quote of quotes) expect(page).toContain(quote);
    const blocks = page.match(/^```[a-z]+\n[\s\S]*?^```$/gm) ?? [];
    expect([...blocks].sort()).toEqual([...quotes].sort());
  });
});
