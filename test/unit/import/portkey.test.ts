// Configs of Portkey's: targets are members, fallbacks tiers, conditions of models groups.
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

function taken(document: object) {
  const imported = importConfig(document, { system: 'portkey' });
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: true, jurisdiction: null };
  expect(checkConfig(imported.config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  return {
    ...imported,
    groups: imported.config.groups,
    upstreams: imported.config.upstreams,
    left: imported.omitted.map(({ path }) => path),
  };
}

/** Lists where the calls of each member of a group go. */
const placesOf = (group: ReturnType<typeof taken>['groups'][number] | undefined) =>
  group?.members.map(({ upstream, secret, models, tier }) => [upstream, secret, models, tier]);

const strategy = (mode: string, more: object = {}) => ({ strategy: { mode, ...more } });
const openai = (key: string, more: object = {}) => ({ provider: 'openai', api_key: key, ...more });
// oxlint-disable-next-line unicorn/no-thenable -- the field's name there
const when = (query: object, target: string) => ({ query, then: target });
const model = (name: string) => ({ override_params: { model: name } });

describe('targets', () => {
  it('of a load balancer have their weights, and one of weight 0 is switched off', () => {
    const { groups, notes } = taken({
      ...strategy('loadbalance'),
      targets: [
        openai('sk-4711', { weight: 0.7 }),
        openai('sk-4712', { weight: 0 }),
        openai('{{OPENAI_EU}}'),
      ],
    });
    expect(groups[0]).toMatchObject({
      name: 'portkey',
      match: { upstreams: ['openai'], models: [] },
      members: [
        { upstream: 'openai', secret: 'UPSTREAM_OPENAI_API_KEY', weight: 0.7, enabled: true },
        { upstream: 'openai', secret: 'UPSTREAM_OPENAI_API_KEY_2', enabled: false },
        { upstream: 'openai', secret: 'UPSTREAM_OPENAI_EU', weight: 1 },
      ],
      affinity: { by: 'none' },
    });
    expect(notes).toContain(
      'Set the secret UPSTREAM_OPENAI_EU to the value of the environment variable OPENAI_EU.',
    );
    expect(JSON.stringify(notes)).not.toContain('471');
  });

  it('of small weights keep their shares', () => {
    const { groups } = taken({
      ...strategy('loadbalance'),
      targets: [openai('a', { weight: 0.999 }), openai('b', { weight: 0.001 })],
    });
    expect(groups[0]?.members.map(({ weight }) => weight)).toEqual([9.99, 0.01]);
  });

  it('of large weights are scaled, and shares of nested ones multiplied', () => {
    const { groups } = taken({
      ...strategy('loadbalance'),
      targets: [
        openai('a', { weight: 3_000 }),
        {
          ...strategy('loadbalance'),
          weight: 1_000,
          targets: [openai('b', { weight: 1 }), openai('c', { weight: 3 })],
        },
      ],
    });
    expect(groups[0]?.members.map(({ weight }) => weight)).toEqual([1_000, 83.3333, 250]);
  });

  it('of a fallback are tiers, each in the dialect of all of them', () => {
    const { groups, upstreams } = taken({
      ...strategy('fallback'),
      targets: [
        openai('a', model('gpt-4o')),
        { provider: 'anthropic', api_key: 'b', ...model('claude-sonnet-4-6') },
        {
          provider: 'azure-openai',
          api_key: 'c',
          resource_name: 'team-eu',
          deployment_id: 'eu-4o',
          ...model('gpt-4o'),
        },
        { provider: 'google', api_key: 'd', ...model('gemini-2.5-pro') },
      ],
    });
    expect(groups[0]?.match.models).toEqual(['gpt-4o']);
    expect(placesOf(groups[0])).toEqual([
      ['openai', 'UPSTREAM_OPENAI_API_KEY', {}, 1],
      ['anthropic-openai', 'UPSTREAM_ANTHROPIC_API_KEY', { 'gpt-4o': 'claude-sonnet-4-6' }, 2],
      [
        'team-eu-openai-azure-com',
        'UPSTREAM_TEAM_EU_OPENAI_AZURE_COM_API_KEY',
        { 'gpt-4o': 'eu-4o' },
        3,
      ],
      ['gemini-openai', 'UPSTREAM_GEMINI_API_KEY', { 'gpt-4o': 'gemini-2.5-pro' }, 4],
    ]);
    expect(upstreams.map(({ base_url: base, dialect }) => [base, dialect])).toEqual([
      ['https://api.anthropic.com/v1', 'openai'],
      ['https://team-eu.openai.azure.com/openai/v1', 'openai'],
      ['https://generativelanguage.googleapis.com/v1beta/openai', 'openai'],
    ]);
  });

  it('of a fallback below a load balancer keep their order, and what is lost is listed', () => {
    const { groups, left } = taken({
      ...strategy('loadbalance'),
      targets: [
        openai('a'),
        {
          ...strategy('fallback', { on_status_codes: [429] }),
          targets: [openai('b'), openai('c')],
        },
      ],
    });
    expect(groups[0]?.members.map(({ tier }) => tier)).toEqual([1, 1, 2]);
    expect(left).toEqual(['targets[1].strategy.on_status_codes', 'targets[1].strategy']);
  });

  it('of one key and several models become upstreams of their own', () => {
    const { groups, upstreams } = taken({
      ...strategy('loadbalance'),
      targets: [openai('a', model('gpt-4o-mini')), openai('a', model('gpt-4o'))],
    });
    expect(placesOf(groups[0])).toEqual([
      ['openai', 'UPSTREAM_OPENAI_API_KEY', {}, 1],
      ['openai-2', 'UPSTREAM_OPENAI_API_KEY', { 'gpt-4o-mini': 'gpt-4o' }, 1],
    ]);
    expect(upstreams).toMatchObject([{ id: 'openai-2', base_url: 'https://api.openai.com' }]);
  });

  it('of one key and several models have upstreams that know where the routes of their provider begin', () => {
    const { upstreams } = taken({
      ...strategy('loadbalance'),
      targets: [
        { provider: 'groq', api_key: 'a', ...model('llama-3') },
        { provider: 'groq', api_key: 'a', ...model('qwen-3') },
      ],
    });
    expect(upstreams).toMatchObject([{ id: 'groq-2', base_url: 'https://api.groq.com/openai/v1' }]);
  });

  it('of one place twice are one member', () => {
    const { groups, left } = taken({
      ...strategy('fallback'),
      targets: [openai('a'), openai('a')],
    });
    expect(groups[0]?.members).toHaveLength(1);
    expect(left).toEqual(['targets[1]']);
  });

  it('inherit the host, the model and the time-out of what is above them', () => {
    const { groups, upstreams } = taken({
      ...strategy('fallback'),
      custom_host: 'https://llm.example.com/v1',
      request_timeout: 8_000,
      ...model('house-1'),
      targets: [openai('a'), openai('b', { custom_host: 'https://two.example.com/v1' })],
    });
    expect(groups[0]).toMatchObject({
      name: 'house-1',
      match: { models: ['house-1'] },
      members: [
        { upstream: 'llm-example-com', first_token_ms: 8_000 },
        { upstream: 'two-example-com', first_token_ms: 8_000 },
      ],
    });
    expect(upstreams).toHaveLength(2);
  });

  it('are read in the letters of SDKs, too', () => {
    const { groups } = taken({
      ...strategy('fallback'),
      targets: [
        { provider: 'openai', apiKey: 'a', overrideParams: { model: 'gpt-4o' } },
        { provider: 'openai', apiKey: 'b', customHost: 'https://llm.example.com/v1' },
      ],
    });
    expect(placesOf(groups[0])).toEqual([
      ['openai', 'UPSTREAM_OPENAI_API_KEY', {}, 1],
      ['llm-example-com', 'UPSTREAM_LLM_EXAMPLE_COM_API_KEY', {}, 2],
    ]);
  });
});

describe('clouds', () => {
  it.each([
    [
      {
        provider: 'bedrock',
        aws_region: 'eu-west-1',
        aws_access_key_id: 'A',
        aws_secret_access_key: 'B',
      },
      'https://bedrock-runtime.eu-west-1.amazonaws.com',
      'UPSTREAM_AWS_BEARER_TOKEN_BEDROCK',
    ],
    [
      { provider: 'workers-ai', workers_ai_account_id: 'abc', api_key: 'k' },
      'https://api.cloudflare.com/client/v4/accounts/abc/ai/v1',
      'UPSTREAM_API_CLOUDFLARE_COM_API_KEY',
    ],
    [
      {
        provider: 'azure-ai',
        azure_foundry_url: 'https://x.services.ai.azure.com/models',
        api_key: 'k',
      },
      'https://x.services.ai.azure.com/models',
      'UPSTREAM_X_SERVICES_AI_AZURE_COM_API_KEY',
    ],
  ])('have the address that their fields say: %j', (target, base, secret) => {
    const { groups, upstreams } = taken({ ...strategy('single'), targets: [target] });
    expect(upstreams.map((each) => each.base_url)).toEqual([base]);
    expect(groups[0]?.members[0]?.secret).toBe(secret);
  });

  it.each([
    [{ provider: 'vertex-ai', vertex_project_id: 'p', vertex_region: 'eu' }, 'targets[1].provider'],
    [
      { provider: 'azure-openai', resource_name: 'r', azure_auth_mode: 'entra' },
      'targets[1].azure_auth_mode',
    ],
    [
      { provider: 'azure-openai', resource_name: 'evil.com/', api_key: 'k' },
      'targets[1].resource_name',
    ],
    [{ provider: 'bedrock', aws_region: 'x.evil.com#', api_key: 'k' }, 'targets[1].aws_region'],
    [{ provider: 'sagemaker', aws_region: 'eu-west-1' }, 'targets[1].provider'],
    [
      { provider: 'openai', custom_host: 'https://u:p@x.example', api_key: 'k' },
      'targets[1].custom_host',
    ],
    [{ passthrough: true }, 'targets[1].passthrough'],
    [{ weight: 1 }, 'targets[1].provider'],
    [{ provider: 'openai', weight: -1 }, 'targets[1].weight'],
    [7, 'targets[1]'],
  ])('and others that cannot be called are omitted at their field: %j', (target, path) => {
    const { groups, left } = taken({ ...strategy('fallback'), targets: [openai('k'), target] });
    expect(groups[0]?.members).toHaveLength(1);
    expect(left).toEqual([path]);
  });
});

describe('stored providers', () => {
  it.each([
    ['@openai-prod', 'openai', 'UPSTREAM_OPENAI_PROD'],
    ['@anthropic-team-2', 'anthropic', 'UPSTREAM_ANTHROPIC_TEAM_2'],
    ['@google-prod', 'gemini', 'UPSTREAM_GOOGLE_PROD'],
    ['@my-together-ai', 'together', 'UPSTREAM_MY_TOGETHER_AI'],
  ])(
    'are taken for the provider that their name says, and that is noted: %s',
    (slug, id, secret) => {
      const { groups, notes } = taken({ provider: slug });
      expect(placesOf(groups[0])).toEqual([[id, secret, {}, 1]]);
      expect(notes[0]).toBe(
        `\`${slug}\` is stored at Portkey, and its name suggests ${id}. Check that the config goes there.`,
      );
    },
  );

  it.each(['@azure-prod', '@mystery', '@openai-on-azure', '@mistral-bedrock'])(
    'are refused if their name says none, or several, or one without an address: %s',
    (slug) => {
      const imported = importConfig({ provider: slug });
      expect(imported.ok ? [] : imported.errors).toEqual([
        {
          path: 'provider',
          message: expect.stringContaining(`only Portkey can resolve \`${slug}\``),
        },
      ]);
    },
  );

  it('name their models behind them', () => {
    const { groups } = taken({
      ...strategy('fallback'),
      targets: [model('@openai-prod/gpt-4o'), model('@together-prod/meta/llama-3')],
    });
    expect(placesOf(groups[0])).toEqual([
      ['openai', 'UPSTREAM_OPENAI_PROD', {}, 1],
      ['together', 'UPSTREAM_TOGETHER_PROD', { 'gpt-4o': 'meta/llama-3' }, 2],
    ]);
  });

  it('may be named by the model alone', () => {
    const { groups } = taken(model('@openai-prod/gpt-4o'));
    expect(placesOf(groups[0])).toEqual([['openai', 'UPSTREAM_OPENAI_PROD', {}, 1]]);
  });

  it('that are keys themselves are never repeated', () => {
    const document = {
      ...strategy('fallback'),
      targets: [openai('a'), { virtual_key: 'sk-4711' }],
    };
    expect(JSON.stringify(taken(document))).not.toContain('471');
  });
});

describe('conditions', () => {
  const targets = [
    { name: 'smart', ...openai('a', model('gpt-5')) },
    { name: 'cheap', ...openai('b', model('gpt-5-mini')) },
  ];
  const conditional = (conditions: object[], usual = 'cheap') => ({
    ...strategy('conditional', { conditions, default: usual }),
    targets,
  });

  it('of models become groups, and the default one of its own model', () => {
    const { groups, left } = taken(
      conditional([
        when({ 'params.model': { $eq: 'smartest' } }, 'smart'),
        when(
          {
            $or: [{ 'params.model': 'best' }, { 'params.model': { $in: ['top', 'best'] } }],
          },
          'smart',
        ),
      ]),
    );
    expect(
      groups.map(({ name, match, members }) => [name, match.models, members[0]?.models]),
    ).toEqual([
      ['smart', ['smartest', 'best', 'top'], { smartest: 'gpt-5', best: 'gpt-5', top: 'gpt-5' }],
      ['cheap', ['gpt-5-mini'], {}],
    ]);
    expect(left).toEqual([]);
  });

  it('of regular expressions become globs where no model is put in', () => {
    const { groups } = taken({
      ...strategy('conditional', {
        conditions: [when({ 'params.model': { $regex: '^gpt-4\\.1' } }, 'any')],
        default: 'any',
      }),
      targets: [{ name: 'any', ...openai('a') }],
    });
    expect(groups[0]?.match.models).toEqual(['gpt-4.1*']);
  });

  it.each([
    [{ 'metadata.plan': { $eq: 'paid' } }],
    [{ 'params.temperature': { $gt: 0.7 } }],
    [{ $and: [{ 'params.model': 'a' }, { 'metadata.plan': 'b' }] }],
    [{ 'params.model': { $ne: 'a' } }],
    [{ 'params.model': { $regex: '^(a|b)' } }],
    [{ 'params.model': 'a', 'url.pathname': '/x' }],
  ])('of anything else are omitted at their query: %j', (query) => {
    const { left, groups } = taken(conditional([when(query, 'smart')]));
    expect(left).toEqual(['strategy.conditions[0].query']);
    expect(groups.map(({ name }) => name)).toEqual(['cheap']);
  });

  it('never overlap: a call goes to one group with members', () => {
    const { groups, left } = taken(
      conditional([
        when({ 'params.model': 'x' }, 'smart'),
        when({ 'params.model': { $in: ['X', 'y'] } }, 'cheap'),
      ]),
    );
    expect(groups.map(({ match }) => match.models)).toEqual([['x'], ['y'], ['gpt-5-mini']]);
    expect(left).toEqual(['strategy.conditions[1].query']);
  });

  it('without a model for the rest leave the default out, with its place', () => {
    const { left } = taken({
      ...strategy('conditional', {
        conditions: [when({ 'params.model': 'x' }, 'a')],
        default: 'b',
      }),
      targets: [
        { name: 'a', ...openai('a') },
        { name: 'b', provider: 'groq', api_key: 'b' },
      ],
    });
    expect(left).toEqual(['strategy.default']);
  });

  it('below another strategy are omitted', () => {
    const { left } = taken({
      ...strategy('fallback'),
      targets: [openai('k'), conditional([when({ 'params.model': 'x' }, 'smart')])],
    });
    expect(left).toEqual(['targets[1].strategy.conditions']);
  });
});

describe('settings', () => {
  it('of retries, stickiness and the breaker are taken over', () => {
    const { groups, left } = taken({
      ...strategy('loadbalance', {
        sticky: { enabled: true, ttl: 600 },
        cb_config: {
          failure_threshold_percentage: 20,
          minimum_requests: 10,
          cooldown_interval: 60_000,
        },
      }),
      retry: { attempts: 3 },
      targets: [openai('a'), openai('b')],
    });
    expect(groups[0]).toMatchObject({
      retries: { max: 3 },
      affinity: { by: 'agent', for: '600s' },
      breaker: { threshold: 0.2, min_calls: 10, hold_ms: 60_000 },
    });
    expect(left).toEqual([]);
  });

  it('without a counterpart are omitted at their place', () => {
    const { left } = taken({
      ...strategy('fallback', { on_status_codes: [429] }),
      cache: { mode: 'simple' },
      retry: { attempts: 2, on_status_codes: [429] },
      input_guardrails: ['pii'],
      targets: [
        openai('a', {
          override_params: { model: 'gpt-4o', max_tokens: 9 },
          openai_organization: 'org',
          forward_headers: ['x-a'],
          odd_field: 1,
        }),
      ],
    });
    expect(left.toSorted()).toEqual([
      'cache',
      'input_guardrails',
      'retry.on_status_codes',
      'strategy.on_status_codes',
      'targets[0].forward_headers',
      'targets[0].odd_field',
      'targets[0].openai_organization',
      'targets[0].override_params.max_tokens',
    ]);
  });

  it('of a time-out mean nothing where nothing else can take the call', () => {
    const { groups, left } = taken({ ...openai('a'), request_timeout: 5_000 });
    expect(groups[0]?.members[0]).not.toHaveProperty('first_token_ms');
    expect(left).toEqual(['provider.request_timeout']);
  });
});

it('is refused with its paths if nothing of it can be read', () => {
  const imported = importConfig({ strategy: { mode: 'wrong' }, targets: [] });
  expect(imported.ok ? [] : imported.errors.map(({ path }) => path)).toEqual([
    'strategy.mode',
    'targets',
  ]);
});

describe('bounds and types', () => {
  it('of tiers and retries are kept, and values above them are listed', () => {
    const { groups, left } = taken({
      ...strategy('fallback'),
      retry: { attempts: 12 },
      targets: Array.from({ length: 12 }, (_, at) => openai(`{{KEY_${at}}}`, model('m'))),
    });
    expect(groups[0]?.retries.max).toBe(10);
    expect(groups[0]?.members.map(({ tier }) => tier)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10,
    ]);
    expect(left.toSorted()).toEqual(['retry.attempts', 'targets[10]', 'targets[11]']);
  });

  it('of parts that decide nothing about where calls go cost no other part', () => {
    const { groups, left } = taken({
      name: 5,
      retry: { attempts: 'x' },
      request_timeout: '5s',
      ...strategy('loadbalance', {
        on_status_codes: ['429'],
        sticky: true,
        cb_config: { failure_threshold: 'five', cooldown_interval: '30000' },
      }),
      targets: [
        openai('{{A}}', { ...model('m'), retry: { attempts: -1 } }),
        openai('{{B}}', { ...model('m'), weight: 'x' }),
      ],
    });
    expect(groups[0]?.members.map(({ secret }) => secret)).toEqual(['UPSTREAM_A']);
    expect(groups[0]?.breaker.hold_ms).toBe(30_000);
    expect(left.toSorted()).toEqual([
      'name',
      'request_timeout',
      'retry.attempts',
      'strategy.cb_config.failure_threshold',
      'strategy.on_status_codes[0]',
      'strategy.sticky',
      'targets[0].retry.attempts',
      'targets[1].weight',
    ]);
  });

  it('of conditions are checked one by one', () => {
    const { groups, left } = taken({
      ...strategy('conditional', {
        conditions: [when({ 'params.model': 'a' }, 'x'), { query: { 'params.model': 'b' } }, 7],
        default: 5,
      }),
      targets: [openai('{{A}}', { name: 'x' })],
    });
    expect(groups.map(({ match }) => match.models)).toEqual([['a']]);
    expect(left).toEqual([
      'strategy.default',
      'strategy.conditions[1].then',
      'strategy.conditions[2]',
    ]);
  });

  it.each([
    [{ ...strategy('quickest'), targets: [openai('{{A}}')] }, 'strategy.mode'],
    [{ ...strategy('single'), override_params: 5, targets: [openai('{{A}}')] }, 'override_params'],
  ])('of what decides where calls go refuse the config: %j', (document, path) => {
    const imported = importConfig(document, { system: 'portkey' });
    expect(imported.ok ? [] : imported.errors.map((error) => error.path)).toEqual([path]);
  });
});

describe('fields that every object has', () => {
  it.each(['constructor', 'toString'])('are left out like others: %s', (field) => {
    const { omitted } = taken({ ...strategy('single'), targets: [openai('sk-1', { [field]: 1 })] });
    // The fields of SDKs have capitals.
    const path = `targets[0].${field.replace('S', '_s')}`;
    expect(omitted).toEqual([{ path, message: 'has no counterpart' }]);
  });
});
