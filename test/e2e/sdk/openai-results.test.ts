// The official OpenAI SDK gets the same results through Headgate as without it: from the strict
// upstream, whose answers depend on the request alone, and from an independent mock.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BedrockOpenAI } from 'openai';
import { plain, withoutIds } from '../support/comparable.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { AZURE_CASES } from './cases/azure-cases.ts';
import {
  CHAT_CASES,
  MODELS_CASE,
  OPENAI_CASES,
  openaiClient,
  STRICT_CASES,
} from './cases/openai-cases.ts';
import { testSameResults } from './cases/same-results.ts';
import { CALLER_KEY, prefixed, QUESTION, route } from './cases/sdk-case.ts';

let stage: SdkStage;
beforeAll(async () => {
  const rated = { name: 'rated', match: { models: ['rated-*'] }, limits: { rpm: 60, tpm: 90_000 } };
  stage = await startSdkStage({ groups: [rated] });
});
afterAll(() => stage.stop());

describe('OpenAI through /openai', () => {
  testSameResults([...OPENAI_CASES, ...STRICT_CASES, MODELS_CASE], {
    asked: () => stage.strict,
    straight: () => route(`${stage.strict.url}/v1`),
    through: () => route(`${stage.url}/openai/v1`),
  });
});

describe('OpenAI through /v1, the upstream in front of the model', () => {
  testSameResults([...OPENAI_CASES, ...STRICT_CASES], {
    asked: () => stage.strict,
    straight: () => route(`${stage.strict.url}/v1`),
    through: () => prefixed(`${stage.url}/v1`, 'openai'),
  });
});

describe('OpenAI through /v1, the upstream found by the model alone', () => {
  testSameResults(OPENAI_CASES, {
    asked: () => stage.strict,
    straight: () => route(`${stage.strict.url}/v1`),
    through: () => route(`${stage.url}/v1`),
  });
});

describe('OpenAI through /v1, the upstream in a header', () => {
  testSameResults([...CHAT_CASES, MODELS_CASE], {
    asked: () => stage.strict,
    straight: () => route(`${stage.strict.url}/v1`),
    through: () => route(`${stage.url}/v1`, { 'headgate-upstream': 'openai' }),
  });
});

describe('OpenAI against aimock through /mock-openai', () => {
  testSameResults([...OPENAI_CASES, MODELS_CASE], {
    straight: () => route(`${stage.mockUrl}/v1`),
    through: () => route(`${stage.url}/mock-openai/v1`),
    compare: withoutIds,
  });
});

describe('OpenAI against aimock through /v1', () => {
  testSameResults(OPENAI_CASES, {
    straight: () => route(`${stage.mockUrl}/v1`),
    through: () => prefixed(`${stage.url}/v1`, 'mock-openai'),
    compare: withoutIds,
  });
});

describe('Azure deployments', () => {
  testSameResults(AZURE_CASES, {
    asked: () => stage.strict,
    straight: () => route(stage.strict.url),
    through: () => route(`${stage.url}/azure`),
  });
});

describe('Azure deployments against aimock', () => {
  testSameResults(AZURE_CASES, {
    straight: () => route(stage.mockUrl),
    through: () => route(`${stage.url}/mock-azure`),
    compare: withoutIds,
  });
});

describe('Azure v1', () => {
  testSameResults(CHAT_CASES, {
    asked: () => stage.strict,
    straight: () => route(`${stage.strict.url}/openai/v1`, { 'api-key': CALLER_KEY }),
    through: () => route(`${stage.url}/azure/openai/v1`, { 'api-key': CALLER_KEY }),
  });
});

describe.each([
  ['azure', '/openai/v1'],
  ['bedrock', '/openai/v1'],
  ['gemini', '/v1beta/openai'],
  ['ollama', '/v1'],
])('the OpenAI-shaped routes of %s through /v1', (id, path) => {
  testSameResults(CHAT_CASES, {
    asked: () => stage.strict,
    straight: () => route(`${stage.strict.url}${path}`),
    through: () => prefixed(`${stage.url}/v1`, id),
  });
});

describe('Bedrock', () => {
  const request = {
    model: 'openai.gpt-oss-20b-1:0',
    messages: [{ role: 'user' as const, content: QUESTION }],
  };
  const client = (url: string): BedrockOpenAI =>
    new BedrockOpenAI({ baseURL: `${url}/openai/v1`, apiKey: 'bedrock-api-key', maxRetries: 0 });

  test('an API key as a bearer token gives the same result', async () => {
    const straight = await client(stage.strict.url).chat.completions.create(request);
    const through = await client(`${stage.url}/bedrock`).chat.completions.create(request);
    expect(plain(through)).toEqual(plain(straight));
  });
});

test('the response says where the call ran, besides the headers of the upstream', async () => {
  const { data, response, request_id } = await openaiClient(route(`${stage.url}/openai/v1`))
    .chat.completions.create({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: QUESTION }],
    })
    .withResponse();
  expect(data.choices[0]?.message.content).toContain('[gpt-4o-mini]');
  expect(request_id).toMatch(/^req_/);
  expect(response.headers.get('headgate-groups')).toBe('auto:openai');
  expect(response.headers.get('headgate-lease')).toMatch(/^[0-9a-f-]{36}\.1$/);
  expect(response.headers.get('headgate-tries')).toBe('1');
  expect(Number(response.headers.get('headgate-wait-ms'))).toBeLessThan(60_000);
  expect(response.headers.get('headgate-reason')).toBeNull();
});

test('the response says what is left of the rates that hold here, where the upstream tells none', async () => {
  const { response } = await openaiClient(route(`${stage.url}/openai/v1`))
    .chat.completions.create({
      model: 'rated-1',
      messages: [{ role: 'user', content: QUESTION }],
    })
    .withResponse();
  const said = (name: string) => response.headers.get(`x-ratelimit-${name}`);
  expect(response.headers.get('headgate-groups')).toBe('rated');
  expect([said('limit-requests'), said('remaining-requests')]).toEqual(['60', '59']);
  expect(said('reset-requests')).toMatch(/^(?:1m[0-2]s|5\ds)$/);
  expect(said('limit-tokens')).toBe('90000');
  expect(Number(said('remaining-tokens'))).toBeLessThan(90_000);
});

test("without a gateway key GET /v1/models lists nothing, for it shows the caller's key to nobody", async () => {
  const before = stage.strict.stats().uncounted;
  const list = await openaiClient(route(`${stage.url}/v1`)).models.list();
  expect(list).toMatchObject({ data: [] });
  expect(stage.strict.stats().uncounted).toBe(before);
});
