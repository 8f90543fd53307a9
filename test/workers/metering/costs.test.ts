// What a call costs, over the wire: by the prices that are configured and by the built-in table. Every
// figure here was worked out by hand.
import { afterAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { nothingLeaks, NO_COOLDOWN } from '../support/pool.ts';
import { strictScope, type Settings } from '../support/strict.ts';
import { configure } from '../support/worker.ts';
import { CHAT, chatBody, counted, post, untilCounted } from './scene.ts';

afterAll(nothingLeaks);

type CostsUpstream = NonNullable<ConfigInput['upstreams']>[number];

const UNCACHED: Settings = { inputTokens: 1_000, outputTokens: 250 };
const CACHED: Settings = { ...UNCACHED, cachedTokens: 400 };

let groups = 0;

/** The USD that one call costs, in a group with a budget. */
async function costOf(
  upstream: CostsUpstream,
  settings: Settings,
  path: string,
  body: string,
): Promise<number> {
  groups += 1;
  const group = `cost-${groups}`;
  const strict = await strictScope('costs', settings);
  await configure({
    upstreams: [{ ...upstream, base_url: strict.url }],
    groups: [
      {
        name: group,
        match: { upstreams: [upstream.id] },
        limits: { rpm: 100, budget_usd: { per_month: 100 } },
        holds: NO_COOLDOWN,
      },
    ],
  });
  const response = await post(`/${upstream.id}${path}`, body);
  expect(response.status).toBe(200);
  await response.text();
  await untilCounted(group, { requests: 1, reservedUsd: 0 });
  return (await counted(group)).usd;
}

function chat(model: string): string {
  return chatBody('a question', { model });
}

const PRICES = {
  'big-1': { input: 4, output: 20, cache_read: 1 },
  'big*': { input: 3, output: 15 },
  '*': { input: 1, output: 2 },
};

describe('by the configured prices, a call costs', () => {
  const up: CostsUpstream = { id: 'up', prices: PRICES };
  it.each([
    // 600 at 4, 400 from a cache at 1, 250 at 20.
    ['what its model does', 'big-1', CACHED, 0.0078],
    ['the same in a dated snapshot of it', 'big-1-2026-10-01', CACHED, 0.0078],
    // 1,000 at 3, since nothing else is said of the cache, and 250 at 15.
    ['what the longest beginning of its name does', 'big-2', CACHED, 0.00675],
    // 1,000 at 1 and 250 at 2.
    ['what all others do', 'small', CACHED, 0.0015],
  ])('%s', async (_, model, settings, usd) => {
    expect(await costOf(up, settings, CHAT, chat(model))).toBe(usd);
  });
});

const AZURE_PATH = '/openai/deployments/prod-7/chat/completions?api-version=2024-10-21';
const OF_GEMINI = '/v1beta/models/gemini-2.5-flash:generateContent';
const GEMINI = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'a question' }] }] });

describe('by the built-in table, a call costs', () => {
  it.each<[string, CostsUpstream, string, string, Settings, number]>([
    // 1,000 at 0.15 and 250 at 0.6.
    ['at OpenAI', { id: 'openai' }, CHAT, chat('gpt-4o-mini'), UNCACHED, 0.0003],
    // 600 at 0.15, 400 at 0.075, 250 at 0.6.
    ['less with a cache', { id: 'openai' }, CHAT, chat('gpt-4o-mini'), CACHED, 0.00027],
    // 600 at 1, 400 at 0.1, 250 at 5.
    [
      'at Anthropic',
      { id: 'anthropic' },
      '/v1/messages',
      chatBody('a', { model: 'claude-haiku-4-5', max_tokens: 300 }),
      CACHED,
      0.00189,
    ],
    // 600 at 0.3, 400 at 0.03, 250 at 2.5.
    ['at Gemini, by the path', { id: 'gemini' }, OF_GEMINI, GEMINI, CACHED, 0.000817],
    // 600 at 0.15, 400 at 0.075, 250 at 0.6.
    [
      'at Azure, by the alias of a deployment',
      { id: 'ours', dialect: 'azure', aliases: { 'prod-7': 'gpt-4o-mini' } },
      AZURE_PATH,
      chat('x'),
      CACHED,
      0.00027,
    ],
    // 600 at 10, 400 at 5, 250 at 20: what is configured goes before what is listed.
    [
      'what its operator says',
      { id: 'openai', prices: { 'gpt-4o-mini': { input: 10, output: 20, cache_read: 5 } } },
      CHAT,
      chat('gpt-4o-mini'),
      CACHED,
      0.013,
    ],
  ])('%s', async (_, upstream, path, body, settings, usd) => {
    expect(await costOf(upstream, settings, path, body)).toBe(usd);
  });
});
