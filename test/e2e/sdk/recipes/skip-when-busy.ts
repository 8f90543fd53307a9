import OpenAI, { RateLimitError } from 'openai';

export async function askUnlessBusy(headgateUrl: string, apiKey: string, question: string) {
  const client = new OpenAI({ baseURL: `${headgateUrl}/openai/v1`, apiKey });
  try {
    return await client.chat.completions.create(
      { model: 'gpt-4o-mini', messages: [{ role: 'user', content: question }] },
      { headers: { 'headgate-max-wait': '0' }, maxRetries: 0 },
    );
  } catch (error) {
    // Without the header the 429 is the provider's own.
    const isBusy =
      error instanceof RateLimitError && error.headers.get('headgate-reason') === 'busy';
    if (isBusy) return null;
    throw error;
  }
}
