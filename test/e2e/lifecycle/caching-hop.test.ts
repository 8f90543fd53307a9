import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CachedProvider } from '../support/caching-hop.ts';
import { startCachedProvider } from '../support/caching-hop.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startStage } from '../support/lifecycle-stage.ts';

/** An answer for one caller never comes out of a cache on the way to another. */

let provider: CachedProvider;
let stage: LifecycleStage;

beforeAll(async () => {
  provider = await startCachedProvider();
  stage = await startStage({
    config: () => ({
      upstreams: [{ id: 'cached', base_url: provider.url }],
      default_upstream: 'cached',
    }),
  });
});

afterAll(async () => {
  await stage.close();
  await provider.close();
});

async function reported(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, { headers });
  expect(response.status).toBe(200);
  return response.text();
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const apiKey = (key: string) => ({ 'x-api-key': key });

it('without Headgate the cache gives the answer of one to the other', async () => {
  const url = `${provider.url}/v1/models?plain`;
  expect(await reported(url, bearer('sk-one'))).toContain('model-of-sk-one');
  expect(await reported(url, bearer('sk-two'))).toContain('model-of-sk-one');
});

it.each([
  ['a list of models', '/cached/v1/models', bearer],
  ['a list of models, by the key of another header', '/cached/v1/models?limit=1', apiKey],
  ['a file', '/cached/v1/files/file-1/content', bearer],
  ['the models of all upstreams', '/v1/models', bearer],
])('through Headgate each has its own: %s', async (_, path, withKey) => {
  const url = `${stage.url()}${path}`;
  for (const key of ['sk-one', 'sk-two', 'sk-one']) {
    expect(await reported(url, withKey(key))).toContain(`model-of-${key}`);
  }
});

it.each([
  { 'cache-control': 'max-age=3600' },
  { 'cache-control': 'only-if-cached' },
  { pragma: 'x' },
])('nor does a caller that asks the cache for what it has: %j', async (asking) => {
  const url = `${stage.url()}/cached/v1/models?asking`;
  for (const key of ['sk-one', 'sk-two']) {
    expect(await reported(url, { ...bearer(key), ...asking })).toContain(`model-of-${key}`);
  }
  const { 'cache-control': cacheControl, pragma } = provider.asked.at(-1) ?? {};
  expect([cacheControl, pragma]).toEqual(['no-cache', 'no-cache']);
});
