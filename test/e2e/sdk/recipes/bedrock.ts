import { BedrockOpenAI } from 'openai';

export function connect(headgateUrl: string, apiKey: string) {
  return new BedrockOpenAI({ baseURL: `${headgateUrl}/bedrock/openai/v1`, apiKey });
}
