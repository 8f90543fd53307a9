import { describe, expect, test } from 'vitest';
import { providerOf } from '../../../src/providers/index.ts';
import { refusalRulesOf } from '../../../src/providers/refusals.ts';

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
});

describe('a refusal inside a 200', () => {
  test.each([
    ['minimax', 'upstream.test', true],
    ['mine', 'api.minimax.io', true],
    ['mine', 'API.Z.AI', true],
    ['zhipu', 'upstream.test', true],
    ['openai', 'api.openai.com', false],
    ['zai', 'api.openai.com', false],
    ['constructor', 'upstream.test', false],
  ])('of %s at %s may be: %s', (id, host, expected) => {
    expect(refusalRulesOf(upstream(id, host)).quirks.refusesInside200 === true).toBe(expected);
  });
});
