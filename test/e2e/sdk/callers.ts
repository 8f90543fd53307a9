import Anthropic from '@anthropic-ai/sdk';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { ChatOpenAI } from '@langchain/openai';
import type { LanguageModel } from 'ai';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { CALLER_KEY, QUESTION } from './cases/sdk-case.ts';

/** One question to an upstream, with whichever SDK. */
export interface Ask {
  /** Headgate's base URL with or without an upstream's id; SDKs get what they expect behind it. */
  readonly origin: string;
  readonly model: string;
  /** @default a provider key */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** @default 0 */
  readonly maxRetries?: number;
  readonly fetch?: typeof fetch;
}

/** An SDK, asked in the same way as all the others. Each answer is its text. */
export interface SdkCaller {
  readonly name: string;
  /** The built-in upstream that the SDK is made for. */
  readonly upstream: 'openai' | 'anthropic' | 'gemini';
  ask(ask: Ask): Promise<string>;
  askStreaming(ask: Ask): Promise<string>;
}

const messages = [{ role: 'user' as const, content: QUESTION }];

/** Gives the options that every SDK takes under the same names. */
const common = ({ key, headers, fetch: fetcher }: Ask) => ({
  apiKey: key ?? CALLER_KEY,
  ...(headers !== undefined && { defaultHeaders: headers, headers }),
  ...(fetcher !== undefined && { fetch: fetcher }),
});

/** The text of a stream, whose pieces may be without one. */
export async function joined<T>(
  stream: AsyncIterable<T>,
  textOf: (item: T) => unknown,
): Promise<string> {
  let text = '';
  for await (const item of stream) {
    const piece = textOf(item);
    if (typeof piece === 'string') text += piece;
  }
  return text;
}

function openai(ask: Ask): OpenAI {
  const { origin, maxRetries = 0 } = ask;
  return new OpenAI({ baseURL: `${origin}/v1`, maxRetries, ...common(ask) });
}

/** OpenAI's own SDK. */
export const OPENAI: SdkCaller = {
  name: 'openai',
  upstream: 'openai',
  async ask(ask) {
    const answer = await openai(ask).chat.completions.create({ model: ask.model, messages });
    return answer.choices[0]?.message.content ?? '';
  },
  async askStreaming(ask) {
    const { completions } = openai(ask).chat;
    const stream = await completions.create({ model: ask.model, messages, stream: true });
    return joined(stream, (chunk) => chunk.choices[0]?.delta.content);
  },
};

function anthropic(ask: Ask): Anthropic {
  const { origin, maxRetries = 0 } = ask;
  return new Anthropic({ baseURL: origin, maxRetries, ...common(ask) });
}

const ANTHROPIC: SdkCaller = {
  name: '@anthropic-ai/sdk',
  upstream: 'anthropic',
  async ask(ask) {
    const answer = await anthropic(ask).messages.create({
      model: ask.model,
      max_tokens: 64,
      messages,
    });
    return answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  },
  async askStreaming(ask) {
    const request = { model: ask.model, max_tokens: 64, messages };
    const stream = anthropic(ask).messages.stream(request);
    return joined(stream, (event) =>
      event.type === 'content_block_delta' && event.delta.type === 'text_delta'
        ? event.delta.text
        : '',
    );
  },
};

function genai({ origin, key, headers, maxRetries = 0, fetch: fetcher }: Ask): GoogleGenAI {
  return new GoogleGenAI({
    apiKey: key ?? CALLER_KEY,
    httpOptions: {
      baseUrl: origin,
      retryOptions: { attempts: maxRetries + 1, initialDelay: 0.2 },
      ...(headers !== undefined && { headers: { ...headers } }),
      ...(fetcher !== undefined && { fetch: fetcher }),
    },
  });
}

const GENAI: SdkCaller = {
  name: '@google/genai',
  upstream: 'gemini',
  async ask(ask) {
    const request = { model: ask.model, contents: QUESTION };
    return (await genai(ask).models.generateContent(request)).text ?? '';
  },
  async askStreaming(ask) {
    const request = { model: ask.model, contents: QUESTION };
    return joined(await genai(ask).models.generateContentStream(request), ({ text }) => text);
  },
};

function aiCaller(
  upstream: 'openai' | 'anthropic',
  modelOf: (ask: Ask) => LanguageModel,
): SdkCaller {
  return {
    name: `ai with @ai-sdk/${upstream}`,
    upstream,
    async ask(ask) {
      const { maxRetries = 0 } = ask;
      return (
        await generateText({
          model: modelOf(ask),
          prompt: QUESTION,
          maxOutputTokens: 64,
          maxRetries,
        })
      ).text;
    },
    async askStreaming(ask) {
      const { maxRetries = 0 } = ask;
      const failures: unknown[] = [];
      const { textStream } = streamText({
        model: modelOf(ask),
        prompt: QUESTION,
        maxOutputTokens: 64,
        maxRetries,
        onError: ({ error }) => void failures.push(error),
      });
      const text = await joined(textStream, (piece) => piece);
      // This SDK tells of an error beside the stream, which then ends early.
      if (failures.length > 0) throw failures[0];
      return text;
    },
  };
}

const AI_OPENAI = aiCaller('openai', (ask) =>
  createOpenAI({ baseURL: `${ask.origin}/v1`, ...common(ask) }).chat(ask.model),
);
const AI_ANTHROPIC = aiCaller('anthropic', (ask) =>
  createAnthropic({ baseURL: `${ask.origin}/v1`, ...common(ask) })(ask.model),
);

function langchain(ask: Ask): ChatOpenAI {
  const { origin, model, maxRetries = 0 } = ask;
  const { apiKey, ...configuration } = common(ask);
  return new ChatOpenAI({
    model,
    apiKey,
    maxRetries,
    configuration: { baseURL: `${origin}/v1`, ...configuration },
  });
}

/** LangChain, on top of the OpenAI SDK. */
export const LANGCHAIN: SdkCaller = {
  name: '@langchain/openai',
  upstream: 'openai',
  ask: async (ask) => (await langchain(ask).invoke(QUESTION)).text,
  askStreaming: async (ask) => joined(await langchain(ask).stream(QUESTION), ({ text }) => text),
};

/** The SDKs that vendors publish themselves, and the AI SDK. */
export const CALLERS: readonly SdkCaller[] = [OPENAI, ANTHROPIC, GENAI, AI_OPENAI, AI_ANTHROPIC];
