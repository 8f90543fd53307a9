// Configurations of Hermes Agent: limits of calls at once, pools of keys, fallbacks and endpoints with names.
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

function taken(document: object) {
  const imported = importConfig(document);
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: true, jurisdiction: null };
  expect(checkConfig(imported.config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  return {
    ...imported,
    groups: imported.config.groups,
    upstreams: imported.config.upstreams.map(({ id, base_url: base, dialect, auth }) => ({
      id,
      base,
      dialect,
      auth,
    })),
    left: imported.omitted.map(({ path }) => path),
  };
}

describe('max_concurrent', () => {
  it('of the main model is the limit of its provider', () => {
    const { groups, upstreams, notes } = taken({
      model: { provider: 'zai', default: 'glm-5', max_concurrent: 2 },
    });
    expect(groups).toMatchObject([
      { name: 'zai', match: { upstreams: ['zai'], models: [] }, limits: { max_concurrency: 2 } },
    ]);
    expect(upstreams).toMatchObject([{ id: 'zai', auth: { secret: 'UPSTREAM_ZAI_API_KEY' } }]);
    expect(notes).toContain(
      'In Hermes, set `base_url` of model to https://<your Headgate>/zai/api/paas/v4, and its key to a gateway key.',
    );
  });

  it('of an endpoint is its limit, and that of one of its models a limit besides', () => {
    const { groups, upstreams } = taken({
      custom_providers: [
        {
          name: 'GPU Farm',
          base_url: 'https://gpu.example.com/v1',
          key_env: 'FARM_KEY',
          max_concurrent: 6,
          models: { 'llama3-70b': { max_concurrent: 2 }, small: {} },
        },
      ],
      providers: {
        proxy: {
          url: 'https://proxy.example.com/anthropic',
          api_key: '${PROXY_KEY}',
          max_concurrent: 3,
        },
      },
    });
    expect(
      groups.map(({ name, match, limits }) => [name, match.models, limits.max_concurrency]),
    ).toEqual([
      ['gpu-farm', [], 6],
      ['gpu-farm-llama3-70b', ['llama3-70b'], 2],
      ['proxy', [], 3],
    ]);
    expect(upstreams).toEqual([
      {
        id: 'gpu-farm',
        base: 'https://gpu.example.com/v1',
        dialect: 'openai',
        auth: { secret: 'UPSTREAM_FARM_KEY' },
      },
      {
        id: 'proxy',
        base: 'https://proxy.example.com/anthropic',
        dialect: 'anthropic',
        auth: { secret: 'UPSTREAM_PROXY_KEY' },
      },
    ]);
  });

  it('of the main model counts before that of its endpoint', () => {
    const { groups } = taken({
      model: { provider: 'custom:work', default: 'm', max_concurrent: 1 },
      custom_providers: [{ name: 'work', base_url: 'https://w.example.com/v1', max_concurrent: 9 }],
    });
    expect(groups.map(({ name, limits }) => [name, limits.max_concurrency])).toEqual([['work', 1]]);
  });

  it('of a second endpoint at one address is listed, with its key', () => {
    const at = { base_url: 'https://w.example.com/v1' };
    const { groups, omitted } = taken({
      custom_providers: [
        { name: 'one', ...at, key_env: 'ONE_KEY', max_concurrent: 2 },
        { name: 'two', ...at, key_env: 'TWO_KEY', max_concurrent: 9 },
      ],
    });
    expect(groups.map(({ name, limits }) => [name, limits.max_concurrency])).toEqual([['one', 2]]);
    expect(JSON.stringify(omitted)).toContain('custom_providers[1]');
  });

  it('and a key in place of the name of a variable are not repeated', () => {
    const imported = taken({
      custom_providers: [
        {
          name: 'one',
          base_url: 'https://w.example.com/v1',
          key_env: 'sk-4711',
          max_concurrent: 2,
        },
      ],
    });
    expect(JSON.stringify(imported)).not.toContain('4711');
  });

  it.each([0, -1, 2.5, 'many', null, [3]].map((slots) => [slots]))(
    'of the main model that is %j costs no other part',
    (slots) => {
      const { groups, left } = taken({
        model: { provider: 'zai', default: 'glm-5', max_concurrent: slots },
        custom_providers: [{ name: 'a', base_url: 'https://a.example/v1', max_concurrent: 2 }],
      });
      expect(groups.map(({ name, limits }) => [name, limits.max_concurrency])).toEqual([
        ['zai', null],
        ['a', 2],
      ]);
      expect(left).toEqual(slots === null ? [] : ['model.max_concurrent']);
    },
  );

  it('and a delay between calls may be written as text', () => {
    const { groups } = taken({
      model: { provider: 'zai', default: 'glm-5', max_concurrent: '3' },
      custom_providers: [
        {
          name: 'a',
          base_url: 'https://a.example/v1',
          max_concurrent: '2',
          rate_limit_delay: '0.5',
          models: { m: { max_concurrent: '1' } },
        },
      ],
    });
    expect(
      groups.map(({ name, limits }) => [name, limits.max_concurrency, limits.starts_per_s]),
    ).toEqual([
      ['zai', 3, null],
      ['a', 2, 2],
      ['a-m', 1, null],
    ]);
  });

  it('is for each key of a pool, whose keys are members', () => {
    const { groups, notes } = taken({
      model: { provider: 'openrouter', default: 'x/y', max_concurrent: 5 },
      credential_pool: {
        openrouter: [
          { source: 'env:OPENROUTER_API_KEY', priority: 1 },
          { source: 'manual', access_token: 'sk-4711', priority: 0 },
        ],
      },
    });
    expect(groups[0]).toMatchObject({
      name: 'openrouter',
      members: [
        {
          secret: 'UPSTREAM_OPENROUTER_API_KEY_2',
          limits: { max_concurrency: 5 },
          tier: 1,
        },
        { secret: 'UPSTREAM_OPENROUTER_API_KEY', limits: { max_concurrency: 5 }, tier: 2 },
      ],
    });
    expect(notes).toContain('max_concurrent 5 of openrouter applies to each of its 2 keys.');
    expect(JSON.stringify(notes)).not.toContain('471');
  });
});

describe('credential pools', () => {
  const pool = [{ source: 'env:KEY_A' }, { source: 'env:KEY_B' }];

  it.each([
    ['fill_first', [1, 2]],
    ['round_robin', [1, 1]],
    ['least_used', [1, 1]],
  ])('take turns as their strategy says: %s', (strategy, tiers) => {
    const { groups } = taken({
      credential_pool: { anthropic: pool },
      credential_pool_strategies: { anthropic: strategy },
    });
    expect(groups[0]?.members.map(({ tier }) => tier)).toEqual(tiers);
  });

  it('of an endpoint with a name are found by it', () => {
    const { groups } = taken({
      custom_providers: [{ name: 'Farm', base_url: 'https://farm.example.com/v1' }],
      credential_pool: { 'custom:farm': pool },
    });
    expect(groups).toMatchObject([
      { name: 'farm', members: [{ upstream: 'farm' }, { upstream: 'farm' }] },
    ]);
  });

  it('have the address of their provider beside each key, as auth.json has it', () => {
    const key = (more: object) => ({ auth_type: 'api_key', access_token: 'sk-4711', ...more });
    const { groups, upstreams, notes, left } = taken({
      version: 1,
      providers: { nous: { access_token: 'ey4711', inference_base_url: 'https://n.example' } },
      credential_pool: {
        openrouter: [
          key({ source: 'env:OPENROUTER_API_KEY', base_url: 'https://openrouter.ai/api/v1' }),
          key({ source: 'manual', base_url: 'https://openrouter.ai/api/v1' }),
          key({ source: 'manual', base_url: 'https://elsewhere.example/v1' }),
          key({ source: 'manual', last_status: 'dead' }),
        ],
        'custom:farm': [
          key({ source: 'config:farm', base_url: 'https://farm.example/v1' }),
          key({ source: 'manual', base_url: 'https://farm.example/v1' }),
        ],
        anthropic: [
          key({ source: 'env:ANTHROPIC_API_KEY', base_url: 'https://api.anthropic.com' }),
          { source: 'env:CLAUDE_CODE_OAUTH_TOKEN', access_token: 'sk-ant-oat01-4711' },
        ],
      },
    });
    expect(groups.map(({ match, members }) => [match.upstreams, members.length])).toEqual([
      [['openrouter'], 2],
      [['farm-example'], 2],
    ]);
    expect(upstreams.map(({ id, base }) => [id, base])).toEqual([
      ['farm-example', 'https://farm.example/v1'],
      ['anthropic', undefined],
    ]);
    expect(left).toEqual([
      'credential_pool.openrouter[2].base_url',
      'credential_pool.openrouter[3].last_status',
      'credential_pool.anthropic[1]',
    ]);
    expect(JSON.stringify(notes)).not.toContain('4711');
  });

  it('leave out what signs in by itself, each once', () => {
    const { groups, left } = taken({
      model: { provider: 'anthropic', default: 'claude-opus-4-6' },
      credential_pool: {
        anthropic: [{ auth_type: 'oauth', source: 'claude_code' }, ...pool, 'odd'],
      },
    });
    expect(groups[0]?.members).toHaveLength(2);
    expect(left).toEqual(['credential_pool.anthropic[0]', 'credential_pool.anthropic[3]']);
  });
});

describe('fallbacks', () => {
  it('are upstreams that calls spill to, with the model to ask for there', () => {
    const { groups, upstreams, notes } = taken({
      model: { provider: 'openrouter', default: 'anthropic/claude-opus-4.6', max_concurrent: 4 },
      fallback_providers: [
        { provider: 'zai', model: 'glm-5' },
        { provider: 'custom', model: 'llama', base_url: 'http://localhost:8000/v1' },
      ],
    });
    expect(groups[0]?.on_saturated).toMatchObject({
      spill_to: [
        { upstream: 'zai', model: 'glm-5' },
        { upstream: 'localhost-8000', model: 'llama' },
      ],
      after_ms: 60_000,
    });
    expect(upstreams.find(({ id }) => id === 'localhost-8000')?.auth).toBe('none');
    expect(notes).toContainEqual(expect.stringContaining('spills to `zai`, `localhost-8000`'));
  });

  it('may be one, in the older field', () => {
    const { groups } = taken({
      model: { provider: 'deepseek', default: 'deepseek-chat' },
      fallback_model: { provider: 'openrouter', model: 'deepseek/deepseek-chat' },
    });
    expect(groups[0]?.on_saturated).toMatchObject({
      spill_to: [{ upstream: 'openrouter', model: 'deepseek/deepseek-chat' }],
    });
  });

  it('of Anthropic go where its routes are', () => {
    const { groups, left } = taken({
      model: { provider: 'anthropic', default: 'claude-sonnet-4-6' },
      fallback_providers: [
        { provider: 'groq', model: 'x' },
        { provider: 'openrouter', model: 'anthropic/claude-sonnet-4.6' },
      ],
    });
    expect(groups[0]?.on_saturated).toMatchObject({
      spill_to: [{ upstream: 'openrouter', model: 'anthropic/claude-sonnet-4.6' }],
    });
    expect(left).toEqual(['fallback_providers[0]']);
  });

  it.each([
    [{ provider: 'nous', model: 'x' }, 'fallback_providers[0].provider'],
    [{ provider: 'openai-codex', model: 'x' }, 'fallback_providers[0].provider'],
    [{ provider: 'nowhere', model: 'x' }, 'fallback_providers[0].provider'],
    [{ provider: 'custom', model: 'x' }, 'fallback_providers[0].provider'],
    [{ provider: 'custom', model: 'x', base_url: 'ftp://x' }, 'fallback_providers[0].base_url'],
    [{ provider: 'openrouter' }, 'fallback_providers[0]'],
    [{ provider: 5, model: 'x' }, 'fallback_providers[0].provider'],
  ])('that cannot be called with a key are omitted: %j', (fallback, path) => {
    const { groups, left } = taken({
      model: { provider: 'zai', default: 'glm-5' },
      fallback_providers: [fallback],
    });
    expect(groups[0]?.on_saturated).toBe('queue');
    expect(left).toEqual([path]);
  });
});

describe('fallbacks that are omitted', () => {
  it('ask for no secret, and make no upstream', () => {
    const { upstreams, notes, left } = taken({
      model: { provider: 'zai', default: 'glm-5' },
      fallback_providers: [
        { provider: 'custom', base_url: 'https://a.example/anthropic', key_env: 'A', model: 'c' },
      ],
    });
    expect(left).toEqual(['fallback_providers[0]']);
    expect(upstreams.map(({ id }) => id)).toEqual(['zai']);
    expect(notes.join('\n')).not.toContain('UPSTREAM_A');
    expect(notes.join('\n')).not.toContain('a.example');
  });

  it.each([
    { model: { provider: 'nous', default: 'hermes-4' } },
    { model: { provider: 'zai', base_url: 5 } },
    {},
  ])('are listed where the main model is not imported: %j', (main) => {
    const { left } = taken({
      ...main,
      fallback_providers: [{ provider: 'deepseek', model: 'deepseek-chat' }],
      custom_providers: [{ name: 'a', base_url: 'https://a.example/v1', max_concurrent: 2 }],
    });
    expect(left).toContain('fallback_providers');
  });
});

describe('endpoints', () => {
  it.each([
    ['kimi-coding', 'moonshot'],
    ['kimi-coding-cn', 'moonshot-cn'],
    ['alibaba', 'dashscope-intl'],
    ['ai-gateway', 'vercel'],
    ['claude', 'anthropic'],
    ['xiaomi', 'mimo'],
    ['hf', 'huggingface'],
    ['google', 'gemini'],
    ['openai-api', 'openai'],
  ])('are named as there: %s', (provider, id) => {
    expect(taken({ model: { provider, default: 'm' } }).groups[0]?.match.upstreams).toEqual([id]);
  });

  it('go by their address first', () => {
    const { groups } = taken({
      model: { default: 'a/b', provider: 'auto', base_url: 'https://openrouter.ai/api/v1' },
    });
    expect(groups[0]?.match.upstreams).toEqual(['openrouter']);
  });

  it('in providers are named by their key or by their name', () => {
    const { groups, left } = taken({
      model: { provider: 'farm-launch', default: 'm' },
      providers: {
        'farm-launch': { name: 'Farm', api: 'https://farm.example.com/v1', key_env: 'FARM_KEY' },
        spare: { name: 'Spare', api: 'https://spare.example.com/v1', key_env: 'SPARE_KEY' },
      },
      fallback_providers: [{ provider: 'custom:Spare', model: 'n' }],
    });
    expect(groups).toMatchObject([
      {
        match: { upstreams: ['farm'] },
        on_saturated: { spill_to: [{ upstream: 'spare', model: 'n' }] },
      },
    ]);
    expect(left).toEqual([]);
  });

  it('that Hermes signs in to are omitted, also where it wrote their address down', () => {
    const { left } = taken({
      model: { provider: 'nous', base_url: 'https://inference-api.nousresearch.com/v1' },
      custom_providers: [{ name: 'a', base_url: 'https://a.example/v1', max_concurrent: 2 }],
    });
    expect(left).toEqual(['model.provider']);
  });

  it('with a command for keys keep it: Hermes sends the key', () => {
    const { upstreams, left } = taken({
      model: { provider: 'gw', default: 'm' },
      providers: { gw: { base_url: 'https://gw.example.com/v1', key_cmd: 'print-token' } },
    });
    expect(upstreams).toEqual([
      { id: 'gw', base: 'https://gw.example.com/v1', dialect: 'openai', auth: 'passthrough' },
    ]);
    expect(left).toEqual(['providers.gw.key_cmd']);
  });

  it('without an address are imported for the time between their calls', () => {
    const { groups, left } = taken({
      model: { provider: 'zai', default: 'glm-5' },
      providers: { anthropic: { rate_limit_delay: 200 } },
    });
    expect(groups[1]).toMatchObject({ name: 'anthropic', limits: { starts_per_s: 0.01 } });
    expect(left).toEqual(['providers.anthropic.rate_limit_delay']);
  });

  it('are imported beside parts of a wrong type, which are listed', () => {
    const { groups, left } = taken({
      model: { provider: 'zai', default: 5, max_concurrent: 2 },
      custom_providers: 'none',
      providers: { a: { base_url: 'https://a.example/v1', rate_limit_delay: 'soon' } },
      credential_pool: { openai: [{ source: 'env:A' }, { source: 'env:B' }], zai: 'key' },
      credential_pool_strategies: { openai: 7 },
    });
    expect(groups.map(({ name, members }) => [name, members.length])).toEqual([
      ['zai', 0],
      ['openai', 2],
    ]);
    expect(left).toEqual([
      'custom_providers',
      'credential_pool.zai',
      'credential_pool_strategies.openai',
      'providers.a.rate_limit_delay',
      'model.model',
    ]);
  });

  it('that are wrong are omitted, and the others imported', () => {
    const { groups, left } = taken({
      custom_providers: [
        { base_url: 'https://a.example.com/v1' },
        { name: 'b', base_url: 'https://b.example.com/v1', max_concurrent: -1 },
        { name: 'c', base_url: 'https://c.example.com/v1', max_concurrent: 2 },
        7,
      ],
    });
    expect(groups.map(({ name }) => name)).toEqual(['c']);
    expect(left).toEqual([
      'custom_providers[0].name',
      'custom_providers[1].max_concurrent',
      'custom_providers[3]',
    ]);
  });
});

it.each([
  [{ model: { provider: 'sk-4711', default: 'm' } }],
  [{ model_list: [{ model_name: 'a', model: 'm', provider: 'sk-4711' }] }],
  [{ strategy: { mode: 'single' }, targets: [{ provider: 'sk-4711' }] }],
])('repeats no key that stands in place of a provider: %j', (document) => {
  expect(JSON.stringify(importConfig(document))).not.toContain('4711');
});

it('leaves to Hermes what it does by itself, and says so', () => {
  const { notes, left } = taken({
    _config_version: 50,
    model: 'anthropic/claude-opus-4.6',
    custom_providers: [{ name: 'x', base_url: 'https://x.example.com/v1', max_concurrent: 1 }],
    delegation: { max_concurrent_children: 3 },
    terminal: { backend: 'local' },
  });
  expect(notes.at(-1)).toBe(
    'Hermes keeps these settings and still uses them: `delegation`, `terminal`.',
  );
  expect(left).toEqual(['model.provider']);
});

describe('names that every object has', () => {
  it.each(['constructor', '__proto__', 'toString'])('are no api_mode: %s', (mode) => {
    const { upstreams, notes } = taken({
      model: { provider: 'custom', base_url: 'https://llm.example/v1', api_mode: mode },
    });
    expect(upstreams).toMatchObject([{ base: 'https://llm.example/v1', dialect: 'openai' }]);
    expect(notes.join('\n')).not.toMatch(/native code|\[object/);
  });
});
