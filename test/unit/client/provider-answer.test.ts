import { expect, test } from 'vitest';
import { readAnswer } from '../../../packages/client/src/provider-answer.ts';

const headers = {
  'Retry-After': '7',
  'Set-Cookie': 'a=b',
  'x-api-key': 'secret',
  n: 1,
  long: 'x'.repeat(4_097),
};
const reported = { 'retry-after': '7' };

test.each([
  [
    'OpenAI, Anthropic',
    { status: 429, headers: new Headers({ 'retry-after': '7' }), error: { code: 'slow' } },
    { status: 429, headers: reported, error: '{"code":"slow"}' },
  ],
  [
    'the AI SDK',
    { statusCode: 529, responseHeaders: headers, responseBody: '{"a":1}', message: 'Overloaded' },
    { status: 529, headers: reported, error: '{"a":1}' },
  ],
  [
    'the AI SDK after its own retries',
    { name: 'AI_RetryError', lastError: { statusCode: 429, responseHeaders: headers } },
    { status: 429, headers: reported },
  ],
  [
    'the AWS SDK',
    {
      name: 'ThrottlingException',
      message: 'Too many',
      $metadata: { httpStatusCode: 429 },
      $response: { headers },
    },
    {
      status: 429,
      headers: reported,
      error: '{"__type":"ThrottlingException","message":"Too many"}',
    },
  ],
  [
    'axios, ky',
    { message: 'failed', response: { status: 503, headers } },
    { status: 503, headers: reported, error: 'failed' },
  ],
  [
    'gRPC',
    { code: 8, details: 'RESOURCE_EXHAUSTED', message: '8 RESOURCE_EXHAUSTED: quota' },
    { status: 429, headers: {}, error: '8 RESOURCE_EXHAUSTED: quota' },
  ],
  ['an error with a cause', { cause: { status: 500 } }, { status: 500, headers: {} }],
])('%s', async (_, error, expected) => {
  expect(await readAnswer(Object.assign(new Error(''), { message: undefined }, error))).toEqual(
    expected,
  );
});

test.each([
  ['no object', 'oops'],
  ['an error without a status', new TypeError('fetch failed')],
  ['a number of the system', Object.assign(new Error('x'), { code: 8 })],
  ['what is no status', { status: 'failed' }],
  [
    'a circle',
    (() => {
      const circle: Record<string, unknown> = {};
      circle['cause'] = circle;
      return circle;
    })(),
  ],
])('%s is no answer', async (_, said) => {
  expect(await readAnswer(said)).toBeNull();
});

test('a body that cannot be written is left out, a long one is cut', async () => {
  const circle: Record<string, unknown> = {};
  circle['circle'] = circle;
  expect(await readAnswer({ status: 400, error: circle })).toEqual({ status: 400, headers: {} });
  const long = await readAnswer({ status: 400, error: { text: 'x'.repeat(100_000) } });
  expect(long?.error).toHaveLength(16_384);
  const response = new Response('y'.repeat(100_000), { status: 429 });
  expect((await readAnswer(response))?.error).toHaveLength(16_384);
  expect((await response.text()).length).toBe(100_000);
});

test('of an answer that succeeded the body is not touched', async () => {
  const response = new Response('text', { headers: { 'x-ratelimit-remaining-requests': '5' } });
  expect(await readAnswer(response)).toEqual({
    status: 200,
    headers: expect.objectContaining({ 'x-ratelimit-remaining-requests': '5' }),
  });
  expect(response.bodyUsed).toBe(false);
});
