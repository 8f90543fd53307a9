// The packages that people call Gemini with, the older ones too: each reads streams in its own way.
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { GoogleGenAI } from '@google/genai';
import { GoogleGenerativeAI } from '@google/generative-ai';
import { ChatGoogleGenerativeAI } from '@langchain/google-genai';
import { streamText } from 'ai';
import { GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { CALLER_KEY, QUESTION } from './cases/sdk-case.ts';
import { joined } from './callers.ts';

/** A question that is answered by a stream. */
export interface StreamCaller {
  readonly name: string;
  /** The text of the answer, and where the client keeps a chat, what stands in it. */
  ask(origin: string, model: string): Promise<string>;
}

interface Content {
  readonly parts?: readonly { readonly text?: string }[];
}

/** The last turn of a chat, and the answer, which have to be the same. */
function asOne(text: string, history: readonly Content[]): string {
  const kept =
    history
      .at(-1)
      ?.parts?.map((part) => part.text ?? '')
      .join('') ?? '';
  return kept === text ? text : `${text} (the chat keeps: ${kept})`;
}

const genai = (baseUrl: string): GoogleGenAI =>
  new GoogleGenAI({ apiKey: CALLER_KEY, httpOptions: { baseUrl } });

const genai1 = (baseUrl: string): GoogleGenAI1 =>
  new GoogleGenAI1({ apiKey: CALLER_KEY, httpOptions: { baseUrl } });

const generativeAi = (baseUrl: string, model: string) =>
  new GoogleGenerativeAI(CALLER_KEY).getGenerativeModel({ model }, { baseUrl });

export const GEMINI_CLIENTS: readonly StreamCaller[] = [
  {
    name: '@google/genai 3',
    async ask(origin, model) {
      const request = { model, contents: QUESTION };
      return joined(await genai(origin).models.generateContentStream(request), ({ text }) => text);
    },
  },
  {
    name: '@google/genai 3, a chat',
    async ask(origin, model) {
      const chat = genai(origin).chats.create({ model });
      const text = await joined(
        await chat.sendMessageStream({ message: QUESTION }),
        (chunk) => chunk.text,
      );
      return asOne(text, joinTurns(chat.getHistory()));
    },
  },
  {
    name: '@google/genai 1.30, as in the Gemini CLI',
    async ask(origin, model) {
      const request = { model, contents: QUESTION };
      return joined(await genai1(origin).models.generateContentStream(request), ({ text }) => text);
    },
  },
  {
    name: '@google/genai 1.30, a chat',
    async ask(origin, model) {
      const chat = genai1(origin).chats.create({ model });
      const text = await joined(
        await chat.sendMessageStream({ message: QUESTION }),
        (chunk) => chunk.text,
      );
      return asOne(text, joinTurns(chat.getHistory()));
    },
  },
  {
    name: '@google/generative-ai',
    async ask(origin, model) {
      const { stream, response } = await generativeAi(origin, model).generateContentStream(
        QUESTION,
      );
      // The same as one answer, which nobody awaits if the stream fails.
      response.catch(() => {});
      return joined(stream, (chunk) => chunk.text());
    },
  },
  {
    name: '@google/generative-ai, a chat',
    async ask(origin, model) {
      const chat = generativeAi(origin, model).startChat();
      const { stream, response } = await chat.sendMessageStream(QUESTION);
      response.catch(() => {});
      const text = await joined(stream, (chunk) => chunk.text());
      return asOne(text, joinTurns(await chat.getHistory()));
    },
  },
  {
    name: '@langchain/google-genai',
    async ask(origin, model) {
      const chat = new ChatGoogleGenerativeAI({
        model,
        apiKey: CALLER_KEY,
        baseUrl: origin,
        maxRetries: 0,
      });
      return joined(await chat.stream(QUESTION), ({ text }) => text);
    },
  },
  {
    name: 'ai with @ai-sdk/google',
    async ask(origin, model) {
      const google = createGoogleGenerativeAI({ apiKey: CALLER_KEY, baseURL: `${origin}/v1beta` });
      const failures: unknown[] = [];
      const { textStream } = streamText({
        model: google(model),
        prompt: QUESTION,
        maxRetries: 0,
        onError: ({ error }) => void failures.push(error),
      });
      const text = await joined(textStream, (piece) => piece);
      if (failures.length > 0) throw failures[0];
      return text;
    },
  },
];

/** A streamed answer may be kept as one turn for each of its pieces. */
function joinTurns(history: readonly (Content & { readonly role?: string })[]): Content[] {
  const answer = history.filter(({ role }) => role === 'model').flatMap(({ parts }) => parts ?? []);
  return [{ parts: answer }];
}
