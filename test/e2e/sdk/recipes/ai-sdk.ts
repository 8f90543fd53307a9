import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { streamText } from 'ai';

export function askOpenai(headgateUrl: string, apiKey: string, question: string) {
  const openai = createOpenAI({ baseURL: `${headgateUrl}/openai/v1`, apiKey });
  return streamText({ model: openai('gpt-4o-mini'), prompt: question }).textStream;
}

export function askAnthropic(headgateUrl: string, apiKey: string, question: string) {
  const anthropic = createAnthropic({ baseURL: `${headgateUrl}/anthropic/v1`, apiKey });
  return streamText({ model: anthropic('claude-haiku-4-5'), prompt: question }).textStream;
}
