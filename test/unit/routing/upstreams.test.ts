import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { resolveUpstreams } from '../../../src/routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { aConfig, anUpstream } from './fixtures.ts';

type UpstreamsEntry = NonNullable<ConfigInput['upstreams']>[number];

const builtIn = [
  anUpstream('openai', { models: ['gpt-*'] }),
  anUpstream('anthropic', { dialect: 'anthropic', keyPlace: 'x-api-key', anthropicAt: '/v1' }),
];

function resolved(entry: UpstreamsEntry) {
  return resolveUpstreams(aConfig({ upstreams: [entry] }), builtIn).get(entry.id);
}

describe('a built-in upstream', () => {
  test('without an entry is as the catalog says', () => {
    const upstreams = resolveUpstreams(aConfig({}), BUILT_IN_UPSTREAMS);
    expect([...upstreams.values()]).toEqual(BUILT_IN_UPSTREAMS);
  });

  test('keeps what the entry does not say', () => {
    expect(resolved({ id: 'openai', auth: { secret: 'UPSTREAM_OPENAI_KEY' } })).toEqual({
      ...builtIn[0],
      secret: 'UPSTREAM_OPENAI_KEY',
    });
  });

  test('that takes no key has no secret', () => {
    expect(resolved({ id: 'openai', auth: 'none' })).toEqual({ ...builtIn[0], isKeyless: true });
  });

  test('takes every field that the entry gives, an empty one too', () => {
    const upstream = resolved({
      id: 'openai',
      base_url: 'https://Proxy.example/openai/',
      models: [],
      openai_at: '',
      anthropic_at: '/anthropic/v1',
      aliases: { dep: 'gpt-4o' },
      via: 'PROXY',
    });
    expect(upstream).toMatchObject({
      baseUrl: 'https://proxy.example/openai',
      dialect: 'openai',
      models: [],
      openaiAt: '',
      anthropicAt: '/anthropic/v1',
      aliases: { dep: 'gpt-4o' },
      via: 'PROXY',
    });
  });

  test('puts keys where another dialect expects them', () => {
    expect(resolved({ id: 'openai', dialect: 'azure' })?.keyPlace).toBe('api-key');
  });

  test('is gone when the entry disables it', () => {
    const upstreams = resolveUpstreams(
      aConfig({ upstreams: [{ id: 'openai', enabled: false }] }),
      builtIn,
    );
    expect([...upstreams.keys()]).toEqual(['anthropic']);
  });
});

describe('a custom upstream', () => {
  test.each([
    ['openai', 'https://x.example', '/v1', null],
    ['openai', 'https://x.example/', '/v1', null],
    ['openai', 'https://x.example/v1/', '', null],
    ['openai', 'https://x.example/api/paas/v4', '', null],
    ['ollama', 'http://ollama:11434', '/v1', null],
    ['anthropic', 'https://x.example', null, '/v1'],
    ['anthropic', 'https://x.example/anthropic', null, '/v1'],
    ['anthropic', 'https://x.example/anthropic/v1', null, ''],
    ['azure', 'https://r.openai.azure.com', '/openai/v1', null],
    ['azure', 'https://r.openai.azure.com/openai', '/v1', null],
    ['bedrock', 'https://bedrock-mantle.eu-west-1.api.aws/openai/v1', '', null],
    ['bedrock', 'https://bedrock-runtime.eu-west-1.amazonaws.com', '/openai/v1', null],
    ['opaque', 'https://x.example/v1', null, null],
  ] as const)(
    'of dialect %s at %s has its routes at %s and %s',
    (dialect, url, openai, anthropic) => {
      const upstream = resolved({ id: 'mine', base_url: url, dialect });
      expect(upstream?.openaiAt).toBe(openai);
      expect(upstream?.anthropicAt).toBe(anthropic);
      expect(upstream?.baseUrl).not.toMatch(/\/$/);
    },
  );

  test('is OpenAI-shaped unless it says otherwise, and keeps given routes', () => {
    const upstream = resolved({ id: 'mine', base_url: 'https://x.example/api', openai_at: '/v2' });
    expect(upstream).toMatchObject({ dialect: 'openai', keyPlace: 'bearer', openaiAt: '/v2' });
    expect(upstream?.keyNamesAccount).toBe(true);
  });

  test.each([
    ['azure', 'https://r.openai.azure.com', 'api-key'],
    ['gemini', 'https://europe-west1-aiplatform.googleapis.com', 'bearer'],
    ['gemini', 'https://aiplatform.eu.rep.googleapis.com', 'bearer'],
  ] as const)('of dialect %s at %s has keys that do not name an account', (dialect, url, place) => {
    const upstream = resolved({ id: 'mine', base_url: url, dialect });
    expect(upstream?.keyNamesAccount).toBe(false);
    expect(upstream?.keyPlace).toBe(place);
  });

  test('without a base_url is left out', () => {
    expect(resolved({ id: 'mine' })).toBeUndefined();
  });
});
