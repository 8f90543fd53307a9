import { GoogleGenAI } from '@google/genai';
import { collect } from '../../support/comparable.ts';
import type { SdkCase, SdkRoute } from './sdk-case.ts';
import { CALLER_KEY, QUESTION } from './sdk-case.ts';

const request = { model: 'gemini-2.5-flash', contents: QUESTION };

/**
 * The official SDK on a route. It retries nothing unless it is told to, and calls `v1` unless it is
 * told otherwise.
 */
export const geminiClient = ({ baseUrl, headers }: SdkRoute, apiVersion?: 'v1beta'): GoogleGenAI =>
  new GoogleGenAI({
    apiKey: CALLER_KEY,
    ...(apiVersion !== undefined && { apiVersion }),
    httpOptions: { baseUrl, headers: { ...headers } },
  });

/** Calls of the SDK; it always streams with `alt=sse`. */
export const geminiCases = (apiVersion?: 'v1beta'): readonly SdkCase[] => [
  {
    name: `generateContent, ${apiVersion ?? 'v1'}`,
    run: async (route) =>
      answerOf(await geminiClient(route, apiVersion).models.generateContent(request)),
  },
  {
    name: `generateContentStream, ${apiVersion ?? 'v1'}`,
    run: async (route) => {
      const { models } = geminiClient(route, apiVersion);
      return (await collect(await models.generateContentStream(request))).map(answerOf);
    },
  },
];

/** The text, and everything but the headers of the response, which the SDK hangs onto an answer. */
function answerOf<Answer extends { readonly text?: string | undefined }>(answer: Answer): unknown {
  return { ...answer, text: answer.text, sdkHttpResponse: null };
}

/** Cases that the mock does not know, or not as the real API does. */
export const GEMINI_STRICT_CASES: readonly SdkCase[] = [
  {
    name: 'countTokens',
    run: async (route) => {
      const { totalTokens } = await geminiClient(route).models.countTokens(request);
      return { totalTokens };
    },
  },
  {
    name: 'streamGenerateContent as a JSON array, with the key in the query (fetch)',
    run: async ({ baseUrl }) => {
      const path = `/v1beta/models/${request.model}:streamGenerateContent?key=${CALLER_KEY}`;
      const response = await fetch(baseUrl + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: QUESTION }] }] }),
      });
      const text = await response.text();
      const type = response.headers.get('content-type');
      return {
        status: response.status,
        type,
        text,
        chunks: (JSON.parse(text) as unknown[]).length,
      };
    },
  },
];
