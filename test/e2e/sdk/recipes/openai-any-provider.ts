import OpenAI from 'openai';

export async function* ask(headgateUrl: string, apiKey: string, question: string) {
  const client = new OpenAI({ baseURL: `${headgateUrl}/v1`, apiKey });
  const stream = await client.chat.completions.create({
    model: 'gemini/gemini-2.5-flash',
    messages: [{ role: 'user', content: question }],
    stream: true,
  });
  for await (const chunk of stream) yield chunk.choices[0]?.delta.content ?? '';
}
