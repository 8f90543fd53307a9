import { describe, expect, test } from 'vitest';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import {
  chooseUpstream,
  unifiedPath,
  type UnifiedCall,
  type UpstreamChoice,
} from '../../../src/routing/upstreams.ts';
import { anUpstream, byId } from './fixtures.ts';

const upstreams = byId(
  anUpstream('openai', { models: ['gpt-*'] }),
  anUpstream('azure', { models: ['gpt-5*'] }),
  anUpstream('anthropic', { openaiAt: null, anthropicAt: '/v1', models: ['claude-*'] }),
  anUpstream('bedrock', { models: ['claude-*'] }),
  anUpstream('openrouter', { openaiAt: '/v1', anthropicAt: '/v1' }),
  anUpstream('vllm', { openaiAt: '', models: ['my/*'] }),
);

/** The choice in short: id and prefix, the ids of an ambiguous one, or null. */
function chosen(call: Partial<UnifiedCall>, fallback: string | null = null) {
  const choice = choose(call, fallback);
  if (choice.kind === 'found') return [choice.upstream.id, choice.prefix];
  return choice.kind === 'ambiguous' ? choice.upstreams.map(({ id }) => id) : null;
}

function choose(call: Partial<UnifiedCall>, fallback: string | null): UpstreamChoice {
  return chooseUpstream(
    { header: null, model: null, shape: 'openai', upstreamOfMember: () => null, ...call },
    upstreams,
    fallback,
  );
}

describe('the coding plans of Z.ai and Zhipu', () => {
  test.each([
    ['zai-coding/glm-4.6', 'https://api.z.ai/api/coding/paas/v4/chat/completions'],
    ['ZAI-Coding/glm-4.6', 'https://api.z.ai/api/coding/paas/v4/chat/completions'],
    ['zai/glm-4.6', 'https://api.z.ai/api/paas/v4/chat/completions'],
    ['zhipu-coding/glm-4.6', 'https://open.bigmodel.cn/api/coding/paas/v4/chat/completions'],
    ['zhipu/glm-4.6', 'https://open.bigmodel.cn/api/paas/v4/chat/completions'],
  ])('are named before the model at the unified route: %s', (model, url) => {
    const call = { header: null, model, shape: 'openai', upstreamOfMember: () => null } as const;
    const choice = chooseUpstream(call, byId(...BUILT_IN_UPSTREAMS), null);
    if (choice.kind !== 'found') throw new Error(choice.kind);
    const path = unifiedPath(choice.upstream, 'openai', '/v1/chat/completions');
    expect(`${choice.upstream.baseUrl}${path}`).toBe(url);
    expect(model.slice(choice.prefix.length)).toBe('glm-4.6');
  });
});

describe('chooseUpstream', () => {
  test.each([
    ['the header wins', { header: 'openrouter', model: 'openai/gpt-4o' }, ['openrouter', '']],
    ['a prefix is removed', { model: 'anthropic/claude-x' }, ['anthropic', 'anthropic/']],
    ['as it was written', { model: 'OpenAI/gpt-4o' }, ['openai', 'OpenAI/']],
    ['only the first one', { model: 'openrouter/openai/gpt-4o' }, ['openrouter', 'openrouter/']],
    ['a prefix beats a pattern', { model: 'vllm/gpt-4o' }, ['vllm', 'vllm/']],
    ['patterns come next', { model: 'GPT-4o' }, ['openai', '']],
    ['a pattern may hold a slash', { model: 'my/llama' }, ['vllm', '']],
    ['two patterns are one too many', { model: 'gpt-5-mini' }, ['azure', 'openai']],
    ['the shape decides between patterns', { model: 'claude-x' }, ['bedrock', '']],
    ['both ways', { model: 'claude-x', shape: 'anthropic' }, ['anthropic', '']],
    ['a slash in front is no prefix', { model: '/gpt-4o' }, null],
    ['nothing matches', { model: 'llama' }, null],
    ['no model', {}, null],
  ] as const)('%s', (_, call, expected) => {
    expect(chosen(call)).toEqual(expected);
  });

  test('the default takes what nothing else does', () => {
    expect(chosen({ model: 'llama' }, 'openrouter')).toEqual(['openrouter', '']);
    expect(chosen({}, 'openrouter')).toEqual(['openrouter', '']);
    expect(chosen({ model: 'gpt-4o' }, 'openrouter')).toEqual(['openai', '']);
  });

  test('a header that names nothing is not replaced by a guess', () => {
    const choice = choose({ header: 'opnai', model: 'gpt-4o' }, 'openrouter');
    expect(choice).toEqual({ kind: 'unknown', tried: ['the header `headgate-upstream`: `opnai`'] });
  });

  test('what was tried is told in order, and in bounds', () => {
    const choice = choose({ model: `nobody/${'x'.repeat(10_000)}` }, null);
    const tried = choice.kind === 'unknown' ? choice.tried : [];
    expect(tried).toHaveLength(4);
    expect(tried[1]).toBe('an upstream with the id `nobody`');
    expect(tried.join('').length).toBeLessThan(500);
  });
});

describe('unifiedPath', () => {
  test.each([
    ['openai', 'openai', '/v1/chat/completions', '/v1/chat/completions'],
    ['vllm', 'openai', '/v1/chat/completions', '/chat/completions'],
    ['anthropic', 'anthropic', '/v1/messages/count_tokens', '/v1/messages/count_tokens'],
    ['anthropic', 'openai', '/v1/chat/completions', null],
    ['openai', 'anthropic', '/v1/messages', null],
    ['openai', 'openai', '/v1', '/v1'],
    ['vllm', 'openai', '/v1x', '/v1x'],
  ] as const)('%s, %s: %s goes to %s', (id, shape, path, expected) => {
    const upstream = upstreams.get(id) ?? anUpstream('missing');
    expect(unifiedPath(upstream, shape, path)).toBe(expected);
  });
});
