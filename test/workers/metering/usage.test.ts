// What a group counts is what the upstream reported, in every dialect, and no byte of the answer changes
// for it. The upstream is asked straight as well, and both answers are compared.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import type { Settings } from '../support/strict.ts';
import { CHAT, counted, newScene, post, untilCounted, type Scene } from './scene.ts';

afterAll(nothingLeaks);

/** No two numbers alike, so that none can stand for another. */
const USAGE: Settings = {
  chunks: 9,
  inputTokens: 1_234,
  cachedTokens: 234,
  outputTokens: 567,
  reasoningTokens: 67,
};

/** By hand: 1,000 tokens at 2 USD per million, 234 at 0.5, 567 at 10. */
const USD = 0.007787;
/** The same where nobody tells what came from the cache: 1,234 at 2, 567 at 10. */
const UNCACHED_USD = 0.008138;

const MESSAGES = [{ role: 'user', content: 'one two three' }];
const CONTENTS = [{ role: 'user', parts: [{ text: 'one two three' }] }];
const STREAM = { stream: true };

interface UsageCall {
  readonly path: string;
  readonly json: unknown;
  /** @default the upstream with the OpenAI dialect */
  readonly id?: string;
}

const OF_GEMINI = '/v1beta/models/gemini-2.5-flash';

const CALLS: Record<string, UsageCall> = {
  'OpenAI chat': { path: CHAT, json: { model: 'm', messages: MESSAGES } },
  'an OpenAI chat stream that was asked for its usage': {
    path: CHAT,
    json: { model: 'm', messages: MESSAGES, ...STREAM, stream_options: { include_usage: true } },
  },
  'OpenAI responses': { path: '/v1/responses', json: { model: 'm', input: 'one two' } },
  'an OpenAI responses stream': {
    path: '/v1/responses',
    json: { model: 'm', input: 'one two', ...STREAM },
  },
  'Anthropic messages': {
    id: 'claude',
    path: '/v1/messages',
    json: { model: 'm', max_tokens: 600, messages: MESSAGES },
  },
  'an Anthropic stream': {
    id: 'claude',
    path: '/v1/messages',
    json: { model: 'm', max_tokens: 600, messages: MESSAGES, ...STREAM },
  },
  'OpenAI chat at Anthropic': {
    id: 'claude',
    path: CHAT,
    json: { model: 'm', messages: MESSAGES },
  },
  'an OpenAI chat stream at Anthropic that was asked for its usage': {
    id: 'claude',
    path: CHAT,
    json: { model: 'm', messages: MESSAGES, ...STREAM, stream_options: { include_usage: true } },
  },
  Gemini: { id: 'gem', path: `${OF_GEMINI}:generateContent`, json: { contents: CONTENTS } },
  'a Gemini stream of events': {
    id: 'gem',
    path: `${OF_GEMINI}:streamGenerateContent?alt=sse`,
    json: { contents: CONTENTS },
  },
  'a Gemini stream that is one JSON array': {
    id: 'gem',
    path: `${OF_GEMINI}:streamGenerateContent`,
    json: { contents: CONTENTS },
  },
  'Ollama chat': {
    id: 'llama',
    path: '/api/chat',
    json: { model: 'm', messages: MESSAGES, stream: false },
  },
  'an Ollama chat stream': {
    id: 'llama',
    path: '/api/chat',
    json: { model: 'm', messages: MESSAGES },
  },
  'an Ollama generate stream': {
    id: 'llama',
    path: '/api/generate',
    json: { model: 'm', prompt: 'one two' },
  },
};

const JSON_HEADERS = { 'content-type': 'application/json', 'accept-encoding': 'identity' };

/** The bytes that the upstream answers if it is asked straight. */
async function straight(
  { strict }: Scene,
  { path, json }: UsageCall,
  headers = {},
): Promise<string> {
  const response = await fetch(strict.url + path, {
    method: 'POST',
    body: JSON.stringify(json),
    headers: { ...JSON_HEADERS, ...headers },
    ...RAW,
  });
  expect(response.status).toBe(200);
  return bytesOf(response);
}

/** The bytes as they came over the wire, not decoded. */
const RAW = { encodeResponseBody: 'manual' } as RequestInit;

async function bytesOf(response: Response): Promise<string> {
  return new Uint8Array(await response.arrayBuffer()).toBase64();
}

async function through({ id = 'up', path, json }: UsageCall, headers = {}): Promise<string> {
  const response = await post(`/${id}${path}`, JSON.stringify(json), { headers, ...RAW });
  expect(response.status).toBe(200);
  return bytesOf(response);
}

describe('counts what the upstream reported, and passes on every byte as it came:', () => {
  it.each(Object.entries(CALLS))('%s', async (_, asked) => {
    const scene = await newScene(USAGE);
    expect(await through(asked)).toBe(await straight(scene, asked));
    await untilCounted(scene.group, {
      requests: 1,
      inputTokens: 1_234,
      outputTokens: 567,
      usd: asked.id === 'llama' ? UNCACHED_USD : USD,
      reservedUsd: 0,
    });
  });

  it('calls of several dialects add up', async () => {
    const { group } = await newScene(USAGE);
    await Promise.all(Object.values(CALLS).map((asked) => through(asked)));
    await untilCounted(group, { reservedUsd: 0 });
    const calls = Object.values(CALLS).length;
    expect(await counted(group)).toMatchObject({
      requests: calls,
      inputTokens: calls * 1_234,
      outputTokens: calls * 567,
    });
  });

  it.each([
    ['a gzip stream, of which the estimate counts', { 'x-strict-gzip': '1' }],
    ['a stream of known length', { 'x-strict-content-length': '1' }],
  ])('%s', async (_, headers) => {
    const scene = await newScene(USAGE);
    const asked = { ...CALLS['an Anthropic stream'], id: 'claude' } as UsageCall;
    expect(await through(asked, headers)).toBe(await straight(scene, asked, headers));
    await untilCounted(scene.group, { requests: 1, reservedUsd: 0 });
  });
});

describe('a stream that is cut counts within 20 % as what the upstream had sent:', () => {
  /** Words of one token each, with 4.3 bytes on the average: what English has per token. */
  const WORDS = 'we ask for some plain old words that each take one token on the way back to you';
  /** Long enough that what is round the text of a body weighs little. */
  const prose = Array.from({ length: 40 }, () => WORDS)
    .join(' ')
    .split(' ');
  const AFTER = 160;
  // The answer is the model's name and then the prompt: this is its last piece before the cut.
  const PROMPT = prose.with(AFTER - 2, 'mark').join(' ');
  const INPUT = Math.round(PROMPT.length / 4.3);
  const CUT: Settings = { chunks: 200, inputTokens: INPUT, silentAfterChunks: AFTER };

  const cases = Object.entries(CALLS).flatMap(([title, asked]) => {
    if (!title.includes('stream')) return [];
    const text = JSON.stringify(asked.json).replaceAll(/one two( three)?/g, PROMPT);
    return [[title, { ...asked, json: JSON.parse(text) as unknown }] as const];
  });

  /** Sends the call and reads all that comes before the cut. */
  async function begun(
    { id = 'up', path, json }: UsageCall,
    signal?: AbortSignal,
  ): Promise<ReadableStreamDefaultReader<string>> {
    const init = signal === undefined ? {} : { signal };
    const { body } = await post(`/${id}${path}`, JSON.stringify(json), init);
    if (body === null) throw new Error('no body');
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes(' mark')) text += (await reader.read()).value ?? '';
    return reader;
  }

  function rest(reader: ReadableStreamDefaultReader<string>): Promise<'more' | 'cut'> {
    return reader.read().then(
      () => 'more',
      () => 'cut',
    );
  }

  async function countsNearly({ strict, group }: Scene): Promise<void> {
    await untilCounted(group, { reservedUsd: 0 });
    expect((await strict.stats()).arrivals).toMatchObject([{ outputTokens: AFTER }]);
    const { requests, inputTokens, outputTokens, usd } = await counted(group);
    expect(requests).toBe(1);
    expect(Math.abs(inputTokens / INPUT - 1)).toBeLessThan(0.2);
    expect(Math.abs(outputTokens / AFTER - 1)).toBeLessThan(0.2);
    expect(Math.abs(usd / ((INPUT * 2 + AFTER * 10) / 1e6) - 1)).toBeLessThan(0.2);
  }

  it.each(cases)('%s, by the upstream', async (_, asked) => {
    const scene = await newScene({ ...CUT, breakAfterChunks: AFTER });
    const reader = await begun(asked);
    await scene.strict.resume();
    expect(await rest(reader)).toBe('cut');
    await countsNearly(scene);
  });

  it.each(cases)('%s, by its caller', async (_, asked) => {
    const scene = await newScene(CUT);
    const client = new AbortController();
    const reader = await begun(asked, client.signal);
    client.abort();
    expect(await rest(reader)).toBe('cut');
    await countsNearly(scene);
  });
});

it('a call without usage in its answer counts as what was seen of it', async () => {
  const { group } = await newScene(USAGE);
  await through({ path: CHAT, json: { model: 'm', messages: MESSAGES, ...STREAM } });
  // Nine pieces of text: "[m] one two three one …".
  const bytes = '[m] one two three one two three one two'.length;
  await untilCounted(group, { reservedUsd: 0 });
  expect((await counted(group)).outputTokens).toBe(Math.ceil(bytes / 4));
});
