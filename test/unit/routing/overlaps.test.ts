import { expect, test } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { overlaps } from '../../../src/routing/overlaps.ts';
import { aConfig } from './fixtures.ts';

type RoutingOverlapsMatch = NonNullable<NonNullable<ConfigInput['groups']>[number]['match']>;

// That every pair which a call really matches is found is a property in placement.test.ts.
test.each<[string, RoutingOverlapsMatch, RoutingOverlapsMatch, boolean]>([
  ['the same model', { models: ['gpt-4o'] }, { models: ['gpt-*'] }, true],
  ['different models', { models: ['gpt-*'] }, { models: ['claude-*'] }, false],
  ['different upstreams', { upstreams: ['openai'] }, { upstreams: ['azure'] }, false],
  ['a model and an upstream', { models: ['gpt-*'] }, { upstreams: ['openai'] }, true],
  ['a model with and without its upstream', { models: ['openai/o3'] }, { models: ['o*'] }, true],
  [
    'not where the other has another upstream',
    { models: ['openai/o3'] },
    { models: ['o3'], upstreams: ['azure'] },
    false,
  ],
  ['a vendor and a gateway', { models: ['openai/o3'] }, { models: ['openrouter/openai/*'] }, true],
  ['all of two upstreams', { models: ['openai/*'] }, { models: ['anthropic/*'] }, false],
  ['different keys', { keys: ['a'] }, { keys: ['b'] }, false],
  [
    'a base URL and what lies below',
    { base_urls: ['https://x'] },
    { base_urls: ['https://x/v1'] },
    true,
  ],
  ['different paths', { paths: ['/v1/a/*'] }, { paths: ['/v1/b/*'] }, false],
  ['a path and what lies below', { paths: ['/v1/*'] }, { paths: ['/V1/b/*'] }, true],
  ['a path and any', { paths: ['/v1/*'] }, { operations: ['chat'] }, true],
  ['not by different methods', { paths: ['/v1/*'], methods: ['GET'] }, { paths: ['/v1/*'] }, false],
  ['different operations', { operations: ['chat'] }, { operations: ['images'] }, false],
])('%s', (_, a, b, expected) => {
  const found = overlaps(
    aConfig({
      groups: [
        { name: 'a', match: a },
        { name: 'b', match: b },
      ],
    }),
  );
  expect(found.length > 0).toBe(expected);
});
