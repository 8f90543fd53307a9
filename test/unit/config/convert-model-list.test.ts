// LiteLLM's lists of deployments: several of one name are a group with members.
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../src/config/import-config.ts';
import { keepKnownCaps } from '../../../src/config/keep-known-caps.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

const deployment = (model_name: string, model: string, more: object = {}) => ({
  model_name,
  litellm_params: { model, ...more },
});

const AZURE = {
  api_base: 'https://team-eu.openai.azure.com',
  api_key: 'os.environ/AZURE_KEY_EU',
};

function taken(...model_list: object[]) {
  const imported = importConfig({ model_list });
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  return imported;
}

function refused(...model_list: object[]): string[] {
  const imported = importConfig({ model_list });
  return imported.ok ? [] : imported.errors.map(({ path, message }) => `${path}: ${message}`);
}

describe('deployments of one name', () => {
  it('become a group with members, each with its address, key, names and limits', () => {
    const { config, notes } = taken(
      deployment('gpt-4o', 'azure/eu-4o', { ...AZURE, rpm: 60, tpm: 90_000, weight: 2 }),
      deployment('gpt-4o', 'openai/gpt-4o', {
        api_key: 'os.environ/OPENAI_API_KEY',
        max_parallel_requests: 5,
        order: 2,
      }),
    );
    expect(config.upstreams).toMatchObject([
      {
        id: 'team-eu-openai-azure-com',
        base_url: 'https://team-eu.openai.azure.com',
        dialect: 'azure',
      },
    ]);
    expect(config.groups).toMatchObject([
      {
        name: 'gpt-4o',
        match: { models: ['gpt-4o'] },
        members: [
          {
            upstream: 'team-eu-openai-azure-com',
            secret: 'UPSTREAM_AZURE_KEY_EU',
            models: { 'gpt-4o': 'eu-4o' },
            limits: { rpm: 60, tpm: 90_000, max_concurrency: null },
            weight: 2,
            tier: 1,
          },
          {
            upstream: 'openai',
            secret: 'UPSTREAM_OPENAI_API_KEY',
            models: {},
            limits: { max_concurrency: 5 },
            tier: 2,
          },
        ],
      },
    ]);
    expect(notes).toContain(
      'Set the secret UPSTREAM_AZURE_KEY_EU to what the environment variable AZURE_KEY_EU held.',
    );
  });

  it('keep to what the group matches, so that the whole is right', () => {
    const { config } = taken(
      deployment('My Claude', 'anthropic/claude-sonnet-4-6', { api_key: 'os.environ/A' }),
      deployment('My Claude', 'anthropic/claude-sonnet-4-6', { api_key: 'os.environ/B' }),
      deployment('openai/*', 'openai/*'),
    );
    expect(config.groups.map(({ name }) => name)).toEqual(['my-claude', 'openai']);
    expect(config.groups[0]?.members.map(({ models }) => models)).toEqual(
      Array.from({ length: 2 }, () => ({ 'My Claude': 'claude-sonnet-4-6' })),
    );
    const options = { privateUpstreams: false, jurisdiction: null };
    expect(checkConfig(config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  });

  it('go where the address is, once for each: to a built-in upstream, or to a new one without a key', () => {
    const { config } = taken(
      deployment('a', 'openai/a', { api_base: 'https://api.groq.com/openai/v1' }),
      deployment('b', 'openai/b', { api_base: 'https://llm.example.com/v1' }),
      deployment('c', 'openai/c', { api_base: 'https://llm.example.com/v1' }),
      deployment('d', 'openai/d', { api_base: 'https://llm.example.com/v2' }),
    );
    const upstreams = config.groups.flatMap(({ members }) => members.map((each) => each.upstream));
    expect(upstreams).toEqual(['groq', 'llm-example-com', 'llm-example-com', 'llm-example-com-2']);
    expect(config.groups[1]?.members[0]).not.toHaveProperty('secret');
  });

  it('know the keys that their providers are known for', () => {
    const { config } = taken(deployment('m', 'xai/grok-4'), deployment('gpt-5', 'gpt-5'));
    const secrets = config.groups.flatMap(({ members }) => members.map(({ secret }) => secret));
    expect(secrets).toEqual(['UPSTREAM_XAI_API_KEY', 'UPSTREAM_OPENAI_API_KEY']);
  });

  it('tell what is not taken over', () => {
    const document = {
      model_list: [{ ...deployment('m', 'gpt-5', { temperature: 0 }), model_info: { id: 'x' } }],
      router_settings: {},
    };
    const imported = importConfig(document);
    expect(imported.ok && imported.notes).toContain(
      'Not taken over: litellm_params.temperature, model_info, router_settings.',
    );
  });

  it('keep the concurrency that their model is known to have', () => {
    const { config } = taken(
      deployment('glm', 'zai/glm-5.1', { api_key: 'os.environ/A' }),
      deployment('glm', 'zai/glm-5.1', { api_key: 'os.environ/B', max_parallel_requests: 7 }),
    );
    const kept = keepKnownCaps(config);
    const slots = kept.config.groups[0]?.members.map(({ limits }) => limits.max_concurrency);
    expect(slots).toEqual([expect.any(Number), 7]);
    expect(kept.config.groups[0]?.limits.max_concurrency).toBeNull();
    expect(kept.notes).toEqual([expect.stringContaining('The member "zai:a" of "glm" keeps')]);
  });
});

describe('the endpoints of a coding plan', () => {
  it.each([
    ['https://api.z.ai/api/coding/paas/v4', 'zai-coding'],
    ['https://api.z.ai/api/coding/paas/v4/', 'zai-coding'],
    ['https://api.z.ai/api/coding/paas/v4/chat/completions', 'zai-coding'],
    ['https://api.z.ai//API/coding/paas/v4/', 'zai-coding'],
    ['https://api.z.ai/api/paas/v4/', 'zai'],
    ['https://open.bigmodel.cn/api/coding/paas/v4', 'zhipu-coding'],
    ['https://open.bigmodel.cn/api/coding/paas/v4/', 'zhipu-coding'],
    ['https://open.bigmodel.cn/api/paas/v4/', 'zhipu'],
  ])('are the built-in upstream, whichever provider the model names: %s', (api_base, id) => {
    for (const model of ['openai/glm-4.6', 'zai/glm-4.6']) {
      const { config } = taken(
        deployment('glm', model, { api_base, api_key: 'os.environ/A' }),
        deployment('glm', model, { api_base, api_key: 'os.environ/B' }),
      );
      expect(config.upstreams).toEqual([]);
      const member = { upstream: id, models: { glm: 'glm-4.6' } };
      expect(config.groups[0]?.members).toMatchObject([member, member]);
    }
  });
});

describe('a list of deployments is refused, with the path', () => {
  it.each<[string, object[], string]>([
    [
      'with a key itself, which is not repeated',
      [deployment('m', 'gpt-5', { api_key: 'sk-proj-1' })],
      'model_list[0].litellm_params.api_key: expected os.environ/NAME',
    ],
    [
      'of a provider without an address',
      [deployment('m', 'gpt-5'), deployment('m', 'bedrock/claude')],
      'model_list[1].litellm_params.model: names no provider with an address of its own',
    ],
    [
      'with two names of one group',
      [deployment('My M', 'gpt-5'), deployment('my-m', 'gpt-5')],
      'model_list[1].model_name: would become the group "my-m", as "My M" does',
    ],
    [
      'with a limit that is none',
      [deployment('m', 'gpt-5', { rpm: -1 })],
      'model_list[0].litellm_params.rpm: expected at least 0, got -1',
    ],
    ['without any', [], 'model_list: expected at least 1 entry'],
  ])('%s', (_what, list, message) => {
    expect(refused(...list)).toEqual([expect.stringContaining(message)]);
    expect(refused(...list).join('')).not.toContain('sk-proj');
  });
});
