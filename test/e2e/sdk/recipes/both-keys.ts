import OpenAI from 'openai';

export function connect(headgateUrl: string, gatewayKey: string, providerKey: string) {
  return new OpenAI({
    baseURL: `${headgateUrl}/openai/v1`,
    apiKey: providerKey,
    defaultHeaders: { 'headgate-key': gatewayKey },
  });
}
