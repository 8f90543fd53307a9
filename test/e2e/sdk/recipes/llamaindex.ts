import { OpenAI } from '@llamaindex/openai';

export async function* ask(headgateUrl: string, apiKey: string, question: string) {
  const llm = new OpenAI({ model: 'gpt-4o-mini', apiKey, baseURL: `${headgateUrl}/openai/v1` });
  const messages = [{ role: 'user' as const, content: question }];
  for await (const chunk of await llm.chat({ messages, stream: true })) yield chunk.delta;
}
