import Anthropic from '@anthropic-ai/sdk';
import { collect } from '../../support/comparable.ts';
import type { SdkCase, SdkRoute } from './sdk-case.ts';
import { CALLER_KEY, QUESTION } from './sdk-case.ts';

const request = (model: string) => ({
  model,
  max_tokens: 64,
  messages: [{ role: 'user' as const, content: QUESTION }],
});

/** The official SDK on a route, its retries off. The key goes as a bearer token, or in `x-api-key`. */
export function anthropicClient(
  { baseUrl, headers }: SdkRoute,
  key: 'bearer' | 'x-api-key',
): Anthropic {
  const options = { baseURL: baseUrl, maxRetries: 0 };
  return key === 'bearer'
    ? new Anthropic({ ...options, apiKey: CALLER_KEY, defaultHeaders: { ...headers } })
    : new Anthropic({
        ...options,
        apiKey: null,
        authToken: null,
        defaultHeaders: { ...headers, 'x-api-key': CALLER_KEY },
      });
}

const anthropicCases = (
  name: string,
  run: (client: Anthropic, model: string) => Promise<unknown>,
): SdkCase[] =>
  (['bearer', 'x-api-key'] as const).map((key) => ({
    name: `${name} (${key})`,
    run: (route) => run(anthropicClient(route, key), route.model('claude-haiku-4-5')),
  }));

/** Calls of the Messages API. */
export const MESSAGES_CASES: readonly SdkCase[] = [
  ...anthropicCases('messages', (client, model) => client.messages.create(request(model))),
  ...anthropicCases('messages, streamed', async (client, model) =>
    collect(await client.messages.create({ ...request(model), stream: true })),
  ),
  ...anthropicCases('messages, by the streaming helper', (client, model) =>
    client.messages.stream(request(model)).finalMessage(),
  ),
];

/** Cases that the mock does not know. */
export const COUNT_TOKENS_CASES: readonly SdkCase[] = anthropicCases(
  'count_tokens',
  (client, model) => {
    const { messages } = request(model);
    return client.messages.countTokens({ model, messages });
  },
);
