import type { Dialect } from '../contract/dialect.ts';

/** One provider, with only what differs from the defaults of its dialect. */
export interface CatalogRow {
  /**
   * Scheme and host only: whatever path an SDK appends to its base URL then stands unchanged behind
   * the upstream's id.
   */
  readonly baseUrl: string;
  /** @default 'openai' */
  readonly dialect?: Dialect;
  /** Null: the routes lie under a path that differs by account. Default: the dialect's usual path. */
  readonly openaiAt?: string | null;
  /** Default: none, but for the dialect `anthropic`. */
  readonly anthropicAt?: string;
  /**
   * Globs in lower case, only where a model's name alone tells its vendor. Resellers have none, and of
   * a vendor's several hosts one has them: two upstreams that match make a call ambiguous.
   */
  readonly models?: readonly string[];
  /** @default true */
  readonly keyNamesAccount?: boolean;
}

/** The hosted Qwen models; the open weights, which resellers serve too, carry their size in the name. */
const QWEN_MODELS = [
  'qwen-max*',
  'qwen-plus*',
  'qwen-turbo*',
  'qwen-flash*',
  'qwen-long*',
  'qwen-vl-*',
  'qwen-mt-*',
  'qwen-omni-*',
  'qwen3-max*',
  'qwen3-coder-plus*',
  'qwen3-coder-flash*',
  'qwen3-vl-plus*',
  'qvq-max*',
  'qwq-plus*',
];

/**
 * Every provider whose host is fixed, by id. Azure, Bedrock, regional Vertex and self-hosted servers
 * have a host of their own and come in by configuration.
 */
export const CATALOG: Readonly<Record<string, CatalogRow>> = {
  anthropic: {
    baseUrl: 'https://api.anthropic.com',
    dialect: 'anthropic',
    openaiAt: '/v1', // Chat alone: https://platform.claude.com/docs/en/api/openai-sdk
    models: ['claude-*'],
  },
  baseten: { baseUrl: 'https://inference.baseten.co' },
  cerebras: { baseUrl: 'https://api.cerebras.ai' },
  chutes: { baseUrl: 'https://llm.chutes.ai' },
  cohere: {
    baseUrl: 'https://api.cohere.com',
    openaiAt: '/compatibility/v1',
    models: ['command-*', 'c4ai-*', 'embed-english-*', 'embed-multilingual-*', 'embed-v4*'],
  },
  dashscope: {
    baseUrl: 'https://dashscope.aliyuncs.com',
    openaiAt: '/compatible-mode/v1',
    anthropicAt: '/apps/anthropic/v1',
  },
  'dashscope-coding': {
    baseUrl: 'https://coding-intl.dashscope.aliyuncs.com',
    anthropicAt: '/apps/anthropic/v1',
  },
  'dashscope-intl': {
    baseUrl: 'https://dashscope-intl.aliyuncs.com',
    openaiAt: '/compatible-mode/v1',
    anthropicAt: '/apps/anthropic/v1',
    models: QWEN_MODELS,
  },
  deepinfra: { baseUrl: 'https://api.deepinfra.com', openaiAt: '/v1/openai' },
  deepseek: {
    baseUrl: 'https://api.deepseek.com',
    anthropicAt: '/anthropic/v1',
    models: ['deepseek-*'],
  },
  fireworks: {
    baseUrl: 'https://api.fireworks.ai',
    openaiAt: '/inference/v1',
    anthropicAt: '/inference/v1',
  },
  gemini: {
    baseUrl: 'https://generativelanguage.googleapis.com',
    dialect: 'gemini',
    models: ['gemini-*', 'text-embedding-0*', 'imagen-*', 'veo-*', 'learnlm-*'],
  },
  'github-models': { baseUrl: 'https://models.github.ai', openaiAt: '/inference' },
  groq: { baseUrl: 'https://api.groq.com', openaiAt: '/openai/v1' },
  huggingface: { baseUrl: 'https://router.huggingface.co' },
  hyperbolic: { baseUrl: 'https://api.hyperbolic.xyz' },
  'kimi-code': {
    baseUrl: 'https://api.kimi.com',
    openaiAt: '/coding/v1',
    anthropicAt: '/coding/v1',
  },
  minimax: {
    baseUrl: 'https://api.minimax.io',
    anthropicAt: '/anthropic/v1',
    models: ['minimax-*', 'abab*'],
  },
  'minimax-cn': { baseUrl: 'https://api.minimaxi.com', anthropicAt: '/anthropic/v1' },
  mistral: {
    baseUrl: 'https://api.mistral.ai',
    models: [
      'mistral-*',
      'codestral-*',
      'devstral-*',
      'labs-devstral-*',
      'magistral-*',
      'ministral-*',
      'pixtral-*',
      'voxtral-*',
      'open-mistral-*',
      'open-mixtral-*',
    ],
  },
  moonshot: {
    baseUrl: 'https://api.moonshot.ai',
    anthropicAt: '/anthropic/v1',
    models: ['kimi-*', 'moonshot-*'],
  },
  'moonshot-cn': { baseUrl: 'https://api.moonshot.cn', anthropicAt: '/anthropic/v1' },
  nebius: { baseUrl: 'https://api.tokenfactory.nebius.com' },
  novita: { baseUrl: 'https://api.novita.ai', openaiAt: '/openai' },
  nvidia: { baseUrl: 'https://integrate.api.nvidia.com' },
  ollama: { baseUrl: 'https://ollama.com', dialect: 'ollama', anthropicAt: '/v1' },
  openai: {
    baseUrl: 'https://api.openai.com',
    models: [
      'gpt-*',
      'o1*',
      'o3*',
      'o4*',
      'chatgpt-*',
      'codex-mini-*',
      'computer-use-preview*',
      'text-embedding-3-*',
      'text-embedding-ada-*',
      'omni-moderation-*',
      'text-moderation-*',
      'dall-e-*',
      'sora-*',
      'tts-1*',
      'whisper-1', // The other Whispers are open weights that resellers serve.
    ],
  },
  openrouter: {
    baseUrl: 'https://openrouter.ai',
    openaiAt: '/api/v1',
    anthropicAt: '/api/v1',
  },
  perplexity: {
    baseUrl: 'https://api.perplexity.ai',
    openaiAt: '',
    models: ['sonar', 'sonar-*'],
  },
  sambanova: { baseUrl: 'https://api.sambanova.ai' },
  scaleway: { baseUrl: 'https://api.scaleway.ai' },
  siliconflow: { baseUrl: 'https://api.siliconflow.com' },
  together: { baseUrl: 'https://api.together.xyz' },
  vercel: { baseUrl: 'https://ai-gateway.vercel.sh', anthropicAt: '/v1' },
  vertex: {
    baseUrl: 'https://aiplatform.googleapis.com',
    dialect: 'gemini',
    openaiAt: null, // Project and location stand in the path.
    keyNamesAccount: false,
  },
  wandb: { baseUrl: 'https://api.inference.wandb.ai' },
  'workers-ai': {
    baseUrl: 'https://api.cloudflare.com',
    openaiAt: null, // The account stands in the path.
  },
  xai: { baseUrl: 'https://api.x.ai', models: ['grok-*'] },
  zai: {
    baseUrl: 'https://api.z.ai',
    openaiAt: '/api/paas/v4',
    anthropicAt: '/api/anthropic/v1',
    models: ['glm-*', 'cogview-*', 'cogvideox-*'],
  },
  zhipu: {
    baseUrl: 'https://open.bigmodel.cn',
    openaiAt: '/api/paas/v4',
    anthropicAt: '/api/anthropic/v1',
  },
};
