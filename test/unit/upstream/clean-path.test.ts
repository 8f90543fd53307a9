// Slashes that a client adds by mistake are removed; slashes that an upstream may give a meaning to stay.
import { describe, expect, it } from 'vitest';
import { cleanPath, isUnclean, repeatsVersion } from '../../../src/upstream/operation/operation.ts';

it.each([
  ['//v1/chat/completions', '/v1/chat/completions'],
  ['/v1//chat/completions', '/v1/chat/completions'],
  ['/v1/chat//completions', '/v1/chat/completions'],
  ['/v1/chat/completions/', '/v1/chat/completions'],
  ['///v1///chat///completions///', '/v1/chat/completions'],
  ['/v1//messages/', '/v1/messages'],
  ['/v1/messages//count_tokens', '/v1/messages/count_tokens'],
  ['/v1//models/', '/v1/models'],
  ['/v1beta//models/m:generateContent', '/v1beta/models/m:generateContent'],
  ['/openai//deployments/d//chat/completions', '/openai/deployments/d/chat/completions'],
  ['/v1/v1/chat/completions', '/v1/chat/completions'],
  ['/v1/v1/v1/messages', '/v1/messages'],
  ['/V1/v1/embeddings', '/V1/embeddings'],
  ['/v1beta/v1beta/models/m:generateContent', '/v1beta/models/m:generateContent'],
  ['/v1//v1//responses/resp_1/', '/v1/responses/resp_1'],
  ['//v1//files/', '/v1/files'],
])('%s is %s', (path, expected) => {
  expect(isUnclean(path)).toBe(true);
  expect(cleanPath(path, 'openai')).toBe(expected);
});

describe('what may carry a meaning stays', () => {
  it.each([
    ['an address in a path', '/v1/fetch/https://example.com//a/', null],
    [
      'an address in front of a known route',
      '/proxy/https://api.example.com/v1/chat/completions',
      null,
    ],
    ['a file key with empty segments', '/v1/files/a//b/', null],
    ['a file key that begins with a slash', '/v1/files//a', null],
    ['an unknown route', '/v2/kv//key//', null],
    ['escaped slashes', '/v1/models/a%2F%2Fb:generateContent', null],
    ['a version behind another', '/v1/v1beta/models/m:generateContent', null],
    ['a version twice in an unknown route', '/v1/v1/buckets', null],
    ['the root', '/', null],
    ['where the base URL ends, one slash is enough', '/v1//buckets//a', '/v1/buckets//a'],
    ['and at the front', '//kv//key', '/kv//key'],
  ])('%s: %s', (_, path, expected) => {
    expect(cleanPath(path, 'openai')).toBe(expected ?? path);
  });

  it('behind an opaque upstream, but at the front', () => {
    expect(cleanPath('//v1//chat//completions/', 'opaque')).toBe('/v1/chat//completions/');
  });
});

it.each(['/v1/chat/completions', '/v1/models/a', '/x', '/v1/v1beta/x', '/v1/v10/x'])(
  '%s has nothing to clean',
  (path) => {
    expect(isUnclean(path)).toBe(false);
  },
);

it('takes linear time over many slashes', () => {
  const path = `/v1${'/'.repeat(60_000)}x${'/v1'.repeat(20_000)}`;
  cleanPath(path, 'openai');
  // Were it quadratic, the test would run out of time.
  expect(cleanPath(path, 'openai').length).toBeGreaterThan(0);
  expect(cleanPath('/'.repeat(60_000), 'openai')).toBe('/');
});

it.each([
  ['https://host/v1', '/v1/chat/completions', true],
  ['https://host/v1', '/v1/messages', true],
  ['https://host/api/v3', '/v3/chat/completions', true],
  ['https://host/v1', '/v1/buckets', false],
  ['https://host/v1', '/v2/chat/completions', false],
  ['https://host/api', '/api/chat', false],
  ['https://v1', '/v1/chat/completions', false],
])('%s with %s repeats its version: %s', (baseUrl, path, expected) => {
  expect(repeatsVersion(baseUrl, path, 'openai')).toBe(expected);
});
