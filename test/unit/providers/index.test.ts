import { describe, expect, test } from 'vitest';
import { providerOf } from '../../../src/providers/catalog.ts';

function upstream(id: string, host: string) {
  return { id, baseUrl: `https://${host}/v1` };
}

describe('the provider of an upstream', () => {
  test.each([
    ['openai', 'api.openai.com', 'openai'],
    ['mine', 'api.openai.com', 'openai'],
    ['openai', 'gateway.test', 'openai'],
    ['openai', 'api.groq.com', 'groq'],
    ['mine', 'API.Z.AI', 'zai'],
    ['mine', 'open.bigmodel.cn', 'zhipu'],
    ['mine', 'api.kimi.com', 'kimi-code'],
    ['mine', 'api.z.ai', 'zai'],
    ['mine', 'api.z.ai/api/coding/paas/v4', 'zai-coding'],
    ['zai-coding', 'api.z.ai', 'zai-coding'],
    ['mine', 'open.bigmodel.cn/api/coding/paas/v4', 'zhipu-coding'],
    ['zhipu', 'open.bigmodel.cn/api/paas/v4', 'zhipu'],
    ['zai', 'api.openai.com', 'openai'],
    ['mine', 'contoso.openai.azure.com', 'azure'],
    ['mine', 'contoso.services.ai.azure.com', 'azure'],
    ['azure', 'gateway.test', 'azure'],
    ['mine', 'inference.do-ai.run', 'digitalocean'],
    ['openai', 'us-central1-aiplatform.googleapis.com', 'vertex'],
    ['mine', 'aiplatform.eu.rep.googleapis.com', 'vertex'],
    ['openai', 'bedrock-runtime.us-east-1.amazonaws.com', 'bedrock'],
    ['openai', 'bedrock-mantle.us-east-1.api.aws', 'bedrock'],
    ['mine', 'gateway.test', undefined],
    ['mine', 'notapi.z.ai', undefined],
    ['constructor', 'gateway.test', undefined],
    ['__proto__', 'gateway.test', undefined],
  ])('%s at %s: %s', (id, host, expected) => {
    expect(providerOf(upstream(id, host))?.id).toBe(expected);
  });

  test.each([
    ['https://api.z.ai/api/coding/paas/v4', 'zai-coding'],
    ['https://api.z.ai/api/coding/paas/v4/', 'zai-coding'],
    ['https://API.Z.AI/api/coding/paas/v4/chat/completions', 'zai-coding'],
    ['https://api.z.ai//api/coding/paas/v4/', 'zai-coding'],
    ['https://api.z.ai/api//coding/paas//v4', 'zai-coding'],
    ['HTTPS://API.Z.AI/API/CODING/PAAS/V4', 'zai-coding'],
    ['https://api.z.ai//api/paas/v4', 'zai'],
    ['https://api.z.ai/api/paas/v4/', 'zai'],
    ['https://open.bigmodel.cn/api/coding/paas/v4', 'zhipu-coding'],
    ['https://open.bigmodel.cn/api/coding/paas/v4/', 'zhipu-coding'],
    ['https://open.bigmodel.cn//API/coding/paas/v4/', 'zhipu-coding'],
    ['https://open.bigmodel.cn/api/paas/v4/', 'zhipu'],
  ])('among several at a host is that of the path, as users write it: %s', (baseUrl, expected) => {
    expect(providerOf({ id: 'mine', baseUrl })?.id).toBe(expected);
  });
});
