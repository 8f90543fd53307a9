import { describe, expect, it } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { answer } from '../../providers/seen-refusal.ts';

/** Calls of more tokens than their model takes, which another model may take. */

function kindOf(error: unknown, status = 400): string | null {
  return classifyRefusal(answer({ status, body: JSON.stringify({ error }) }))?.signal.kind ?? null;
}

describe('a call is too long by the code', () => {
  it.each(['context_length_exceeded', 'exceed_context_size_error'])('%s', (code) => {
    expect(kindOf({ code, message: 'No.' })).toBe('never_fits');
    expect(kindOf({ type: code, message: 'No.' })).toBe('never_fits');
    expect(kindOf({ code, message: 'No.' }, 429)).toBe('never_fits');
    expect(kindOf({ code, message: 'No.' }, 404)).toBeNull();
  });
});

/** Messages as they were reported, each with 400. */
const MESSAGES = {
  Anthropic: 'prompt is too long: 201130 tokens > 200000 maximum',
  'Anthropic, with its output':
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
  OpenAI:
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
  'OpenAI, messages':
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens. Please reduce the length of the messages.",
  'OpenAI, functions':
    "This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (6683 in the messages, 730 in the functions, and 800 in the completion). Please reduce the length of the messages, functions, or completion.",
  'OpenAI, embeddings':
    "This model's maximum context length is 8192 tokens, however you requested 8977 tokens (8977 in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
  DeepSeek:
    "This model's maximum context length is 65536 tokens. However, you requested 72814 tokens (68718 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
  vLLM: "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2104 input tokens (2000 > 4096 - 2104).",
  OpenRouter:
    'This endpoint\'s maximum context length is 131072 tokens. However, you requested about 141607 tokens (10535 of text input, 131072 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.',
  'OpenRouter, its plugin':
    "This endpoint's maximum context length is 204800 tokens. However, you requested about 205212 tokens (160000 of text input, 12000 of tool input, 32000 in the output). Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.",
  Gemini: 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
  Bedrock: 'Input is too long for requested model.',
  xAI: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  Kimi: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)',
  Mistral: 'Prompt contains 200001 tokens, too large for model with 131072 maximum context length',
  Together: "The input (131073 tokens) is longer than the model's context length (131072 tokens).",
  SGLang: "Requested token count exceeds the model's maximum context length of 131072 tokens.",
  'llama.cpp': 'the request exceeds the available context size, try increasing it',
  'GitHub Copilot': 'prompt token count of 130000 exceeds the limit of 128000',
  MiniMax: 'invalid params, context window exceeds limit (2013)',
  DashScope:
    '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]',
  Ollama: 'prompt too long; exceeded max context length by 5 tokens',
} as const;

describe('a call is too long by the message of', () => {
  it.each(Object.entries(MESSAGES))('%s', (_, message) => {
    expect(kindOf({ message, type: 'invalid_request_error', param: 'messages' })).toBe(
      'never_fits',
    );
    expect(kindOf({ code: 400, message, status: 'INVALID_ARGUMENT' })).toBe('never_fits');
    expect(kindOf({ message: JSON.stringify({ error: { message } }), code: 400 })).toBe(
      'never_fits',
    );
  });
});

it('nobody waits for room that never comes, and nothing is learned of the key', () => {
  const body = JSON.stringify({ error: { message: MESSAGES.Anthropic } });
  const headers = new Headers({ 'retry-after': '9' });
  const said = classifyRefusal({ ...answer({ status: 400, body, headers }), isOfMember: true });
  expect(said).toMatchObject({
    signal: { kind: 'never_fits', retryAfterMs: null },
    scope: 'call',
    isFinal: true,
  });
});

describe('a call is not too long', () => {
  it.each(Object.values(MESSAGES))('whose model has the name "%s"', (name) => {
    const messages = [
      `Unknown model: ${name}`,
      `Invalid model: ${name}`,
      `${name} is not a valid model ID`,
      `The model '${name}' does not exist`,
      `Invalid value for 'tool_choice': "${name}"`,
      `模型 ${name} 不存在`,
    ];
    expect(messages.map((message) => kindOf({ message }))).toEqual(messages.map(() => null));
  });

  it.each([
    'max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens',
    'Model context window too small (minimum is 16000 tokens)',
    "Invalid 'messages[0].name': string too long. Expected a string with maximum length 64.",
    'The model m does not support images within its context window.',
  ])('"%s"', (message) => {
    expect(kindOf({ message })).toBeNull();
  });

  it('with another status', () => {
    const kinds = [401, 404, 422].map((status) => kindOf({ message: MESSAGES.Anthropic }, status));
    expect(kinds).toEqual([null, null, null]);
  });
});
