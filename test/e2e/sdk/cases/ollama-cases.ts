import type { SdkCase } from './sdk-case.ts';
import { QUESTION } from './sdk-case.ts';

const messages = [{ role: 'user', content: QUESTION }];

/** A call of the native API, whose lines are read one by one, as its clients do. */
const ollamaCase = (name: string, path: string, body: Record<string, unknown>): SdkCase => ({
  name,
  async run({ baseUrl }) {
    const response = await fetch(baseUrl + path, {
      method: 'POST',
      body: JSON.stringify({ model: 'llama3.2', ...body }),
    });
    const lines = (await response.text()).trimEnd().split('\n');
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      lines: lines.map((line) => JSON.parse(line) as unknown),
    };
  },
});

/** Ollama's native API. It streams unless it is told not to. */
export const OLLAMA_CASES: readonly SdkCase[] = [
  ollamaCase('chat, streamed by default', '/api/chat', { messages }),
  ollamaCase('chat', '/api/chat', { messages, stream: false }),
  ollamaCase('generate, streamed by default', '/api/generate', { prompt: QUESTION }),
];
