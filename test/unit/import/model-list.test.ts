// LiteLLM's lists of deployments: several of one name are a group with members.
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { keepKnownCaps } from '../../../packages/import/src/known-caps.ts';
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
    const { config, notes, omitted } = taken(
      deployment('gpt-4o', 'azure/eu-4o', { ...AZURE, rpm: 60, tpm: 90_000, weight: 2, order: 1 }),
      deployment('gpt-4o', 'openai/gpt-4o', {
        api_key: 'os.environ/OPENAI_API_KEY',
        max_parallel_requests: 5,
        order: 2,
      }),
    );
    expect(config.upstreams).toMatchObject([
      {
        id: 'team-eu-openai-azure-com',
        // Beside OpenAI it is called as OpenAI is.
        base_url: 'https://team-eu.openai.azure.com/openai/v1',
        dialect: 'openai',
      },
    ]);
    expect(omitted).toEqual([]);
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
      'Set the secret UPSTREAM_AZURE_KEY_EU to the value of the environment variable AZURE_KEY_EU.',
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

  it('keep the dialect of Azure where all are there', () => {
    const { config } = taken(
      deployment('gpt-4o', 'azure/eu-4o', AZURE),
      deployment('gpt-4o', 'azure/us-4o', {
        api_base: 'https://team-us.openai.azure.com/',
        api_key: 'os.environ/AZURE_KEY_US',
      }),
    );
    expect(config.upstreams.map(({ base_url: base, dialect }) => [base, dialect])).toEqual([
      ['https://team-eu.openai.azure.com', 'azure'],
      ['https://team-us.openai.azure.com', 'azure'],
    ]);
  });

  it('report each field that is not taken over, with its places', () => {
    const list = [
      { ...deployment('m', 'gpt-5', { temperature: 0 }), model_info: { id: 'x', team_id: 'y' } },
      deployment('n', 'gpt-5', { temperature: 0 }),
    ];
    const imported = importConfig({
      model_list: list,
      router_settings: { timeout: 30, redis_host: 'x' },
      litellm_settings: { success_callback: ['langfuse'] },
      guardrails: [],
    });
    expect(imported.ok && imported.omitted.map(({ path }) => path).toSorted()).toEqual([
      'guardrails',
      'litellm_settings.success_callback',
      'model_list[0].litellm_params.temperature',
      'model_list[0].model_info.team_id',
      'router_settings.redis_host',
      'router_settings.timeout',
    ]);
    const text = imported.ok ? JSON.stringify(imported.omitted) : '';
    expect(text).toContain('so in model_list[1].litellm_params.temperature');
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
    expect(kept.notes).toEqual([expect.stringContaining('Member `zai:a` of `glm` keeps')]);
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

describe('a deployment is left out, with the path', () => {
  const good = deployment('good', 'gpt-5');

  it.each<[string, object, string]>([
    [
      'without an address',
      deployment('m', 'nowhere/m'),
      'model_list[1].litellm_params.model: names no provider with a known address',
    ],
    [
      'at Bedrock without a region',
      deployment('m', 'bedrock/anthropic.claude-v2'),
      'model_list[1].litellm_params.model: is an Amazon Bedrock model without a region',
    ],
    [
      'at Bedrock with keys that sign',
      deployment('m', 'bedrock/m', { aws_region_name: 'us-east-1', aws_access_key_id: 'AKIA' }),
      'model_list[1].litellm_params.aws_access_key_id: signs calls',
    ],
    [
      'at Vertex AI',
      deployment('m', 'vertex_ai/gemini-2.5-pro', { vertex_project: 'p' }),
      'model_list[1].litellm_params.model: is a Vertex AI model',
    ],
    [
      'of a Gemini model without a provider, which LiteLLM calls at Vertex AI',
      deployment('m', 'gemini-1.5-pro', { api_key: 'os.environ/GEMINI_API_KEY' }),
      'is a Vertex AI model',
    ],
    [
      'in a dialect of its own',
      deployment('m', 'sagemaker/m'),
      'names the provider `sagemaker`, whose dialect Headgate does not support',
    ],
    [
      'whose organization pays',
      deployment('m', 'openai/m', { organization: 'org-1' }),
      'model_list[1].litellm_params.organization: chooses the organization that pays',
    ],
    [
      'at an address with a password, which is not repeated',
      deployment('m', 'openai/m', { api_base: 'https://me:word-4711@llm.example.com/v1' }),
      'model_list[1].litellm_params.api_base: contains a user name or password',
    ],
    [
      'with a limit that is none',
      deployment('m', 'gpt-5', { rpm: -1 }),
      'model_list[1].litellm_params.rpm: expected at least 0, got -1',
    ],
    [
      'with a variable that is not set',
      deployment('m', 'openai/m', { api_base: 'os.environ/NOWHERE_BASE' }),
      'model_list[1].litellm_params.api_base: uses the environment variable NOWHERE_BASE, which is not set',
    ],
    [
      'with a credential that is not there',
      deployment('m', 'openai/m', { litellm_credential_name: 'none' }),
      'model_list[1].litellm_params.litellm_credential_name: names a credential',
    ],
    [
      'with the name of another in other letters',
      deployment('GOOD', 'gpt-5'),
      'model_list[1].model_name: is `good` in another case',
    ],
    [
      'that is there already',
      good,
      'model_list[1]: is the same as model_list[0], with the same key and model',
    ],
    [
      'for every model, at the provider of its name',
      deployment('*', '*'),
      'model_list[1].litellm_params.model: sends each model to the provider in its name',
    ],
    [
      'for a pattern that matches a model with a group of its own',
      deployment('*', 'openai/*'),
      'model_list[1].model_name: also matches calls of `good`',
    ],
    [
      'for a pattern whose models have other names there',
      deployment('ours-*', 'openai/*'),
      'model_list[1].model_name: is a pattern whose models have other names at the provider',
    ],
    [
      'with a budget for no period',
      deployment('m', 'gpt-5', { max_budget: 5, budget_duration: 'often' }),
      'model_list[1].litellm_params.max_budget: has an invalid period',
    ],
    [
      'with a budget that never resets',
      deployment('m', 'gpt-5', { max_budget: 5 }),
      'model_list[1].litellm_params.max_budget: has no period',
    ],
    [
      'with a deployment of Azure in place of its model',
      deployment('m', 'azure/gpt-5', { ...AZURE, deployment_id: 'eu' }),
      'model_list[1].litellm_params.deployment_id: replaces model',
    ],
  ])('%s', (_what, entry, message) => {
    const imported = taken(good, entry);
    const { config, omitted } = imported;
    expect(JSON.stringify(imported)).not.toContain('4711');
    expect(config.groups.map(({ name }) => name)).toEqual(['good']);
    expect(omitted.map(({ path, message: why }) => `${path}: ${why}`)).toEqual([
      expect.stringContaining(message),
    ]);
  });

  it('and a list without any other is refused', () => {
    expect(refused(deployment('m', 'nowhere/m'))).toEqual([
      expect.stringContaining('model_list[0].litellm_params.model: names no provider'),
    ]);
    expect(refused()).toEqual([expect.stringContaining('model_list: expected at least 1 entry')]);
  });
});

describe('a key in a list of deployments', () => {
  it('is not taken over or repeated, and is asked for as a secret', () => {
    const { config, notes } = taken(
      deployment('My M', 'gpt-5', { api_key: 'sk-proj-1' }),
      deployment('other', 'gpt-5', { api_key: 'sk-proj-1' }),
      deployment('third', 'gpt-5', { api_key: 'sk-proj-2' }),
    );
    const secrets = config.groups.map(({ members }) => members[0]?.secret);
    expect(secrets).toEqual(['UPSTREAM_MY_M_1_KEY', 'UPSTREAM_MY_M_1_KEY', 'UPSTREAM_THIRD_3_KEY']);
    expect(notes).toContain(
      'Set the secret UPSTREAM_THIRD_3_KEY to the key of model_list[2]. Keys are not imported.',
    );
    expect(JSON.stringify([config, notes])).not.toContain('sk-proj');
  });

  it('is not repeated either where it stands in place of the name of a variable', () => {
    const imported = taken(deployment('m', 'gpt-5', { api_key: 'os.environ/sk-proj-1' }));
    expect(imported.config.groups[0]?.members[0]?.secret).toBe('UPSTREAM_M_1_KEY');
    expect(JSON.stringify(imported).toLowerCase()).not.toMatch(/sk.proj/);
  });

  it('that means none makes an upstream that is sent none', () => {
    const { config } = taken(
      deployment('m', 'openai/m', { api_base: 'http://0.0.0.0:4000/v1', api_key: 'none' }),
    );
    expect(config.upstreams).toMatchObject([{ base_url: 'http://0.0.0.0:4000/v1', auth: 'none' }]);
    expect(config.groups[0]?.members[0]).not.toHaveProperty('secret');
  });
});

describe('the provider of a model', () => {
  it.each([
    ['claude-3-5-sonnet-20240620', 'anthropic', 'claude-3-5-sonnet-20240620'],
    ['gpt-4o', 'openai', 'gpt-4o'],
    ['o3-mini', 'openai', 'o3-mini'],
    ['ft:gpt-4o:org:x:1', 'openai', 'ft:gpt-4o:org:x:1'],
    ['command-r-plus', 'cohere', 'command-r-plus'],
    ['mistral-large-latest', 'mistral', 'mistral-large-latest'],
    ['deepseek-chat', 'deepseek', 'deepseek-chat'],
    ['gemini/gemini-2.5-pro', 'gemini', 'gemini-2.5-pro'],
    ['cohere_chat/command-r', 'cohere', 'command-r'],
    ['together_ai/meta-llama/Llama-3', 'together', 'meta-llama/Llama-3'],
    ['fireworks_ai/accounts/a/models/m', 'fireworks', 'accounts/a/models/m'],
    ['openrouter/google/gemini-2.5-pro', 'openrouter', 'google/gemini-2.5-pro'],
    ['dashscope/qwen-max', 'dashscope-intl', 'qwen-max'],
    ['volcengine/doubao', 'ark-cn-beijing-volces-com', 'doubao'],
    ['ollama/llama3', 'localhost-11434', 'llama3'],
  ])('is named by %s: %s', (model, upstream, there) => {
    const { config } = taken(deployment('m', model));
    expect(config.groups[0]?.members).toMatchObject([{ upstream, models: { m: there } }]);
  });

  it('is the one of custom_llm_provider, and of a known address', () => {
    const { config } = taken(
      deployment('a', 'meta-llama/L', { custom_llm_provider: 'together_ai' }),
      deployment('b', 'llama-3', { api_base: 'https://api.groq.com/openai/v1' }),
      deployment('c', 'facebook/opt-125m', { api_base: 'https://llm.example.com/v1' }),
    );
    const members = config.groups.map((group) => group.members[0]);
    expect(
      members.map((member) => [member?.upstream, Object.values(member?.models ?? {})]),
    ).toEqual([
      ['together', ['meta-llama/L']],
      ['groq', ['llama-3']],
      ['llm-example-com', ['facebook/opt-125m']],
    ]);
  });

  it('is in the region of Bedrock that is written, with a Bedrock API key', () => {
    const { config } = taken(
      deployment('a', 'bedrock/converse/anthropic.claude-v2', { aws_region_name: 'us-east-1' }),
      deployment('b', 'bedrock/eu-west-1/anthropic.claude-v2'),
    );
    expect(config.upstreams.map(({ base_url: base, dialect }) => [base, dialect])).toEqual([
      ['https://bedrock-runtime.us-east-1.amazonaws.com', 'bedrock'],
      ['https://bedrock-runtime.eu-west-1.amazonaws.com', 'bedrock'],
    ]);
    expect(config.groups.map(({ members }) => members[0])).toMatchObject([
      { secret: 'UPSTREAM_AWS_BEARER_TOKEN_BEDROCK', models: { a: 'anthropic.claude-v2' } },
      { secret: 'UPSTREAM_AWS_BEARER_TOKEN_BEDROCK', models: { b: 'anthropic.claude-v2' } },
    ]);
  });
});

describe('a name in front of a model', () => {
  it.each(['claude-agent-sdk/sonnet', 'gpt-proxy/gpt-5', 'azure/', 'openai/'])(
    'is omitted with an unknown provider or without a model behind it: %s',
    (model) => {
      const { omitted } = taken(deployment('m', model), deployment('n', 'openai/n'));
      expect(omitted.map(({ path }) => path)).toEqual(['model_list[0].litellm_params.model']);
    },
  );

  it.each([
    ['openai/responses/gpt-5', 'gpt-5'],
    ['azure/responses/eu-5', 'eu-5'],
    ['azure/o_series/eu-o3', 'eu-o3'],
  ])('may be followed by the way of calling it, which is removed: %s', (model, there) => {
    const { config } = taken(deployment('m', model, model.startsWith('azure') ? AZURE : {}));
    expect(config.groups[0]?.members[0]?.models).toEqual({ m: there });
  });
});

describe('an address of a deployment', () => {
  it.each([
    ['openai/x', 'https://api.openai.com/v2/x', 'https://api.openai.com/v2/x', undefined],
    ['openai/x', 'https://api.deepseek.com/beta', 'https://api.deepseek.com/beta', undefined],
    [
      'openai/x',
      'https://llm.example.com/v1/chat/completions',
      'https://llm.example.com/v1',
      undefined,
    ],
    // LiteLLM puts the route right behind what is written.
    ['openai/x', 'https://llm.example.com', 'https://llm.example.com', ''],
    [
      'openai/gemini-2.5-pro',
      'https://generativelanguage.googleapis.com/v1beta/openai/',
      'https://generativelanguage.googleapis.com/v1beta/openai',
      undefined,
    ],
    [
      'azure/x',
      'https://a.openai.azure.com/openai/deployments/x',
      'https://a.openai.azure.com',
      undefined,
    ],
  ])('of %s keeps its path: %s', (model, api_base, base_url, openai_at) => {
    const { config } = taken(deployment('m', model, { api_base }));
    expect(config.upstreams.map((each) => [each.base_url, each.openai_at])).toEqual([
      [base_url, openai_at],
    ]);
  });
});

describe('variables in a list of deployments', () => {
  const document = {
    environment_variables: { EU_BASE: 'https://team-eu.openai.azure.com', SLOTS: '4' },
    credential_list: [
      {
        credential_name: 'eu',
        credential_values: { api_key: 'os.environ/EU_KEY', api_base: 'os.environ/EU_BASE' },
      },
    ],
    model_list: [
      deployment('m', 'os.environ/MODEL', {
        litellm_credential_name: 'eu',
        rpm: 'os.environ/RPM',
        max_parallel_requests: 'os.environ/SLOTS',
      }),
    ],
    router_settings: { num_retries: 'os.environ/RETRIES', cooldown_time: 'os.environ/NONE' },
  };

  it('are resolved in every field, except keys', () => {
    const env = { MODEL: 'azure/eu-4o', RPM: '60', EU_KEY: 'sk-secret', RETRIES: '3' };
    const imported = importConfig(document, { system: 'litellm', env });
    if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
    expect(imported.config.groups).toMatchObject([
      {
        retries: { max: 3 },
        members: [
          {
            secret: 'UPSTREAM_EU_KEY',
            models: { m: 'eu-4o' },
            limits: { rpm: 60, max_concurrency: 4 },
          },
        ],
      },
    ]);
    expect(imported.omitted.map(({ path }) => path)).toEqual(['router_settings.cooldown_time']);
    expect(JSON.stringify(imported)).not.toContain('sk-secret');
  });
});

describe('variables outside of parameters', () => {
  const document = {
    environment_variables: { NAME: 'chat', PERIOD: '1d' },
    model_list: [
      deployment('os.environ/NAME', 'openai/gpt-5'),
      deployment('b', 'openai/gpt-5-mini'),
      deployment('os.environ/OTHER', 'openai/gpt-5'),
    ],
    router_settings: {
      model_group_alias: { x: 'os.environ/NAME', y: 'os.environ/NONE' },
      fallbacks: [{ b: 'os.environ/NAME' }],
      provider_budget_config: { openai: { budget_limit: 8, time_period: 'os.environ/PERIOD' } },
    },
  };

  it('are resolved in names of models, in other names, in fallbacks and in periods', () => {
    const imported = importConfig(document, { system: 'litellm' });
    if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
    const { groups } = imported.config;
    expect(groups.map(({ match, members }) => [match.models, members.length])).toEqual([
      [['chat', 'x'], 1],
      [['b'], 2],
    ]);
    expect(groups[0]?.members[0]?.limits.budget_usd.per_day).toBeCloseTo(8 / 3, 5);
    expect(imported.omitted.map(({ path }) => path)).toEqual([
      'router_settings.model_group_alias.y',
      'model_list[2].model_name',
    ]);
  });

  it('without a value leave no limit of the whole proxy over everything else', () => {
    const imported = importConfig({
      model_list: [deployment('os.environ/NONE', 'openai/gpt-5')],
      litellm_settings: { max_budget: 20, budget_duration: '1d' },
    });
    expect(imported.ok ? [] : imported.errors.map(({ path }) => path)).toEqual([
      'model_list[0].model_name',
    ]);
  });
});

describe('numbers and switches that are written as text', () => {
  it('are read as LiteLLM reads them', () => {
    const document = {
      model_list: [
        {
          ...deployment('m', 'openai/m', {
            rpm: 'os.environ/RPM',
            max_parallel_requests: '4',
            weight: '2.5',
            input_cost_per_token: '1e-6',
          }),
          tpm: '90_000',
          model_info: { output_cost_per_token: '.000002', cache_read_input_token_cost: '1e-7' },
        },
        deployment('1', 'openai/4', { tags: ['a'] }),
      ],
      router_settings: {
        num_retries: '2',
        enable_tag_filtering: 'yes',
        disable_cooldowns: 'off',
        provider_budget_config: { openai: { budget_limit: '10', time_period: '1d' } },
      },
      litellm_settings: { cooldown_time: 'soon' },
    };
    const imported = importConfig(document, { system: 'litellm', env: { RPM: '60' } });
    if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
    expect(imported.config.groups).toMatchObject([
      {
        retries: { max: 2 },
        members: [
          {
            weight: 2.5,
            limits: {
              rpm: 60,
              tpm: 90_000,
              max_concurrency: 4,
              budget_usd: { per_day: 10 },
            },
          },
        ],
      },
    ]);
    expect(imported.config.upstreams).toMatchObject([
      { prices: { m: { input: 1, output: 2, cache_read: 0.1 } } },
    ]);
    expect(imported.omitted.map(({ path }) => path)).toEqual([
      'litellm_settings.cooldown_time',
      'model_list[1].litellm_params.tags',
    ]);
  });
});

describe('the order of deployments', () => {
  it('makes tiers by name, whatever the numbers are, and those without one come last', () => {
    const { config, omitted } = taken(
      deployment('m', 'openai/a', { order: 90 }),
      deployment('m', 'openai/b'),
      deployment('m', 'openai/c', { order: 0 }),
      deployment('m', 'openai/d', { order: '5' }),
      deployment('m', 'openai/e', { order: 0 }),
      deployment('n', 'openai/a', { order: 7 }),
      deployment('o', 'openai/a'),
    );
    const tiers = config.groups.map(({ members }) => members.map(({ tier }) => tier));
    expect(tiers).toEqual([[3, 4, 1, 2, 1], [1], [1]]);
    expect(omitted).toEqual([]);
  });

  it('is listed where a group has no tier for it', () => {
    const { config, omitted } = taken(
      ...Array.from({ length: 12 }, (_, at) => deployment('m', `openai/m${at}`, { order: at })),
    );
    expect(config.groups[0]?.members.map(({ tier }) => tier).slice(-3)).toEqual([10, 10, 10]);
    expect(omitted).toEqual([
      {
        path: 'model_list[10].litellm_params.order',
        message: expect.stringContaining('(also in model_list[11].litellm_params.order)'),
      },
    ]);
  });
});

describe('parameters of a deployment', () => {
  it('that say something where they are false are listed, and empty lists of settings are not', () => {
    const imported = importConfig({
      model_list: [
        deployment('m', 'openai/m', { ssl_verify: false, api_base: 'https://m.example' }),
      ],
      litellm_settings: { ssl_verify: false, success_callback: [], cache: false },
      router_settings: { model_group_alias: { other: ['m'] } },
      assistant_settings: { custom_llm_provider: 'openai' },
    });
    if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
    expect(imported.omitted.map(({ path }) => path).toSorted()).toEqual([
      'assistant_settings',
      'litellm_settings.ssl_verify',
      'model_list[0].litellm_params.ssl_verify',
      'router_settings.model_group_alias.other',
    ]);
  });

  it('whose price is none are listed with their place', () => {
    const { omitted } = taken(
      deployment('m', 'openai/m', { input_cost_per_token: 300 }),
      deployment('n', 'openai/n'),
    );
    expect(omitted.map(({ path }) => path)).toEqual([
      'model_list[0].litellm_params.input_cost_per_token',
    ]);
  });

  it('that are switched off or empty leave nothing out', () => {
    const { config, omitted } = taken(
      deployment('m', 'openai/m', {
        use_litellm_proxy: false,
        extra_headers: {},
        organization: '',
      }),
      deployment('n', 'openai/n', { use_litellm_proxy: true }),
    );
    expect(config.groups.map(({ name }) => name)).toEqual(['m']);
    expect(omitted.map(({ path }) => path)).toEqual([
      'model_list[1].litellm_params.use_litellm_proxy',
    ]);
  });

  it('count where they stand: under another name, or in its credential', () => {
    const imported = importConfig({
      credential_list: [
        { credential_name: 'paid', credential_values: { api_key: 'k', organization: 'org-1' } },
      ],
      model_list: [
        deployment('house', 'openai/llama', { base_url: 'https://llm.example.com/v1' }),
        deployment('paid', 'gpt-5', { litellm_credential_name: 'paid' }),
      ],
    });
    if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
    expect(imported.config.upstreams.map(({ base_url: base }) => base)).toEqual([
      'https://llm.example.com/v1',
    ]);
    expect(imported.config.groups.map(({ name }) => name)).toEqual(['house']);
    expect(imported.omitted.map(({ path }) => path)).toEqual([
      'model_list[1].litellm_params.organization',
    ]);
  });
});

describe('limits and settings of a list of deployments', () => {
  const settings = (more: object, ...model_list: object[]) => {
    const imported = importConfig({ model_list, ...more });
    if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
    return imported;
  };
  const two = [deployment('a', 'gpt-5'), deployment('b', 'gpt-5-mini', { order: 2 })];

  it('are read beside litellm_params too, and of all deployments', () => {
    const { config } = settings(
      { general_settings: { max_parallel_requests: 7, global_max_parallel_requests: 9 } },
      { ...deployment('a', 'gpt-5'), rpm: 60, tpm: 900 },
      deployment('b', 'gpt-5-mini', { max_parallel_requests: 2 }),
    );
    const limits = config.groups.slice(0, 2).map(({ members }) => members[0]?.limits);
    expect(limits).toMatchObject([
      { rpm: 60, tpm: 900, max_concurrency: 7 },
      { max_concurrency: 2 },
    ]);
    expect(config.groups.at(-1)).toMatchObject({
      name: 'all-models',
      match: { models: ['a', 'b'] },
      limits: { max_concurrency: 9 },
      members: [],
    });
  });

  it('make other models of a group members of later tiers, where one is a fallback', () => {
    const { config, omitted } = settings(
      {
        router_settings: { fallbacks: [{ a: ['b'] }, { b: ['claude', 'nothing'] }] },
        litellm_settings: { default_fallbacks: ['a'] },
      },
      ...two,
      deployment('claude', 'claude-sonnet-4-6'),
    );
    expect(
      config.groups.map(({ name, members }) => [
        name,
        members.map(({ models, tier }) => [models[name], tier]),
      ]),
    ).toEqual([
      [
        'a',
        [
          ['gpt-5', 1],
          ['gpt-5-mini', 2],
        ],
      ],
      ['b', [['gpt-5-mini', 1]]],
      ['claude', [['claude-sonnet-4-6', 1]]],
    ]);
    expect(omitted.map(({ path }) => path)).toEqual([
      'router_settings.fallbacks[1]',
      'router_settings.fallbacks[1]',
      'litellm_settings.default_fallbacks',
    ]);
    const options = { privateUpstreams: false, jurisdiction: null };
    expect(checkConfig(config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  });

  it('are retries, cool-downs and other names of models', () => {
    const { config } = settings(
      {
        router_settings: {
          num_retries: 4,
          cooldown_time: 30,
          model_group_alias: { old: 'a', hidden: { model: 'b', hidden: true } },
        },
      },
      ...two,
    );
    expect(config.groups).toMatchObject([
      {
        match: { models: ['a', 'old'] },
        members: [{ models: { a: 'gpt-5', old: 'gpt-5' } }],
        retries: { max: 4 },
        breaker: { hold_ms: 30_000 },
      },
      { match: { models: ['b', 'hidden'] } },
    ]);
  });

  it('are budgets, which never allow more than was written', () => {
    const { config, notes } = settings(
      {
        litellm_settings: { max_budget: 100, budget_duration: '30d' },
        router_settings: {
          provider_budget_config: { openai: { budget_limit: 10, time_period: '1d' } },
        },
      },
      ...two,
      deployment('c', 'claude-sonnet-4-6', { max_budget: 7, budget_duration: '7d' }),
    );
    expect(config.groups.at(-1)?.limits.budget_usd.per_month).toBe(100);
    expect(config.groups.map(({ members }) => members[0]?.limits.budget_usd.per_day)).toEqual([
      5,
      5,
      1,
      undefined,
    ]);
    expect(notes.join(' ')).toContain('is divided among 2 members');
  });

  it('are no budgets without a period that can be read: models at such a provider are left out', () => {
    const { config, omitted } = settings(
      {
        litellm_settings: { max_budget: 100 },
        router_settings: { provider_budget_config: { openai: { budget_limit: 10 } } },
      },
      ...two,
      deployment('c', 'claude-sonnet-4-6'),
    );
    expect(config.groups.map(({ name }) => name)).toEqual(['c', 'all-models']);
    expect(omitted.map(({ path }) => path)).toEqual([
      'litellm_settings.max_budget',
      'router_settings.provider_budget_config.openai',
    ]);
  });

  it('of another form than they have are listed, never dropped', () => {
    const { omitted } = settings(
      {
        router_settings: { fallbacks: { a: ['b'] }, model_group_alias: ['c'] },
        litellm_settings: { fallbacks: ['a'] },
        general_settings: ['master_key'],
        credential_list: { eu: {} },
      },
      ...two,
    );
    expect(omitted.map(({ path }) => path).toSorted()).toEqual([
      'credential_list',
      'general_settings',
      'litellm_settings.fallbacks[0]',
      'router_settings.fallbacks',
      'router_settings.model_group_alias',
    ]);
  });

  it('say so where a limit counts in several groups, each alone', () => {
    const { omitted } = settings(
      { router_settings: { fallbacks: [{ a: ['b'] }] } },
      deployment('a', 'gpt-5'),
      deployment('b', 'gpt-5-mini', { rpm: 60 }),
    );
    expect(omitted).toEqual([
      {
        path: 'model_list[1].litellm_params.rpm',
        message: expect.stringContaining('applies in each of the groups `a`, `b` separately'),
      },
    ]);
  });

  it('are prices and public names of models, at their upstreams', () => {
    const priced = { input_cost_per_token: 0.000_002_5, output_cost_per_token: 0.000_01 };
    const { config } = settings(
      {},
      { ...deployment('a', 'azure/x', AZURE), model_info: { base_model: 'azure/gpt-4o' } },
      deployment('b', 'gpt-5', priced),
      { ...deployment('c', 'gpt-5-mini'), model_info: priced },
    );
    expect(config.upstreams).toMatchObject([
      { id: 'team-eu-openai-azure-com', aliases: { x: 'gpt-4o' } },
      {
        id: 'openai',
        prices: { 'gpt-5': { input: 2.5, output: 10 }, 'gpt-5-mini': { input: 2.5, output: 10 } },
      },
    ]);
  });

  it('have their last tier in common with those of later fallbacks', () => {
    const models = Array.from({ length: 12 }, (_, at) => `m${at}`);
    const { config, omitted } = settings(
      { router_settings: { fallbacks: [{ m0: models.slice(1) }] } },
      ...models.map((name) => deployment(name, 'gpt-5', { api_key: `os.environ/${name}` })),
    );
    expect(config.groups[0]?.members.map(({ tier }) => tier).slice(-4)).toEqual([9, 10, 10, 10]);
    expect(omitted).toEqual(
      [10, 11].map((at) => ({
        path: `model_list[${at}]`,
        message: 'has no order of its own after tier 10, the maximum',
      })),
    );
  });

  it('are those of 32 members: a group has no more', () => {
    const { config, omitted } = taken(
      ...Array.from({ length: 34 }, (_, at) =>
        deployment('m', 'gpt-5', { api_key: `os.environ/K${at}` }),
      ),
    );
    expect(config.groups[0]?.members).toHaveLength(32);
    expect(omitted).toEqual(
      [32, 33].map((at) => ({
        path: `model_list[${at}]`,
        message: 'a group has at most 32 members',
      })),
    );
  });

  it('have prices of one model that contradict at an upstream each', () => {
    const priced = (dollars: number) => ({ input_cost_per_token: dollars / 1e6 });
    const { config } = taken(
      deployment('a', 'groq/llama', priced(1)),
      deployment('b', 'groq/llama', priced(2)),
      deployment('c', 'groq/llama'),
    );
    expect(config.groups.map(({ members }) => members[0]?.upstream)).toEqual([
      'groq',
      'groq-2',
      'groq',
    ]);
    expect(config.upstreams).toMatchObject([
      { id: 'groq', prices: { llama: { input: 1 } } },
      // Nothing but the address of a second one says where its routes begin.
      { id: 'groq-2', base_url: 'https://api.groq.com/openai/v1', prices: { llama: { input: 2 } } },
    ]);
  });

  it('have two deployments of one account and name at an upstream each', () => {
    const { config } = taken(
      deployment('m', 'azure/one', AZURE),
      deployment('m', 'azure/two', AZURE),
    );
    expect(config.groups[0]?.members.map(({ upstream }) => upstream)).toEqual([
      'team-eu-openai-azure-com',
      'team-eu-openai-azure-com-2',
    ]);
    const options = { privateUpstreams: false, jurisdiction: null };
    expect(checkConfig(config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  });
});

describe('two names that one call matches', () => {
  it('are one group, and the second is listed, wherever its model is', () => {
    const { config, notes, omitted } = taken(
      deployment('llama-4', 'together_ai/llama-4'),
      deployment('groq/llama-4', 'groq/llama-4'),
      deployment('groq/llama-3', 'groq/llama-3'),
    );
    expect(config.groups.map(({ name }) => name)).toEqual(['llama-4', 'groq-llama-3']);
    expect(omitted.map(({ path }) => path)).toEqual(['model_list[1].model_name']);
    expect(notes.join()).not.toContain('too_many_groups');
  });
});

describe('a pattern of models', () => {
  it('whose prefix is an upstream here, or can be made one, is removed as LiteLLM removes it', () => {
    const { config, omitted } = taken(
      deployment('openai/*', 'openai/*'),
      deployment('engine/*', 'xai/*'),
      deployment('claude-*', 'anthropic/claude-*'),
    );
    expect(omitted).toEqual([]);
    expect(config.groups.map(({ match, members }) => [match.models, members[0]?.upstream])).toEqual(
      expect.arrayContaining([
        [['openai/*'], 'openai'],
        [['engine/*'], 'engine'],
        [['claude-*'], 'anthropic'],
      ]),
    );
    expect(config.upstreams).toMatchObject([{ id: 'engine', base_url: 'https://api.x.ai' }]);
  });
});

describe('names that every object has', () => {
  const model_list = [deployment('gpt-4o', 'openai/gpt-4o')];

  it.each(['constructor', 'toString'])('are left out like other settings: %s', (field) => {
    const imported = importConfig({ model_list, router_settings: { [field]: 1 } });
    expect(imported).toMatchObject({
      omitted: [{ path: `router_settings.${field}`, message: 'has no counterpart' }],
    });
  });

  it('are variables that are not set', () => {
    expect(refused(deployment('gpt-4o', 'openai/gpt-4o', { rpm: 'os.environ/valueOf' }))).toEqual([
      'model_list[0].litellm_params.rpm: uses the environment variable valueOf, which is not set. Set it where you run headgate import, or write its value',
    ]);
  });
});
