import { describe, expect, it } from 'vitest';
import { RESERVED_UPSTREAM_IDS, upstreamSchema } from '../../../src/contract/config/upstream.ts';
import { compileGlobs } from '../../../src/routing/glob.ts';
import { BUILT_IN_UPSTREAMS, DIALECT_DEFAULTS } from '../../../src/providers/catalog.ts';

const byId = new Map(BUILT_IN_UPSTREAMS.map((upstream) => [upstream.id, upstream]));
const hosts = BUILT_IN_UPSTREAMS.map((upstream) => upstream.baseUrl);
const endpoints = BUILT_IN_UPSTREAMS.map(({ baseUrl, openaiAt }) => `${baseUrl}${openaiAt ?? ''}`);

function urlOf(id: string, at: 'openaiAt' | 'anthropicAt', rest: string): string | null {
  const upstream = byId.get(id);
  const path = upstream?.[at] ?? null;
  return upstream === undefined || path === null ? null : upstream.baseUrl + path + rest;
}

describe('the catalog', () => {
  it('is in the order of the ids, and no id or OpenAI-shaped endpoint occurs twice', () => {
    const ids = BUILT_IN_UPSTREAMS.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(endpoints).size).toBe(ids.length);
  });

  it('holds base URLs that are https, scheme and host only', () => {
    for (const host of hosts) expect(host).toBe(`https://${new URL(host).host}`);
  });

  it('holds nothing that the configuration would refuse', () => {
    for (const upstream of BUILT_IN_UPSTREAMS) {
      const { id, baseUrl, openaiAt, anthropicAt, models } = upstream;
      expect(RESERVED_UPSTREAM_IDS).not.toContain(id);
      const entry = {
        id,
        base_url: baseUrl,
        openai_at: openaiAt,
        anthropic_at: anthropicAt,
        models,
      };
      expect(upstreamSchema.safeParse(entry).error).toBeUndefined();
    }
  });

  it('injects no key by itself', () => {
    expect(BUILT_IN_UPSTREAMS.filter((upstream) => upstream.secret !== null)).toEqual([]);
  });

  it.each([
    ['openai', 'https://api.openai.com/v1/chat/completions'],
    ['gemini', 'https://generativelanguage.googleapis.com/v1beta/openai/chat/completions'],
    ['mistral', 'https://api.mistral.ai/v1/chat/completions'],
    ['groq', 'https://api.groq.com/openai/v1/chat/completions'],
    ['deepseek', 'https://api.deepseek.com/v1/chat/completions'],
    ['xai', 'https://api.x.ai/v1/chat/completions'],
    ['cohere', 'https://api.cohere.com/compatibility/v1/chat/completions'],
    ['together', 'https://api.together.xyz/v1/chat/completions'],
    ['fireworks', 'https://api.fireworks.ai/inference/v1/chat/completions'],
    ['openrouter', 'https://openrouter.ai/api/v1/chat/completions'],
    ['perplexity', 'https://api.perplexity.ai/chat/completions'],
    ['cerebras', 'https://api.cerebras.ai/v1/chat/completions'],
    ['moonshot', 'https://api.moonshot.ai/v1/chat/completions'],
    ['moonshot-cn', 'https://api.moonshot.cn/v1/chat/completions'],
    ['kimi-code', 'https://api.kimi.com/coding/v1/chat/completions'],
    ['zai', 'https://api.z.ai/api/paas/v4/chat/completions'],
    ['zai-coding', 'https://api.z.ai/api/coding/paas/v4/chat/completions'],
    ['zhipu', 'https://open.bigmodel.cn/api/paas/v4/chat/completions'],
    ['zhipu-coding', 'https://open.bigmodel.cn/api/coding/paas/v4/chat/completions'],
    ['minimax', 'https://api.minimax.io/v1/chat/completions'],
    ['minimax-cn', 'https://api.minimaxi.com/v1/chat/completions'],
    ['dashscope', 'https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions'],
    ['dashscope-intl', 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions'],
    ['dashscope-coding', 'https://coding-intl.dashscope.aliyuncs.com/v1/chat/completions'],
    ['nvidia', 'https://integrate.api.nvidia.com/v1/chat/completions'],
    ['sambanova', 'https://api.sambanova.ai/v1/chat/completions'],
    ['deepinfra', 'https://api.deepinfra.com/v1/openai/chat/completions'],
    ['hyperbolic', 'https://api.hyperbolic.xyz/v1/chat/completions'],
    ['qianfan', 'https://qianfan.baidubce.com/v2/chat/completions'],
    ['siliconflow-cn', 'https://api.siliconflow.cn/v1/chat/completions'],
    ['ollama', 'https://ollama.com/v1/chat/completions'],
    ['huggingface', 'https://router.huggingface.co/v1/chat/completions'],
    ['chutes', 'https://llm.chutes.ai/v1/chat/completions'],
    ['nebius', 'https://api.tokenfactory.nebius.com/v1/chat/completions'],
    ['novita', 'https://api.novita.ai/openai/chat/completions'],
    ['siliconflow', 'https://api.siliconflow.com/v1/chat/completions'],
    ['github-models', 'https://models.github.ai/inference/chat/completions'],
    ['wandb', 'https://api.inference.wandb.ai/v1/chat/completions'],
    ['baseten', 'https://inference.baseten.co/v1/chat/completions'],
    ['scaleway', 'https://api.scaleway.ai/v1/chat/completions'],
    ['vercel', 'https://ai-gateway.vercel.sh/v1/chat/completions'],
    ['anthropic', 'https://api.anthropic.com/v1/chat/completions'],
    ['vertex', null],
    ['workers-ai', null],
  ])('knows where the OpenAI-shaped routes of %s begin', (id, url) => {
    expect(urlOf(id, 'openaiAt', '/chat/completions')).toBe(url);
  });

  it.each([
    ['anthropic', 'https://api.anthropic.com/v1/messages'],
    ['deepseek', 'https://api.deepseek.com/anthropic/v1/messages'],
    ['moonshot', 'https://api.moonshot.ai/anthropic/v1/messages'],
    ['kimi-code', 'https://api.kimi.com/coding/v1/messages'],
    ['zai', 'https://api.z.ai/api/anthropic/v1/messages'],
    ['zhipu', 'https://open.bigmodel.cn/api/anthropic/v1/messages'],
    ['minimax', 'https://api.minimax.io/anthropic/v1/messages'],
    ['dashscope-intl', 'https://dashscope-intl.aliyuncs.com/apps/anthropic/v1/messages'],
    ['openrouter', 'https://openrouter.ai/api/v1/messages'],
    ['fireworks', 'https://api.fireworks.ai/inference/v1/messages'],
    ['vercel', 'https://ai-gateway.vercel.sh/v1/messages'],
    ['ollama', 'https://ollama.com/v1/messages'],
    ['openai', null],
    ['gemini', null],
  ])('knows where the Anthropic-shaped routes of %s begin', (id, url) => {
    expect(urlOf(id, 'anthropicAt', '/messages')).toBe(url);
  });

  it.each([
    ['openai', 'openai', 'bearer', true],
    ['anthropic', 'anthropic', 'x-api-key', true],
    ['gemini', 'gemini', 'x-goog-api-key', true],
    ['vertex', 'gemini', 'bearer', false],
    ['ollama', 'ollama', 'bearer', true],
    ['workers-ai', 'openai', 'bearer', true],
  ])('speaks to %s as %s with its key at %s', (id, dialect, keyPlace, keyNamesAccount) => {
    expect(byId.get(id)).toMatchObject({ dialect, keyPlace, keyNamesAccount });
  });

  it('knows where a key goes for every dialect', () => {
    expect(DIALECT_DEFAULTS.azure.keyPlace).toBe('api-key');
    expect(DIALECT_DEFAULTS.bedrock.keyPlace).toBe('bearer');
    expect(DIALECT_DEFAULTS.opaque.openaiAt).toBeNull();
  });
});

describe('model patterns', () => {
  const matchers = BUILT_IN_UPSTREAMS.map(
    (upstream) => [upstream.id, compileGlobs(upstream.models)] as const,
  );
  const upstreamsOf = (model: string): string[] =>
    matchers.filter(([, matches]) => matches(model)).map(([id]) => id);

  it.each([
    ['gpt-4o-mini', 'openai'],
    ['gpt-5.5-pro', 'openai'],
    ['gpt-image-2', 'openai'],
    ['o1', 'openai'],
    ['o3-deep-research', 'openai'],
    ['o4-mini', 'openai'],
    ['text-embedding-3-small', 'openai'],
    ['text-embedding-ada-002', 'openai'],
    ['whisper-1', 'openai'],
    ['tts-1-hd', 'openai'],
    ['dall-e-3', 'openai'],
    ['claude-sonnet-4-6', 'anthropic'],
    ['gemini-2.5-flash', 'gemini'],
    ['text-embedding-004', 'gemini'],
    ['imagen-4.0-generate-001', 'gemini'],
    ['mistral-large-latest', 'mistral'],
    ['codestral-latest', 'mistral'],
    ['deepseek-v4-pro', 'deepseek'],
    ['grok-4.3', 'xai'],
    ['command-a-03-2025', 'cohere'],
    ['sonar', 'perplexity'],
    ['sonar-deep-research', 'perplexity'],
    ['kimi-k2.6', 'moonshot'],
    ['glm-5.1', 'zai'],
    ['MiniMax-M2.7', 'minimax'],
    ['qwen-max', 'dashscope-intl'],
    ['qwen3-coder-plus', 'dashscope-intl'],
  ])('send %s to %s alone', (model, id) => {
    expect(upstreamsOf(model)).toEqual([id]);
  });

  it.each(['llama-3.3-70b-versatile', 'whisper-large-v3', 'qwen3-32b', 'mixtral-8x7b', 'orca-2'])(
    'leave %s, which several providers serve, to nobody',
    (model) => {
      expect(upstreamsOf(model)).toEqual([]);
    },
  );

  it('are in lower case', () => {
    for (const { models } of BUILT_IN_UPSTREAMS) {
      expect(models).toEqual(models.map((model) => model.toLowerCase()));
    }
  });
});
