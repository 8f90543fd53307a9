import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModel } from 'ai';
import { embed, generateText, streamText } from 'ai';
import { collect } from '../../support/comparable.ts';
import type { SdkCase, SdkRoute } from './sdk-case.ts';
import { CALLER_KEY, QUESTION } from './sdk-case.ts';

/** The AI SDK's OpenAI provider on a route. */
const aiOpenai = ({ baseUrl, headers }: SdkRoute) =>
  createOpenAI({ baseURL: baseUrl, apiKey: CALLER_KEY, headers: { ...headers } });

/** The AI SDK's Anthropic provider on a route. */
const aiAnthropic = ({ baseUrl, headers }: SdkRoute) =>
  createAnthropic({ baseURL: baseUrl, apiKey: CALLER_KEY, headers: { ...headers } });

type ModelOf = (route: SdkRoute) => LanguageModel;

/** Everything that the SDK makes of an answer, but for the request and the response's headers. */
async function generated(model: LanguageModel): Promise<unknown> {
  const result = await generateText({ model, prompt: QUESTION, maxRetries: 0 });
  const { text, usage, finishReason, warnings } = result;
  return { text, usage, finishReason, warnings, model: result.response.modelId };
}

async function streamed(model: LanguageModel): Promise<unknown> {
  const errors: unknown[] = [];
  const result = streamText({
    model,
    prompt: QUESTION,
    maxRetries: 0,
    onError: ({ error }) => void errors.push(error),
  });
  const chunks = await collect(result.textStream);
  const [usage, finishReason] = await Promise.all([result.usage, result.finishReason]);
  return { chunks, usage, finishReason, errors };
}

const textCases = (name: string, modelOf: ModelOf): SdkCase[] => [
  { name, run: (route) => generated(modelOf(route)) },
  { name: `${name}, streamed`, run: (route) => streamed(modelOf(route)) },
];

/** Calls of the OpenAI provider. */
export const AI_OPENAI_CASES: readonly SdkCase[] = [
  ...textCases('chat', (route) => aiOpenai(route).chat(route.model('gpt-4o-mini'))),
  ...textCases('responses', (route) => aiOpenai(route).responses(route.model('gpt-4o'))),
  {
    name: 'embedding',
    run: async (route) => {
      const model = aiOpenai(route).embedding(route.model('text-embedding-3-small'));
      const { embedding, usage } = await embed({ model, value: QUESTION, maxRetries: 0 });
      return { embedding, usage };
    },
  },
];

/** Calls of the Anthropic provider. */
export const AI_ANTHROPIC_CASES: readonly SdkCase[] = textCases('messages', (route) =>
  aiAnthropic(route)(route.model('claude-haiku-4-5')),
);
