// The unified list of models for the official SDKs: every page, in the shape that each expects, in time although an upstream
// is slow, and every listed model by its id.
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import { ADMIN_TOKEN } from '../support/group-status.ts';
import {
  anthropicPages,
  geminiPages,
  numbered,
  openaiPages,
  startModelUpstream,
  type ListModels,
  type ModelUpstream,
} from '../support/model-upstream.ts';

const KEY = `hg_${'7'.repeat(48)}`;
const LIMITED_KEY = `hg_${'8'.repeat(48)}`;

const LISTS: Record<string, { readonly dialect: string; readonly list: ListModels }> = {
  claude: { dialect: 'anthropic', list: anthropicPages(numbered('claude', 27)) },
  paged: { dialect: 'openai', list: openaiPages(['vendor/model-b', ...numbered('gpt', 29)]) },
  google: { dialect: 'gemini', list: geminiPages(numbered('gemini', 25)) },
  array: { dialect: 'openai', list: () => [{ id: 'meta-llama/Llama-3.3', type: 'chat' }] },
  tags: { dialect: 'ollama', list: () => ({ models: [{ name: 'qwen3:8b', model: 'qwen3:8b' }] }) },
  odd: { dialect: 'openai', list: () => ({ pages: 0 }) },
  failing: { dialect: 'openai', list: () => 503 },
  slow: { dialect: 'openai', list: () => null },
};

const LISTED = [
  ...numbered('claude/claude', 27),
  'paged/vendor/model-b',
  ...numbered('paged/gpt', 29),
  ...numbered('google/gemini', 25),
  'array/meta-llama/Llama-3.3',
  'tags/qwen3:8b',
];

let url: string;
let upstreams: Record<string, ModelUpstream>;
let stop: () => Promise<void>;

beforeAll(async () => {
  const started = Object.entries(LISTS).map(async ([id, { list }]) => {
    return [id, await startModelUpstream(list)] as const;
  });
  upstreams = Object.fromEntries(await Promise.all(started));
  const hash = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`;
  const dataDir = await mkdtemp(join(tmpdir(), 'headgate-models-'));
  const serve = await startServe({
    port: 0,
    dataDir,
    adminToken: ADMIN_TOKEN,
    env: { UPSTREAM_KEY: 'sk-operators' },
    config: {
      upstreams: Object.entries(LISTS).map(([id, { dialect }]) => {
        const auth = id === 'tags' ? 'none' : { secret: 'UPSTREAM_KEY' };
        return { id, base_url: upstreams[id]?.url, dialect, auth };
      }),
      groups: [{ name: 'one', match: { models: ['gpt-03', 'vendor/*'], upstreams: ['paged'] } }],
      keys: [
        { id: 'k', hash: hash(KEY) },
        { id: 'limited', hash: hash(LIMITED_KEY), groups: ['one'] },
      ],
    },
  });
  ({ url } = serve);
  stop = async () => {
    await serve.kill9();
    for (const upstream of Object.values(upstreams)) upstream.close();
    await rm(dataDir, { recursive: true, force: true });
  };
});
afterAll(() => stop());

const openai = (apiKey = KEY): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const anthropic = (): Anthropic => new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 });
const gemini = (apiVersion: string): GoogleGenAI =>
  new GoogleGenAI({ apiKey: KEY, apiVersion, httpOptions: { baseUrl: url } });

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}${path}`, { headers: { authorization: `Bearer ${KEY}`, ...headers } });
}

// oxlint-disable-next-line typescript/no-explicit-any -- a test reads many shapes of answers
async function json(answer: Response | Promise<Response>): Promise<any> {
  return (await answer).json();
}

async function all<Item>(pages: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of pages) items.push(item);
  return items;
}

describe('the list of all models', () => {
  it('reaches an OpenAI client with every page of every upstream, in its types', async () => {
    const models = await all(openai().models.list());
    expect(models.map(({ id }) => id).toSorted()).toEqual(LISTED.toSorted());
    for (const { object, created, owned_by: owner } of models) {
      expect([object, typeof created, typeof owner]).toEqual(['model', 'number', 'string']);
    }
    const byId = new Map(models.map((model) => [model.id, model]));
    expect(byId.get('paged/gpt-00')).toMatchObject({ created: 1_700_000_000, owned_by: 'me' });
    expect(byId.get('claude/claude-00')?.created).toBe(Date.parse('2026-02-03') / 1_000);
    expect(byId.get('array/meta-llama/Llama-3.3')).toMatchObject({ created: 0, type: 'chat' });
  });

  it.each([1_000, 7, 20])('reaches an Anthropic client in pages of %i', async (limit) => {
    const models = await all(anthropic().models.list({ limit }));
    expect(models.map(({ id }) => id)).toHaveLength(LISTED.length);
    expect(new Set(models.map(({ id }) => id))).toEqual(new Set(LISTED));
    for (const { type, display_name: name, created_at: at } of models) {
      expect([type, name === '', Number.isNaN(Date.parse(at))]).toEqual(['model', false, false]);
    }
    expect(models.find(({ id }) => id === 'google/gemini-00')?.display_name).toBe('The gemini-00');
  });

  it.each(['v1beta', 'v1'])('reaches a Gemini client of %s in pages', async (version) => {
    const models = await all(await gemini(version).models.list({ config: { pageSize: 9 } }));
    expect(new Set(models.map(({ name }) => name))).toEqual(
      new Set(LISTED.map((id) => `models/${id}`)),
    );
    const one = models.find(({ name }) => name === 'models/google/gemini-03');
    expect(one).toMatchObject({ displayName: 'The gemini-03', inputTokenLimit: 1_000 });
  });

  it('is there within the time of its clients, and names what is missing', async () => {
    const before = performance.now();
    const answer = await get('/v1/models/');
    // Claude Code waits for 3 s. The upstream never answers.
    expect(performance.now() - before).toBeLessThan(3_000);
    const missing = answer.headers.get('headgate-missing')?.split(', ').toSorted();
    expect(missing).toEqual([
      'failing;reason=status_503',
      'odd;reason=unreadable',
      'slow;reason=timeout',
    ]);
  });

  it('goes backwards by before_id, and says whether there is more', async () => {
    const whole = await json(get('/v1/models'));
    const ids = whole.data.map(({ id }: { id: string }) => id);
    expect(whole).toMatchObject({ has_more: false, first_id: ids[0], last_id: ids.at(-1) });
    const page = async (query: string) => {
      const { data, ...ends } = await json(get(`/v1/models?${query}`));
      return { ids: data.map(({ id }: { id: string }) => id), hasMore: ends.has_more };
    };
    const name = (at: number): string => encodeURIComponent(ids[at]);
    expect(await page(`limit=2&before_id=${name(5)}`)).toEqual({
      ids: ids.slice(3, 5),
      hasMore: true,
    });
    expect(await page(`limit=5&before_id=${name(3)}`)).toEqual({
      ids: ids.slice(0, 3),
      hasMore: false,
    });
    expect(await page(`limit=2&after=${name(3)}`)).toEqual({ ids: ids.slice(4, 6), hasMore: true });
  });

  it.each([
    ['limit=none', {}, 'error'],
    ['limit=0', { 'anthropic-version': '2023-06-01' }, 'type'],
    ['after_id=nowhere', { 'anthropic-version': '2023-06-01' }, 'type'],
    ['pageToken=nowhere', { 'x-goog-api-key': KEY }, 'error'],
  ])('refuses %s in the dialect of the caller', async (query, headers, first) => {
    const answer = await get(`/v1/models?${query}`, headers);
    expect(answer.status).toBe(400);
    expect(answer.headers.get('headgate-reason')).toBe('field_invalid');
    const body = await json(answer);
    expect(Object.keys(body)[0]).toBe(first);
    expect(JSON.stringify(body)).toContain(query.split('=')[0]);
  });
});

describe('one model', () => {
  it('is found by every id that an OpenAI client was given', async () => {
    for (const id of LISTED) expect((await openai().models.retrieve(id)).id).toBe(id);
  });

  it('is found by Anthropic and Gemini clients in their shapes', async () => {
    const id = 'paged/vendor/model-b';
    expect(await anthropic().models.retrieve(id)).toMatchObject({ id, type: 'model' });
    for (const version of ['v1', 'v1beta']) {
      const name = `models/${id}`;
      expect((await gemini(version).models.get({ model: name })).name).toBe(name);
    }
  });

  it.each([
    'paged/vendor/model-b',
    'paged%2Fvendor%2Fmodel-b',
    'paged/vendor%2fmodel-b',
    'PAGED/vendor/model-b/',
  ])('is found however its slashes are written: %s', async (path) => {
    const answer = await get(`/v1/models/${path}`);
    expect([answer.status, (await json(answer)).owned_by]).toEqual([200, 'me']);
  });

  it('is asked of its upstream where the list does not have it', async () => {
    const answer = await get('/v1/models/paged%2Fft%3Amine');
    expect([answer.status, (await json(answer)).error.message]).toEqual([404, 'status 404']);
    expect(upstreams['paged']?.seen.at(-1)).toBe('/v1/models/ft%3Amine');
  });

  it('and the list show a key only what it may call', async () => {
    const limited = openai(LIMITED_KEY);
    const ids = (await all(limited.models.list())).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(['paged/gpt-03', 'paged/vendor/model-b']);
    for (const id of ids) expect((await limited.models.retrieve(id)).id).toBe(id);
    for (const id of ['paged/gpt-04', 'google/gemini-00', 'paged/ft:mine']) {
      await expect(limited.models.retrieve(id)).rejects.toMatchObject({
        status: 404,
        code: 'model_unknown',
      });
    }
    const answer = await get('/v1/models', { authorization: `Bearer ${LIMITED_KEY}` });
    expect(answer.headers.has('headgate-missing')).toBe(false);
  });
});
