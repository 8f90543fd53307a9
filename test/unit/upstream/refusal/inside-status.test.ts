import { describe, expect, test } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { answer } from '../../providers/seen-refusal.ts';

// An error inside a 200 means what it means by status, in the same table.

function meaning(error: object, upstreamId = 'openai'): string | null {
  const read = classifyRefusal(answer({ upstreamId, status: 200, body: JSON.stringify(error) }));
  return read === null ? null : `${read.signal.kind} ${read.scope} ${read.signal.retryAfterMs}`;
}

describe('an error inside a 200 is the same refusal as by status', () => {
  test.each<[string, number, object]>([
    [
      'Anthropic’s overload',
      529,
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    ],
    [
      'Anthropic’s rate',
      429,
      {
        type: 'error',
        error: {
          type: 'rate_limit_error',
          message:
            'This request would exceed your organization’s rate limit of 50 requests per minute',
        },
      },
    ],
    [
      'a failed response’s rate',
      429,
      {
        error: {
          code: 'rate_limit_exceeded',
          message:
            'Rate limit reached for gpt-5 on requests per min (RPM): Limit 3. Please try again in 1s.',
        },
      },
    ],
    [
      'a failed response',
      500,
      { error: { code: 'server_error', message: 'The server had an error' } },
    ],
    [
      'Gemini’s rate',
      429,
      { error: { code: 429, message: 'Resource exhausted', status: 'RESOURCE_EXHAUSTED' } },
    ],
    [
      'Gemini’s overload',
      503,
      { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } },
    ],
    [
      'a number that is a status',
      502,
      { error: { code: 502, message: 'Provider returned error' } },
    ],
    ['an empty account', 429, { error: { type: 'insufficient_quota', message: 'no' } }],
    ['a bill', 402, { error: { type: 'billing_error', message: 'no' } }],
    ['AWS’s throttling', 429, { __type: 'ThrottlingException', message: 'no' }],
  ])('%s', (_, status, error) => {
    const seen = classifyRefusal(answer({ status, body: JSON.stringify(error) }));
    const { kind, retryAfterMs } = seen?.signal ?? {};
    expect(meaning(error)).toBe(`${kind} ${seen?.scope} ${retryAfterMs}`);
  });

  test.each<[string, string, object, string]>([
    [
      'Z.ai’s concurrency',
      'zai',
      { error: { code: '1302', message: 'no' } },
      'concurrency model null',
    ],
    [
      'MiniMax’s rate',
      'minimax',
      { base_resp: { status_code: 1002, status_msg: 'no' } },
      'requests model null',
    ],
    [
      'a number that is not known',
      'openai',
      { base_resp: { status_code: 1002, status_msg: 'rate limit' } },
      'unknown model null',
    ],
    [
      'a list of errors',
      'openai',
      { errors: [{ code: 2003, message: 'Rate limited' }] },
      'unknown model null',
    ],
    ['a message alone', 'openai', { error: 'Too many requests' }, 'unknown model null'],
    [
      'Baidu’s rate',
      'qianfan',
      { error_code: 18, error_msg: 'Open api qps request limit reached' },
      'requests model null',
    ],
    [
      'Baidu’s overload',
      'qianfan',
      { error_code: 336100, error_msg: 'the service is busy, try again later' },
      'overload model null',
    ],
    ['a server that is busy', 'openai', { error: 'The server is busy' }, 'overload model null'],
    [
      'Ollama’s failure',
      'ollama',
      { error: 'llama runner process has terminated: exit status 2' },
      'error model null',
    ],
    [
      'a server without memory',
      'openai',
      { error: 'Request failed during generation: CUDA out of memory', error_type: 'generation' },
      'error model null',
    ],
    [
      'a status in a message',
      'openai',
      { error: 'Upstream request failed with status 502' },
      'error model null',
    ],
    [
      'OpenAI’s failure without a code',
      'openai',
      { type: 'error', code: null, message: 'An error occurred while processing your request.' },
      'error model null',
    ],
    [
      'xAI’s rate',
      'xai',
      { code: 'Some resource has been exhausted', error: 'Too many requests for the team' },
      'unknown model null',
    ],
    [
      'LiteLLM’s, which writes that there is no code',
      'openai',
      { error: { message: 'Service Unavailable', type: 'None', code: 'None' } },
      'overload model null',
    ],
    [
      'Portkey’s',
      'openai',
      { status: 'failure', message: 'Rate limit exceeded' },
      'unknown model null',
    ],
    [
      'Databricks’',
      'openai',
      { error_code: 'REQUEST_LIMIT_EXCEEDED', message: 'no' },
      'unknown model null',
    ],
    [
      'a status that is a field of its own',
      'openai',
      { error: { message: 'no', http_status_code: 500 } },
      'error model null',
    ],
    [
      'DashScope’s failure',
      'dashscope',
      { code: 'ModelServingError', message: 'no' },
      'error model null',
    ],
    ['Z.ai’s network error', 'zai', { error: { code: '1234', message: 'no' } }, 'error model null'],
    ['Groq’s end', 'groq', { error: { code: 'over_capacity' } }, 'overload model null'],
    [
      'a model that is loading',
      'huggingface',
      { error: 'Model bigscience/bloom is currently loading' },
      'overload model null',
    ],
    ['a busy model', 'openai', { error: { message: 'Model busy' } }, 'overload model null'],
    [
      'a crash',
      'openai',
      { error: { message: 'The model has crashed without additional information.' } },
      'error model null',
    ],
    [
      'a failure of Ollama’s model',
      'ollama',
      { error: 'an error was encountered while running the model: unexpected EOF' },
      'error model null',
    ],
  ])('%s', (_, upstreamId, error, expected) => {
    expect(meaning(error, upstreamId)).toBe(expected);
  });
});

describe('an error inside a 200 that is about the call says nothing of the upstream', () => {
  test.each<[string, object]>([
    ['an invalid request', { error: { type: 'invalid_request_error', message: 'overloaded' } }],
    ['an unknown model', { error: { code: 404, message: 'The model `rate limit` is not known' } }],
    ['an unknown error', { error: { code: 'odd', message: 'Too many requests' } }],
    ['an unknown number', { error: { code: '7001', message: 'The prompt is empty' } }],
    ['words that the caller gave', { error: 'There is no model "rate limit"' }],
    ['a name that the caller gave, without quotes', { error: 'model rate-limit:1 not found' }],
    ['another', { error: 'library/internal error does not support tools' }],
    ['an invalid name', { error: { type: 'invalid_provider', message: 'no' } }],
    [
      'blocked content with a type of failures',
      { error: { type: 'api_error', code: 'content_policy_violation', message: 'no' } },
    ],
    ['source code', { code: 'def rate_limit():\n  return 1', message: 'Here it is' }],
    ['a key that is not accepted', { error: { type: 'authentication_error', message: 'no' } }],
  ])('%s', (_, error) => {
    expect(meaning(error)).toBeNull();
  });
});
