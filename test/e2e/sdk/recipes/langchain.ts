import { ChatOpenAI } from '@langchain/openai';

export async function* ask(headgateUrl: string, apiKey: string, question: string) {
  const configuration = { baseURL: `${headgateUrl}/openai/v1` };
  const model = new ChatOpenAI({ model: 'gpt-4o-mini', apiKey, configuration });
  for await (const chunk of await model.stream(question)) yield chunk.text;
}
