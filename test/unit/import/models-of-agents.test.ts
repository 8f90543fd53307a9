// Lists of models as agents keep them: flat entries with a rate each.
import { expect, it } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

const DOCUMENT = {
  version: 3,
  agents: { defaults: { model_name: 'fast' } },
  model_list: [
    { model_name: 'fast', model: 'openai/gpt-4o-mini', api_keys: ['sk-4711', 'sk-4712'], rpm: 3 },
    { model_name: 'fast', provider: 'kimi', model: 'kimi-k2.6', rpm: 0, fallbacks: ['local'] },
    { model_name: 'local', provider: 'ollama', model: 'llama3' },
    { model_name: 'own', model: 'minimax/abab', api_base: 'https://llm.example.com/v1' },
  ],
};

function taken(document: object) {
  const imported = importConfig(document);
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: true, jurisdiction: null };
  expect(checkConfig(imported.config, BUILT_IN_UPSTREAMS, options).errors).toEqual([]);
  return imported;
}

it('becomes groups with members, each with its rate, its host, its key and its name there', () => {
  const { config, notes, omitted } = taken(DOCUMENT);
  expect(config.groups).toMatchObject([
    {
      name: 'fast',
      members: [
        {
          upstream: 'openai',
          secret: 'UPSTREAM_FAST_1_KEY',
          models: { fast: 'gpt-4o-mini' },
          limits: { rpm: 3, max_concurrency: null },
          tier: 1,
        },
        { upstream: 'openai', secret: 'UPSTREAM_FAST_1_KEY_2', limits: { rpm: 3 }, tier: 1 },
        { upstream: 'moonshot-cn', models: { fast: 'kimi-k2.6' }, limits: { rpm: null }, tier: 1 },
        { upstream: 'ollama-local-openai', models: { fast: 'llama3' }, tier: 2 },
      ],
    },
    { name: 'local', members: [{ upstream: 'ollama-local' }] },
    { name: 'own', members: [{ upstream: 'llm-example-com' }] },
  ]);
  expect(config.upstreams).toMatchObject([
    { id: 'ollama-local-openai', base_url: 'http://localhost:11434/v1', auth: 'none' },
    { id: 'ollama-local', base_url: 'http://localhost:11434', auth: 'none' },
    { id: 'llm-example-com', base_url: 'https://llm.example.com/v1' },
  ]);
  expect(notes).toEqual([
    'Set the secret UPSTREAM_FAST_1_KEY to the key of model_list[0]. Keys are not imported.',
    'Set the secret UPSTREAM_FAST_1_KEY_2 to the key of model_list[0].api_keys[1]. Keys are not imported.',
    'Set the secret UPSTREAM_MOONSHOT_CN_API_KEY to the key of moonshot-cn. Keys are not imported.',
    'PicoClaw keeps these settings and still uses them: `agents`.',
  ]);
  expect(omitted).toEqual([]);
});

it('knows the hosts that its system has for providers', () => {
  const { config } = taken({
    model_list: [
      ['zai', 'glm-5'],
      ['volcengine', 'ark-code-latest'],
      ['venice', 'venice-uncensored'],
      ['qwen-us', 'qwen3.6-plus'],
    ].map(([provider, model]) => ({ model_name: model, provider, model, api_keys: ['k'] })),
  });
  expect(config.groups.map(({ members }) => members[0]?.upstream)).toEqual([
    'zai-coding',
    'volcengine',
    'venice',
    'dashscope-us',
  ]);
  expect(config.upstreams.map(({ base_url: base }) => base)).toContain(
    'https://ark.cn-beijing.volces.com/api/v3',
  );
});

it('has fallbacks of entries and agents as members of later tiers, and omits those that contradict', () => {
  const entry = (name: string, more: object = {}) => ({
    model_name: name,
    model: `openai/${name}`,
    api_base: `https://${name}.example/v1`,
    api_keys: ['k'],
    ...more,
  });
  const { config, omitted } = taken({
    model_list: [entry('a'), entry('b'), entry('c', { fallbacks: ['a', 'gone'] })],
    agents: {
      defaults: { model_name: 'a', model_fallbacks: ['b', 'c'] },
      list: [{ model: { primary: 'a', fallbacks: ['c'] } }, { model: 'b' }],
    },
  });
  const tiers = config.groups.map(({ members }) =>
    members.map(({ upstream, tier, models }) => [upstream, tier, models]),
  );
  expect(tiers).toEqual([
    [
      ['a-example', 1, {}],
      ['b-example', 2, { a: 'b' }],
      ['c-example', 3, { a: 'c' }],
    ],
    [['b-example', 1, {}]],
    [
      ['c-example', 1, {}],
      ['a-example', 2, { c: 'a' }],
    ],
  ]);
  expect(omitted).toEqual([
    { path: 'model_list (c).fallbacks', message: '`gone` is not the `model_name` of an entry' },
    {
      path: 'agents.list[0].model.fallbacks',
      message: '`a` already has other fallbacks, and a group has one order of members',
    },
  ]);
});

it('has time-outs as the time to the first content beside other members, and as the longest hold alone', () => {
  const { config } = taken({
    model_list: [
      { model_name: 'one', model: 'openai/x', api_keys: ['k'], request_timeout: 90 },
      { model_name: 'two', model: 'openai/x', api_keys: ['k', 'l'], request_timeout: 1.5 },
    ],
  });
  expect(config.groups[0]).toMatchObject({ holds: { max_hold_ms: 90_000 } });
  expect(config.groups[0]?.members[0]).not.toHaveProperty('first_token_ms');
  expect(config.groups[1]?.members).toMatchObject([
    { first_token_ms: 1_500 },
    { first_token_ms: 1_500 },
  ]);
});

it('keeps what is called as Anthropic is apart from what is called as OpenAI is', () => {
  const { config, omitted } = taken({
    model_list: [
      {
        model_name: 'claude',
        model: 'anthropic-messages/claude-opus-4-6',
        api_keys: ['k'],
        fallbacks: ['gpt'],
      },
      { model_name: 'gpt', model: 'openai/gpt-5', api_keys: ['k'], fallbacks: ['claude'] },
    ],
  });
  expect(config.groups.map(({ members }) => members.map(({ upstream }) => upstream))).toEqual([
    ['anthropic'],
    ['openai', 'anthropic-openai'],
  ]);
  expect(omitted).toEqual([
    { path: 'model_list[1]', message: expect.stringContaining('speaks openai') },
  ]);
});

it('imports the rest of a list with entries that sign in by themselves or have no address', () => {
  const { config, omitted } = taken({
    model_list: [
      { model_name: 'a', model: 'antigravity/gemini-2.0-flash', auth_method: 'oauth' },
      { model_name: 'b', model: 'nowhere/x', api_keys: ['k'] },
      { model_name: 'c', model: 'openai/x', api_keys: ['k'], api_base: 'https://u:p@c.example' },
      { model_name: 'd', model: 'openai/x', api_keys: ['k'], rpm: -1 },
      { model_name: 'e', model: 'openai/x', api_keys: ['k'] },
    ],
  });
  expect(config.groups.map(({ name }) => name)).toEqual(['e']);
  expect(omitted.map(({ path }) => path)).toEqual([
    'model_list[3].rpm',
    'model_list[0].auth_method',
    'model_list[1].model',
    'model_list[2].api_base',
  ]);
});

it('repeats no key, whatever is wrong', () => {
  expect(JSON.stringify(importConfig(DOCUMENT))).not.toContain('471');
  const [first] = DOCUMENT.model_list;
  const wrong = {
    model_list: [
      { ...first, rpm: 'sk-4713' },
      { ...first, provider: 'nowhere' },
    ],
  };
  const refused = JSON.stringify(importConfig(wrong));
  expect(refused).toContain('model_list[0].rpm');
  expect(refused).not.toContain('471');
});

it('switches off the members of entries that are off, and takes a key in the older field for one', () => {
  const imported = importConfig({
    model_list: [
      { model_name: 'a', model: 'openai/x', api_key: 'sk-4711', api_base: 'https://a.example/v1' },
      { model_name: 'b', model: 'openai/y', api_key: '' },
      { model_name: 'a', model: 'openai/z', enabled: false },
    ],
  });
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  expect(imported.config.groups.map(({ members }) => members)).toMatchObject([
    [
      { upstream: 'a-example', secret: 'UPSTREAM_A_1_KEY', enabled: true },
      { upstream: 'openai', models: { a: 'z' }, enabled: false },
    ],
    [{ upstream: 'openai', secret: 'UPSTREAM_OPENAI_API_KEY', enabled: true }],
  ]);
  expect(imported.notes).toContain(
    'Set the secret UPSTREAM_A_1_KEY to the key of model_list[0]. Keys are not imported.',
  );
  expect(imported.notes).toContain('model_list[2] is disabled, so its member is disabled too.');
  expect(JSON.stringify(imported)).not.toContain('4711');
});

it('without an address is refused at its place', () => {
  const imported = importConfig({ model_list: [{ model_name: 'a', model: 'nowhere/b' }] });
  expect(imported.ok ? [] : imported.errors).toEqual([
    {
      path: 'model_list[0].model',
      message: 'names no provider with a known address (`nowhere`); add `api_base`',
    },
  ]);
});

it('lists the rate of an entry that is in several groups, and reads one that is written as text', () => {
  const { config, omitted } = taken({
    model_list: [
      { model_name: 'a', model: 'openai/a', api_keys: ['k'], fallbacks: ['b'] },
      { model_name: 'b', model: 'openai/b', api_keys: ['l'], rpm: '60', request_timeout: '5' },
      { model_name: 'c', model: 'openai/c', api_keys: ['m'], rpm: 7 },
    ],
  });
  expect(config.groups.map(({ members }) => members.map(({ limits }) => limits.rpm))).toEqual([
    [null, 60],
    [60],
    [7],
  ]);
  expect(config.groups[1]?.holds.max_hold_ms).toBe(5_000);
  expect(omitted).toEqual([
    { path: 'model_list[1].rpm', message: expect.stringContaining('2 groups') },
  ]);
});

it('imports the valid entries, and lists those of a wrong type', () => {
  const entry = (model_name: string) => ({
    model_name,
    model: `openai/${model_name}`,
    api_key: 'k',
  });
  const { config, omitted } = taken({
    model_list: [entry('a'), entry('b'), { model_name: 'c', model: 5 }, 'd'],
    agents: {
      defaults: { model_name: 'a', model_fallbacks: 'b' },
      list: [{ model: { primary: 'b', fallbacks: [1] } }, 7, { model: 'a' }, { model: 3 }],
    },
  });
  expect(config.groups.map(({ members }) => members.length)).toEqual([1, 1]);
  expect(omitted.map(({ path }) => path)).toEqual([
    'model_list[2].model',
    'model_list[3]',
    'agents.list[1]',
    'agents.list[3].model',
    'agents.defaults.model_fallbacks',
    'agents.list[0].model.fallbacks',
  ]);
});

it('lists fallbacks of a model that no entry has', () => {
  const { omitted } = taken({
    model_list: [{ model_name: 'a', model: 'openai/a', api_key: 'k' }],
    agents: { defaults: { model_name: 'gone', model_fallbacks: ['a'] } },
  });
  expect(omitted.map(({ path }) => path)).toEqual(['agents.defaults.model_fallbacks']);
});

it('names the secrets of tens of thousands of keys in a time that grows with their number', () => {
  // With a comparison of all names for each key, this runs into the time-out of the test.
  const keys = (entry: number) => Array.from({ length: 100 }, (_, at) => `of-${entry}-${at}`);
  const { notes } = taken({
    model_list: Array.from({ length: 500 }, (_, at) => ({
      model_name: `m${at}`,
      model: 'openai/x',
      api_keys: keys(at),
    })),
  });
  expect(notes.length).toBeGreaterThan(10_000);
});
