// Streams that wait for their slot, with every client: what stands before the first event does not
// disturb it, and an error that comes after it is an error.
import { createOpenAI } from '@ai-sdk/openai';
import { streamText } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startChunkTap } from '../support/chunk-tap.ts';
import type { HeldSlot } from '../support/held-slot.ts';
import { holdSlot } from '../support/held-slot.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { CALLERS, LANGCHAIN } from './callers.ts';
import { CALLER_KEY, QUESTION } from './cases/sdk-case.ts';
import type { StreamCaller } from './gemini-clients.ts';
import { GEMINI_CLIENTS } from './gemini-clients.ts';

/** Fillers that have to pass before a call gets its slot. */
const FILLERS = 2;

const responses = (origin: string): OpenAI['responses'] =>
  new OpenAI({ baseURL: `${origin}/v1`, apiKey: CALLER_KEY, maxRetries: 0 }).responses;

const RESPONSES_CLIENTS: readonly StreamCaller[] = [
  {
    name: 'openai, responses.create',
    async ask(origin, model) {
      const stream = await responses(origin).create({ model, input: QUESTION, stream: true });
      let text = '';
      for await (const event of stream) {
        if (event.type === 'response.output_text.delta') text += event.delta;
      }
      return text;
    },
  },
  {
    name: 'openai, responses.stream',
    async ask(origin, model) {
      const stream = responses(origin).stream({ model, input: QUESTION });
      return (await stream.finalResponse()).output_text;
    },
  },
  {
    name: 'ai with @ai-sdk/openai, responses',
    async ask(origin, model) {
      const openai = createOpenAI({ baseURL: `${origin}/v1`, apiKey: CALLER_KEY });
      const failures: unknown[] = [];
      const { textStream } = streamText({
        model: openai.responses(model),
        prompt: QUESTION,
        maxRetries: 0,
        onError: ({ error }) => void failures.push(error),
      });
      let text = '';
      for await (const piece of textStream) text += piece;
      if (failures.length > 0) throw failures[0];
      return text;
    },
  },
];

const CLIENTS: readonly (StreamCaller & { readonly upstream: string })[] = [
  ...[...CALLERS, LANGCHAIN].map((caller) => ({
    name: caller.name,
    upstream: caller.upstream,
    ask: (origin: string, model: string) => caller.askStreaming({ origin, model }),
  })),
  ...RESPONSES_CLIENTS.map((client) => ({ ...client, upstream: 'openai' })),
  ...GEMINI_CLIENTS.map((client) => ({ ...client, upstream: 'gemini' })),
];

const clients = CLIENTS.map((client, index) => ({ ...client, index }));

const KEEPALIVE = { after_ms: 0, every_ms: 1_000 };
const COMMON = {
  limits: { max_concurrency: 1 },
  holds: { release_cooldown_ms: 0, cancel_cooldown_ms: 0 },
};

let stage: SdkStage;
beforeAll(async () => {
  stage = await startSdkStage({
    groups: [
      ...clients.map(({ index }) => ({
        ...COMMON,
        name: `waits-${index}`,
        match: { models: [`waits-${index}`] },
        queue: { keepalive: KEEPALIVE },
      })),
      {
        ...COMMON,
        name: 'late',
        match: { models: ['late'] },
        queue: { keepalive: KEEPALIVE, timeout_ms: 2_500 },
      },
    ],
  });
});
afterAll(() => stage.stop());

describe.concurrent('a stream that waits', () => {
  test.for(clients)('$name gets its whole answer', async (client, { expect }) => {
    const model = `waits-${client.index}`;
    const held = await holdSlot(stage.url, model);
    const tap = await startChunkTap(stage.url);
    const answer = client.ask(`${tap.url}/${client.upstream}`, model);
    await tap.passed(FILLERS);
    await held.letGo();
    expect(await answer).toBe(`[${model}] How much water does`);
    expect(tap.calls()).toBe(1);
    expect(stage.strict.stats().models[model]).toMatchObject({ total: 2, completed: 1 });
    await tap.close();
  });
});

/** Words of Headgate about the refusal. */
const LATE = /No slot of group `late` became free/;

const TYPED: Readonly<Record<string, object>> = {
  openai: { code: 'queue_timeout' },
  'openai, responses.create': { code: 'queue_timeout' },
  'openai, responses.stream': { code: 'queue_timeout' },
  '@anthropic-ai/sdk': { type: 'rate_limit_error' },
  '@google/genai 3': { status: 429 },
  '@google/genai 1.30, as in the Gemini CLI': { status: 429 },
  '@google/generative-ai': { response: { error: { code: 429 } } },
  'ai with @ai-sdk/google': { code: 429 },
};

/** It has no way to tell of an error in a stream but one that ends its process. */
const SILENT = '@langchain/google-genai';

describe('a stream that is refused after it waited', () => {
  let held: HeldSlot;
  beforeAll(async () => {
    held = await holdSlot(stage.url, 'late');
  });
  afterAll(() => held.letGo());

  describe.concurrent('fails', () => {
    test.for(clients)('for $name', async (client, { expect }) => {
      const { name, upstream } = client;
      const error = await client.ask(`${stage.url}/${upstream}`, 'late').then(
        (text) => new Error(`It answered ${JSON.stringify(text)}.`),
        (reason: unknown) => reason,
      );
      if (name === SILENT) return expect(String(error)).toBe('Error: It answered "".');
      expect(String(error)).toMatch(LATE);
      expect(error).toMatchObject(TYPED[name] ?? {});
    });
  });
});
