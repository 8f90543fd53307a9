import Anthropic from '@anthropic-ai/sdk';

export async function* ask(headgateUrl: string, apiKey: string, question: string) {
  const client = new Anthropic({ baseURL: `${headgateUrl}/anthropic`, apiKey });
  const stream = client.messages.stream({
    model: 'claude-haiku-4-5',
    max_tokens: 1024,
    messages: [{ role: 'user', content: question }],
  });
  for await (const event of stream) {
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
      yield event.delta.text;
    }
  }
}
