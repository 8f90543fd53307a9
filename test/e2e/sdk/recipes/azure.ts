import { AzureOpenAI } from 'openai';

export function connect(headgateUrl: string, apiKey: string) {
  const deployment = { apiVersion: '2024-10-21', deployment: 'my-deployment' };
  return new AzureOpenAI({ endpoint: `${headgateUrl}/azure`, apiKey, ...deployment });
}
