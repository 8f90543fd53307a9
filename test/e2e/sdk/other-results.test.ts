// The other SDKs get the same results through Headgate as without it: from the strict upstream,
// whose answers depend on the request alone, and from an independent mock.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutIds } from '../support/comparable.ts';
import { MOCK_ANSWER } from '../support/mock-answers.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { AI_ANTHROPIC_CASES, AI_OPENAI_CASES } from './cases/ai-cases.ts';
import { anthropicClient, COUNT_TOKENS_CASES, MESSAGES_CASES } from './cases/anthropic-cases.ts';
import { GEMINI_STRICT_CASES, geminiCases, geminiClient } from './cases/gemini-cases.ts';
import { OLLAMA_CASES } from './cases/ollama-cases.ts';
import { testSameResults } from './cases/same-results.ts';
import { prefixed, QUESTION, route } from './cases/sdk-case.ts';

let stage: SdkStage;
beforeAll(async () => {
  stage = await startSdkStage();
});
afterAll(() => stage.stop());

describe('Anthropic', () => {
  const cases = [...MESSAGES_CASES, ...COUNT_TOKENS_CASES];
  const straight = () => route(stage.strict.url);
  const asked = () => stage.strict;

  describe('through /anthropic', () => {
    testSameResults(cases, { straight, asked, through: () => route(`${stage.url}/anthropic`) });
  });
  describe('through /v1, the upstream in front of the model', () => {
    testSameResults(cases, { straight, asked, through: () => prefixed(stage.url, 'anthropic') });
  });
  describe('through /v1, the upstream found by the model alone', () => {
    testSameResults(cases, { straight, asked, through: () => route(stage.url) });
  });
  describe('against aimock through /mock-anthropic', () => {
    testSameResults(MESSAGES_CASES, {
      straight: () => route(stage.mockUrl),
      through: () => route(`${stage.url}/mock-anthropic`),
      compare: withoutIds,
    });
  });
  describe('against aimock through /v1', () => {
    testSameResults(MESSAGES_CASES, {
      straight: () => route(stage.mockUrl),
      through: () => prefixed(stage.url, 'mock-anthropic'),
      compare: withoutIds,
    });
  });
});

describe('Gemini', () => {
  describe('through /gemini', () => {
    testSameResults([...geminiCases(), ...geminiCases('v1beta'), ...GEMINI_STRICT_CASES], {
      asked: () => stage.strict,
      straight: () => route(stage.strict.url),
      through: () => route(`${stage.url}/gemini`),
    });
  });
  describe('against aimock', () => {
    testSameResults(geminiCases('v1beta'), {
      straight: () => route(stage.mockUrl),
      through: () => route(`${stage.url}/mock-gemini`),
      compare: withoutIds,
    });
  });
});

describe('Ollama', () => {
  describe('through /ollama', () => {
    testSameResults(OLLAMA_CASES, {
      asked: () => stage.strict,
      straight: () => route(stage.strict.url),
      through: () => route(`${stage.url}/ollama`),
    });
  });
  describe('against aimock', () => {
    testSameResults(OLLAMA_CASES, {
      straight: () => route(stage.mockUrl),
      through: () => route(`${stage.url}/mock-ollama`),
      compare: withoutIds,
    });
  });
});

describe('AI SDK with @ai-sdk/openai', () => {
  const straight = () => route(`${stage.strict.url}/v1`);
  const asked = () => stage.strict;

  describe('through /openai', () => {
    testSameResults(AI_OPENAI_CASES, {
      straight,
      asked,
      through: () => route(`${stage.url}/openai/v1`),
    });
  });
  describe('through /v1', () => {
    testSameResults(AI_OPENAI_CASES, {
      straight,
      asked,
      through: () => prefixed(`${stage.url}/v1`, 'openai'),
    });
  });
  describe('against aimock', () => {
    testSameResults(AI_OPENAI_CASES, {
      straight: () => route(`${stage.mockUrl}/v1`),
      through: () => prefixed(`${stage.url}/v1`, 'mock-openai'),
      compare: withoutIds,
    });
  });
});

describe('AI SDK with @ai-sdk/anthropic', () => {
  const straight = () => route(`${stage.strict.url}/v1`);
  const asked = () => stage.strict;

  describe('through /anthropic', () => {
    testSameResults(AI_ANTHROPIC_CASES, {
      straight,
      asked,
      through: () => route(`${stage.url}/anthropic/v1`),
    });
  });
  describe('through /v1', () => {
    testSameResults(AI_ANTHROPIC_CASES, {
      straight,
      asked,
      through: () => prefixed(`${stage.url}/v1`, 'anthropic'),
    });
  });
  describe('against aimock', () => {
    testSameResults(AI_ANTHROPIC_CASES, {
      straight: () => route(`${stage.mockUrl}/v1`),
      through: () => route(`${stage.url}/mock-anthropic/v1`),
      compare: withoutIds,
    });
  });
});

test('what comes through is the answer to the question', async () => {
  const message = await anthropicClient(route(`${stage.url}/mock-anthropic`), 'bearer')
    .messages //
    .create({
      model: 'claude-haiku-4-5',
      max_tokens: 64,
      messages: [{ role: 'user', content: QUESTION }],
    });
  expect(message.content).toMatchObject([{ type: 'text', text: MOCK_ANSWER }]);
  const generated = await geminiClient(route(`${stage.url}/gemini`)).models.generateContent({
    model: 'gemini-2.5-flash',
    contents: QUESTION,
  });
  expect(generated.text).toBe('[gemini-2.5-flash] How much water does');
});
