import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A provider that serves its own routes only, at exactly their paths, as those of OpenAI, Anthropic and Google do. */
export interface StrictRoutes {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  /** Paths that were asked for, with `404` in front where there is no such route. */
  readonly seen: string[];
  close(): void;
}

const CHAT = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'served' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'served' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};

const GENERATED = {
  candidates: [
    { content: { role: 'model', parts: [{ text: 'served' }] }, finishReason: 'STOP', index: 0 },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
};

/** The routes of each provider, and what they answer. */
export const ROUTES = {
  openai: [[/^\/v1\/chat\/completions$/, CHAT]],
  anthropic: [
    [/^\/v1\/messages$/, MESSAGE],
    [/^\/v1\/chat\/completions$/, CHAT],
  ],
  gemini: [
    [/^\/v1(?:beta)?\/models\/[\w.-]+:generateContent$/, GENERATED],
    [/^\/v1beta\/openai\/chat\/completions$/, CHAT],
  ],
} as const;

export async function startStrictRoutes(
  routes: readonly (readonly [RegExp, object])[],
): Promise<StrictRoutes> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      const { pathname } = new URL(`http://upstream${request.url}`);
      const [, body] = routes.find(([path]) => path.test(pathname)) ?? [];
      const isServed = body !== undefined && request.method === 'POST';
      seen.push(isServed ? pathname : `404 ${pathname}`);
      response.writeHead(isServed ? 200 : 404, { 'content-type': 'application/json' });
      const error = { message: `Invalid URL (${request.method} ${pathname})`, type: 'invalid' };
      response.end(JSON.stringify(isServed ? body : { error }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
