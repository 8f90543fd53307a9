// What a stream that has begun is told of an upstream's error, in the codes of the API.
import { expect, test } from 'vitest';
import { upstreamErrorFrame } from '../../../src/call/results/error-frame.ts';

test.each([
  [429, '', 'rate_limit_exceeded', 'The upstream answered 429.'],
  [500, '<html>', 'server_error', 'The upstream answered 500.'],
  [400, '{}', 'invalid_prompt', 'The upstream answered 400.'],
  [403, '{"error":{"code":"blocked","message":"No."}}', 'blocked', 'No.'],
  [500, '{"error":{"code":5,"message":"Oh."}}', 'server_error', 'Oh.'],
])('a Responses stream fails for a %i of %j with %s', (status, text, code, message) => {
  const frames = upstreamErrorFrame('openai_responses', { status, text, retryAfterMs: null }, 'm');
  const failed = frames.split('\n\n').find((one) => one.startsWith('event: response.failed'));
  const data: unknown = JSON.parse(failed?.split('\ndata: ')[1] ?? '');
  expect(data).toMatchObject({ response: { status: 'failed', error: { code, message } } });
});
