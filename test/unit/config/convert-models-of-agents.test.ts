// Lists of models as agents keep them: flat entries with a rate each.
import { expect, it } from 'vitest';
import { importConfig } from '../../../src/config/import-config.ts';

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

it('becomes groups with members, each with its rate, its host and its name there', () => {
  const imported = importConfig(DOCUMENT);
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const { config, notes } = imported;
  expect(config.groups).toMatchObject([
    {
      name: 'fast',
      members: [
        {
          upstream: 'openai',
          secret: 'UPSTREAM_FAST_1_KEY',
          models: { fast: 'gpt-4o-mini' },
          limits: { rpm: 3, max_concurrency: null },
        },
        { upstream: 'moonshot-cn', models: { fast: 'kimi-k2.6' }, limits: { rpm: null } },
      ],
    },
    { name: 'local', members: [{ upstream: 'localhost-11434' }] },
    { name: 'own', members: [{ upstream: 'llm-example-com' }] },
  ]);
  expect(config.upstreams).toMatchObject([
    { id: 'localhost-11434', base_url: 'http://localhost:11434', auth: 'none' },
    { id: 'llm-example-com', base_url: 'https://llm.example.com/v1' },
  ]);
  expect(notes).toContain(
    'Set the secret UPSTREAM_FAST_1_KEY to the key of model_list[0]; keys are not taken over.',
  );
  expect(notes).toContain(
    'model_list[0] has 2 keys, which take turns there: add a member for each of the others, with a secret of its own.',
  );
  expect(notes).toContain('Not taken over: agents, fallbacks.');
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
    'Set the secret UPSTREAM_A_1_KEY to the key of model_list[0]; keys are not taken over.',
  );
  expect(imported.notes).toContain('model_list[2] is switched off there, and its member here.');
  expect(JSON.stringify(imported)).not.toContain('4711');
});

it('without an address is refused at its place', () => {
  const imported = importConfig({ model_list: [{ model_name: 'a', model: 'nowhere/b' }] });
  expect(imported.ok ? [] : imported.errors).toEqual([
    {
      path: 'model_list[0].model',
      message: 'names no provider with an address of its own; add api_base',
    },
  ]);
});
