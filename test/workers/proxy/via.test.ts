// An upstream with `via` is called through that binding, and never another way.
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { chat, configure, env } from '../support/worker.ts';

const PRIVATE_URL = 'https://10.0.0.7/llm';

let strict: Strict;
const network = globalThis.fetch;

beforeAll(async () => {
  strict = await strictScope('via');
  const match = { upstreams: ['house', 'unbound'] };
  await configure({
    upstreams: [
      { id: 'house', base_url: PRIVATE_URL, via: 'PRIVATE_LLM' },
      { id: 'unbound', base_url: strict.url, via: 'NOT_BOUND' },
    ],
    groups: [{ name: 'house', match, limits: { max_concurrency: 1 } }],
  });
});

afterEach(() => vi.restoreAllMocks());

afterAll(nothingLeaks);

it('an upstream with via is called through its binding, and nothing goes over the network', async () => {
  const asked: (readonly [url: string, cache: RequestInit['cache']])[] = [];
  const binding = {
    fetch: (url: string, init: RequestInit) => {
      asked.push([url, init.cache]);
      return network(url.replace(PRIVATE_URL, strict.url), init);
    },
  };
  vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('over the network'));
  Object.assign(env, { PRIVATE_LLM: binding });
  const response = await chat('/house/v1/chat/completions', 'carried');
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('[DONE]');
  expect(asked).toEqual([[`${PRIVATE_URL}/v1/chat/completions`, 'no-store']]);
  vi.restoreAllMocks();
  expect((await strict.stats()).arrivals.map(({ label }) => label)).toEqual(['carried']);
});

it('a binding that is not there fails the call, which does not leave another way', async () => {
  const before = (await strict.stats()).total;
  const response = await chat('/unbound/v1/chat/completions', 'lost');
  expect(response.status).toBe(502);
  expect(response.headers.get('headgate-reason')).toBe('upstream_unreachable');
  await response.text();
  expect((await strict.stats()).total).toBe(before);
});
