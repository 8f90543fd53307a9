import { afterAll, beforeAll, expect, test } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';

/** Reports of the strict upstream about a call's tokens equal its counts, in every dialect. */

let upstream: StrictUpstream;

beforeAll(async () => {
  upstream = await startStrictUpstream();
});

afterAll(() => upstream.close());

/** Unequal numbers, so that none can stand for another; seven chunks do not divide 23. */
const ASKED = 'chunks=7 input-tokens=101 cached-tokens=17 output-tokens=23 reasoning-tokens=5';
const TEXT = `hello [[strict ${ASKED}]]`;

type UsageJson = Record<string, unknown>;

const MESSAGES = { model: 'm', messages: [{ role: 'user', content: TEXT }] };
const GEMINI = { contents: [{ role: 'user', parts: [{ text: TEXT }] }] };
const GEMINI_PATH = '/v1beta/models/m';
const OPENAI_USAGE = {
  prompt_tokens: 101,
  completion_tokens: 23,
  total_tokens: 124,
  prompt_tokens_details: { cached_tokens: 17 },
  completion_tokens_details: { reasoning_tokens: 5 },
};
const RESPONSES_USAGE = {
  input_tokens: 101,
  input_tokens_details: { cached_tokens: 17 },
  output_tokens: 23,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 124,
};
const ANTHROPIC_USAGE = {
  input_tokens: 84,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 17,
  output_tokens: 23,
};
const GEMINI_USAGE = {
  promptTokenCount: 101,
  cachedContentTokenCount: 17,
  candidatesTokenCount: 18,
  thoughtsTokenCount: 5,
  totalTokenCount: 124,
};
const OLLAMA_USAGE = { prompt_eval_count: 101, eval_count: 23 };

const include = { stream: true, stream_options: { include_usage: true } };
const responses = { model: 'm', input: TEXT };

/** Every JSON value of an answer: one document, an array, SSE events or lines. */
function documents(text: string): UsageJson[] {
  if (/^[[{]/.test(text) && !text.includes('}\n{')) return [JSON.parse(text) as UsageJson].flat();
  const lines = text.split(/\r?\n/).map((line) => line.replace(/^data: /, ''));
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as UsageJson);
}

function usageIn(document: UsageJson): unknown {
  const response = document['response'] as UsageJson | undefined;
  const { prompt_eval_count, eval_count } = document;
  const ollama = eval_count === undefined ? undefined : { prompt_eval_count, eval_count };
  return document['usage'] ?? response?.['usage'] ?? document['usageMetadata'] ?? ollama;
}

let scopes = 0;

async function send(path: string, body: UsageJson): Promise<{ scope: string; text: string }> {
  const scope = `usage-${(scopes += 1)}`;
  const url = `${upstream.scopeUrl(scope)}${path}`;
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  return { scope, text: await response.text() };
}

test.each<[string, string, UsageJson, UsageJson]>([
  ['chat', '/v1/chat/completions', MESSAGES, OPENAI_USAGE],
  ['streamed chat', '/v1/chat/completions', { ...MESSAGES, ...include }, OPENAI_USAGE],
  ['completions', '/v1/completions', { model: 'm', prompt: TEXT }, OPENAI_USAGE],
  ['streamed completions', '/v1/completions', { prompt: TEXT, ...include }, OPENAI_USAGE],
  ['responses', '/v1/responses', responses, RESPONSES_USAGE],
  ['streamed responses', '/v1/responses', { ...responses, stream: true }, RESPONSES_USAGE],
  ['messages', '/v1/messages', MESSAGES, ANTHROPIC_USAGE],
  ['streamed messages', '/v1/messages', { ...MESSAGES, stream: true }, ANTHROPIC_USAGE],
  ['Gemini', `${GEMINI_PATH}:generateContent`, GEMINI, GEMINI_USAGE],
  ['Gemini as SSE', `${GEMINI_PATH}:streamGenerateContent?alt=sse`, GEMINI, GEMINI_USAGE],
  ['Gemini as an array', `${GEMINI_PATH}:streamGenerateContent`, GEMINI, GEMINI_USAGE],
  ['Ollama', '/api/chat', { ...MESSAGES, stream: false }, OLLAMA_USAGE],
  ['streamed Ollama', '/api/generate', { model: 'm', prompt: TEXT }, OLLAMA_USAGE],
])('%s reports what was counted', async (_name, path, body, usage) => {
  const { scope, text } = await send(path, body);
  const seen = documents(text).map((document) => usageIn(document));
  expect(seen.findLast((value) => value !== undefined && value !== null)).toEqual(usage);
  expect(upstream.stats(scope)).toMatchObject({
    inputTokens: 101,
    outputTokens: 23,
    countedTokens: 124,
    arrivals: [{ label: 'hello', inputTokens: 101, outputTokens: 23 }],
  });
});
