import { expect, test } from 'vitest';
import { configuredModels } from '../../../src/routing/upstreams.ts';
import { aConfig, anUpstream, byId } from './fixtures.ts';

const upstreams = byId(
  anUpstream('openai', { models: ['gpt-*', 'o3'] }),
  anUpstream('azure'),
  anUpstream('router', { models: ['built-in'] }),
);

test('names every model that the configuration says in full, at the upstreams that have it, once', () => {
  const price = { input: 1, output: 2 };
  const config = aConfig({
    upstreams: [
      { id: 'openai', models: ['gpt-*', 'o3'] },
      { id: 'azure', aliases: { 'my-deployment': 'gpt-4o' } },
      { id: 'router', prices: { 'a/b': price, 'c*': price } },
      { id: 'switched-off', models: ['never'], enabled: false },
    ],
    groups: [
      { name: 'patterns', match: { models: ['gpt-4*'], upstreams: ['openai'] } },
      { name: 'by-pattern', match: { models: ['gpt-4o'] } },
      { name: 'qualified', match: { models: ['OpenAI/gpt-4o', 'azure/my-deployment'] } },
      { name: 'of-upstreams', match: { models: ['x-large', 'openai/y'], upstreams: ['a*'] } },
      { name: 'of-nobody', match: { models: ['unheard-of'] } },
      {
        name: 'spilling',
        on_saturated: { spill_to: ['azure', { upstream: 'router', model: 'a/c' }] },
      },
    ],
  });
  const named = configuredModels(config, upstreams);
  expect(named.map(({ upstream, model }) => `${upstream.id} ${model}`)).toEqual([
    'openai o3',
    'azure my-deployment',
    'router a/b',
    'openai gpt-4o',
    'azure x-large',
    'router a/c',
  ]);
});
