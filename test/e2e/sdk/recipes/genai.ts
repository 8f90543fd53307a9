import { GoogleGenAI } from '@google/genai';

export async function* ask(headgateUrl: string, apiKey: string, question: string) {
  const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${headgateUrl}/gemini` } });
  const request = { model: 'gemini-2.5-flash', contents: question };
  const stream = await client.models.generateContentStream(request);
  for await (const chunk of stream) yield chunk.text ?? '';
}
