// Every form in which an SDK or an agent may be given the base URL: the call is served by the right upstream, or the error that
// the SDK shows names the base URL to set, which then serves the call.
import Anthropic from '@anthropic-ai/sdk';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { ChatGoogleGenerativeAI } from '@langchain/google-genai';
import { ChatOpenAI } from '@langchain/openai';
import { OpenAI as LlamaIndex } from '@llamaindex/openai';
import { generateText } from 'ai';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import { ROUTES, startStrictRoutes, type StrictRoutes } from '../support/strict-routes.ts';

type BaseUrlsProvider = keyof typeof ROUTES;

const KEY = 'sk-callers-own';
// The SDK warns at each call of a model that it does not know.
globalThis.AI_SDK_LOG_WARNINGS = false;

const MODELS = { openai: 'gpt-4o', anthropic: 'claude-x', gemini: 'gemini-x' } as const;

let url: string;
let providers: Record<BaseUrlsProvider, StrictRoutes>;
let stop: () => Promise<void>;

beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'headgate-base-urls-'));
  const started = await Promise.all(
    (Object.keys(ROUTES) as BaseUrlsProvider[]).map(
      async (id) => [id, await startStrictRoutes(ROUTES[id])] as const,
    ),
  );
  providers = Object.fromEntries(started) as typeof providers;
  const upstreams = started.map(([id, { url: base_url }]) => ({
    id,
    base_url,
    models: [MODELS[id]],
  }));
  const serve = await startServe({ port: 0, dataDir, config: { upstreams } });
  ({ url } = serve);
  stop = async () => {
    await serve.kill9();
    for (const [, each] of started) each.close();
    await rm(dataDir, { recursive: true, force: true });
  };
});

afterAll(() => stop());

/** A client by its way to take a base URL. */
interface BaseUrlsClient {
  readonly name: string;
  readonly provider: BaseUrlsProvider;
  /** The right base URL behind the address of Headgate. */
  readonly right: string;
  /** The route that it adds to the base URL. */
  readonly adds: string;
  ask(baseURL: string): Promise<string>;
}

const messages = [{ role: 'user' as const, content: 'hi' }];
const once = { apiKey: KEY, maxRetries: 0 };

async function post(at: string, headers: Record<string, string>, body: object): Promise<string> {
  const type = { 'content-type': 'application/json' };
  const init = { method: 'POST', headers: { ...type, ...headers }, body: JSON.stringify(body) };
  const answer = await fetch(at, init);
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return /served/.exec(text)?.[0] ?? text;
}

const CLIENTS: readonly BaseUrlsClient[] = [
  {
    name: 'openai',
    provider: 'openai',
    right: '/openai/v1',
    adds: '/chat/completions',
    ask: async (baseURL) => {
      const client = new OpenAI({ baseURL, ...once });
      const answer = await client.chat.completions.create({ model: MODELS.openai, messages });
      return answer.choices[0]?.message.content ?? '';
    },
  },
  {
    name: '@ai-sdk/openai',
    provider: 'openai',
    right: '/openai/v1',
    adds: '/chat/completions',
    ask: async (baseURL) => {
      const model = createOpenAI({ baseURL, apiKey: KEY }).chat(MODELS.openai);
      return (await generateText({ model, prompt: 'hi', maxRetries: 0 })).text;
    },
  },
  {
    name: '@langchain/openai',
    provider: 'openai',
    right: '/openai/v1',
    adds: '/chat/completions',
    ask: async (baseURL) => {
      const configuration = { baseURL };
      const model = new ChatOpenAI({ model: MODELS.openai, ...once, configuration });
      return (await model.invoke('hi')).text;
    },
  },
  {
    name: '@llamaindex/openai',
    provider: 'openai',
    right: '/openai/v1',
    adds: '/chat/completions',
    ask: async (baseURL) => {
      const llm = new LlamaIndex({ model: MODELS.openai, ...once, baseURL });
      const { content } = (await llm.chat({ messages })).message;
      return typeof content === 'string' ? content : JSON.stringify(content);
    },
  },
  {
    name: '@anthropic-ai/sdk',
    provider: 'anthropic',
    right: '/anthropic',
    adds: '/v1/messages',
    ask: async (baseURL) => {
      const client = new Anthropic({ baseURL, ...once });
      const { content } = await client.messages.create({
        model: MODELS.anthropic,
        max_tokens: 9,
        messages,
      });
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    },
  },
  {
    name: '@ai-sdk/anthropic',
    provider: 'anthropic',
    right: '/anthropic/v1',
    adds: '/messages',
    ask: async (baseURL) => {
      const model = createAnthropic({ baseURL, apiKey: KEY })(MODELS.anthropic);
      return (await generateText({ model, prompt: 'hi', maxRetries: 0 })).text;
    },
  },
  {
    name: 'Claude Code',
    provider: 'anthropic',
    right: '/anthropic',
    adds: '/v1/messages',
    ask: (base) =>
      post(
        `${base}/v1/messages?beta=true`,
        { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' },
        { model: MODELS.anthropic, max_tokens: 9, messages },
      ),
  },
  {
    name: '@google/genai',
    provider: 'gemini',
    right: '/gemini',
    adds: '/v1beta/models/gemini-x:generateContent',
    ask: async (baseUrl) => {
      const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl } });
      const request = { model: MODELS.gemini, contents: 'hi' };
      return (await client.models.generateContent(request)).text ?? '';
    },
  },
  {
    name: '@ai-sdk/google',
    provider: 'gemini',
    right: '/gemini/v1beta',
    adds: '/models/gemini-x:generateContent',
    ask: async (baseURL) => {
      const model = createGoogleGenerativeAI({ baseURL, apiKey: KEY })(MODELS.gemini);
      return (await generateText({ model, prompt: 'hi', maxRetries: 0 })).text;
    },
  },
  {
    name: '@langchain/google-genai',
    provider: 'gemini',
    right: '/gemini',
    adds: '/v1beta/models/gemini-x:generateContent',
    ask: async (baseUrl) => {
      const model = new ChatGoogleGenerativeAI({ model: MODELS.gemini, ...once, baseUrl });
      return (await model.invoke('hi')).text;
    },
  },
];

const FORMS = ['', '/', '/v1', '/v1/', '/v1beta', '/openai', '/openai/v1', '/api/v1', '/v1//'];

/** The forms that name the client's own provider, misspelled ones, and whole endpoints. */
function formsOf({ provider, right, adds }: BaseUrlsClient): readonly string[] {
  return [
    ...FORMS,
    `/${provider}`,
    `/${provider}/`,
    `/${provider}/v1`,
    `/${provider}/v1/`,
    `/${provider}//v1`,
    `/${provider}/v1/v1`,
    `/${provider}/v1beta`,
    `/${provider.slice(0, -1)}x`,
    `/${provider.slice(0, -1)}x/v1`,
    ...(provider === 'gemini'
      ? []
      : [`${right}${adds}`, adds.startsWith('/v1') ? adds : `/v1${adds}`]),
  ];
}

/** Everything that an SDK shows of an error. */
function shownBy(error: unknown): string {
  const { message, responseBody } = error as { message?: string; responseBody?: string };
  return `${message} ${responseBody ?? ''}`;
}

/** The fault of the answer to a client with that base URL; null: it is served, or its error is right. */
async function faultOf(client: BaseUrlsClient, form: string): Promise<string | null> {
  const { seen } = providers[client.provider];
  const before = seen.length;
  const result = await client.ask(`${url}${form}`).catch((error: unknown) => shownBy(error));
  if (result === 'served') {
    const hits = seen.slice(before).filter((path) => !path.startsWith('404'));
    // Except where the URL names another provider that has the route too.
    const isNamed = form.startsWith('/openai') && client.provider !== 'openai';
    return hits.length === 1 || isNamed ? null : 'another provider served it';
  }
  if (!result.includes('Set the base URL to')) return result;
  const named = [...result.matchAll(/`(http:[^`]*)`/g)].map(([, base = '']) => base);
  const own = named.filter((base) => base === `${url}${client.right}`);
  const unified = named.filter((base) => base.startsWith(url) && !base.includes(client.provider));
  const bases = [...own, ...unified.slice(-1)];
  if (bases.length === 0) return result;
  const answers = await Promise.all(bases.map((base) => client.ask(base).catch(shownBy)));
  const failed = answers.findIndex((answer) => answer !== 'served');
  return failed < 0 ? null : `${bases[failed]}: ${answers[failed]}`;
}

describe.each(CLIENTS)('$name', (client) => {
  it.each(formsOf(client))('with the base URL {origin}%s', async (form) => {
    expect(await faultOf(client, form)).toBe(null);
  });
});
