// Variables that say where the objects are: a place that does not exist is told to whoever asks, in their words.
import { expect, it } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import type { Env } from '../../src/env.ts';
import { env, until } from './support/worker.ts';

const WRONG =
  'The variable `JURISDICTION` is "europe". Expected eu, fedramp, us, or an empty value.';

async function ask(path: string, init: RequestInit = {}, bindings: Partial<Env> = {}) {
  const context = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} };
  const response = await createApp().fetch?.(
    new Request(`https://headgate.test${path}`, init) as never,
    { ...env, JURISDICTION: 'europe', ...bindings },
    context as unknown as ExecutionContext,
  );
  if (response === undefined) throw new Error('There is no Worker.');
  const text = await response.text();
  return { status: response.status, headers: response.headers, text };
}

const POST = { method: 'POST', body: '{"model":"m"}' };

it.each([
  ['OpenAI', '/openai/v1/chat/completions', ['error', 'code'], 'setting_invalid'],
  ['OpenAI at /v1', '/v1/chat/completions', ['error', 'code'], 'setting_invalid'],
  ['Anthropic', '/v1/messages', ['error', 'type'], 'invalid_request_error'],
  ['Gemini', '/v1beta/models/m:generateContent', ['error', 'status'], 'INVALID_ARGUMENT'],
])('a call in the dialect of %s', async (_, path, field, value) => {
  const { status, headers, text } = await ask(path, POST);
  expect([status, headers.get('headgate-reason')]).toEqual([424, 'setting_invalid']);
  expect([headers.get('x-should-retry'), headers.get('retry-after')]).toEqual(['false', null]);
  expect(text).toContain(WRONG.replaceAll('"', '\\"'));
  const body: unknown = JSON.parse(text);
  expect(body).toHaveProperty(field, value);
});

it.each(['/admin/api/status', '/admin/api/config', '/metrics', '/status'])('%s', async (path) => {
  const { status, headers, text } = await ask(path);
  expect([status, headers.get('content-type')]).toEqual([503, 'application/problem+json']);
  expect(JSON.parse(text)).toMatchObject({ detail: expect.stringContaining(WRONG) as unknown });
});

it('the home page, which needs no directory', async () => {
  expect((await ask('/')).text).toContain(`Directory      ${WRONG}`);
  expect((await ask('/healthz')).status).toBe(200);
});

it('a wrong location is told in the same way, and empty variables are none', async () => {
  const wrong = await ask('/v1/chat/completions', POST, {
    JURISDICTION: '',
    DIRECTORY_LOCATION: 'moon',
  });
  expect(wrong.text).toContain('`DIRECTORY_LOCATION` is');
  await until(async () => {
    const none = await ask('/', {}, { JURISDICTION: '', DIRECTORY_LOCATION: '' });
    expect(none.text).toMatch(/Directory +ready/);
  });
});
