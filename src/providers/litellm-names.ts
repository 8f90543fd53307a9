/** A provider as LiteLLM names it in the prefix of a model. */
export interface LitellmProvider {
  /** Id of the provider here. Absent if it is unknown here. */
  readonly id?: string;
  /**
   * Base URL that LiteLLM uses for a provider that is not built in here, with OpenAI's dialect. Absent if `api_base` is
   * required.
   */
  readonly baseUrl?: string;
  /** Environment variable that LiteLLM reads the key from. Absent for the name in upper case followed by `_API_KEY`. */
  readonly keyVariable?: string;
  /** false if the provider has a dialect of its own that Headgate does not support. */
  readonly isReachable?: false;
  /** Address of a region, with `*` for its name. */
  readonly regionalUrl?: string;
  /** Why a deployment without `api_base` cannot be called from here. Absent if it can. */
  readonly wantsBase?: string;
  /** The part of a model name that controls how LiteLLM calls it. It is removed. */
  readonly modelPrefix?: RegExp;
  /** Id of the provider at addresses other than its own. Absent if it is the same. */
  readonly elsewhere?: string;
}

const OTHER_DIALECT: LitellmProvider = { isReachable: false };

const VERTEX: LitellmProvider = {
  id: 'vertex',
  wantsBase:
    'is a Vertex AI model, which requires short-lived Google Cloud tokens that Headgate cannot create. Use the prefix `gemini/` for the Gemini API, or let callers send their tokens to `/vertex`',
};

const BEDROCK: LitellmProvider = {
  id: 'bedrock',
  keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
  regionalUrl: 'https://bedrock-runtime.*.amazonaws.com',
  wantsBase:
    'is an Amazon Bedrock model without a region. Add `aws_region_name`, and a Bedrock API key as `api_key`, because Headgate does not sign calls',
  modelPrefix: /^(?:converse|converse_like|invoke)\//,
};

/**
 * Names of providers in LiteLLM that differ from the ids here. Names that are neither here nor an id are a part of the
 * model name.
 *
 * Source: `litellm/litellm_core_utils/get_llm_provider_logic.py` and `litellm/types/utils.py` of BerriAI/litellm,
 * 2026-11-27.
 */
const NAMES: Readonly<Record<string, LitellmProvider>> = {
  openai: { id: 'openai', modelPrefix: /^responses\// },
  azure: { id: 'azure', modelPrefix: /^(?:responses|o_series|gpt5_series)\// },
  'text-completion-openai': { id: 'openai', keyVariable: 'OPENAI_API_KEY' },
  aiohttp_openai: { id: 'openai', keyVariable: 'OPENAI_API_KEY' },
  azure_text: { id: 'azure', keyVariable: 'AZURE_API_KEY' },
  // Models of Azure's catalog are at Azure OpenAI hosts, or use OpenAI's dialect at their own.
  azure_ai: { id: 'azure', elsewhere: 'openai' },
  anthropic_text: { id: 'anthropic', keyVariable: 'ANTHROPIC_API_KEY' },
  vertex_ai: VERTEX,
  vertex_ai_beta: VERTEX,
  bedrock: BEDROCK,
  bedrock_converse: BEDROCK,
  cohere_chat: { id: 'cohere', keyVariable: 'COHERE_API_KEY' },
  dashscope: { id: 'dashscope-intl' },
  fireworks_ai: { id: 'fireworks' },
  nvidia_nim: { id: 'nvidia' },
  perplexity: { id: 'perplexity', keyVariable: 'PERPLEXITYAI_API_KEY' },
  together_ai: { id: 'together', keyVariable: 'TOGETHERAI_API_KEY' },
  vercel_ai_gateway: { id: 'vercel' },
  ollama: { id: 'ollama-local' },
  ollama_chat: { id: 'ollama-local' },
  ai21: { baseUrl: 'https://api.ai21.com/studio/v1' },
  ai21_chat: { baseUrl: 'https://api.ai21.com/studio/v1', keyVariable: 'AI21_API_KEY' },
  anyscale: { baseUrl: 'https://api.endpoints.anyscale.com/v1' },
  codestral: { baseUrl: 'https://codestral.mistral.ai/v1' },
  empower: { baseUrl: 'https://app.empower.dev/api/v1' },
  friendliai: { baseUrl: 'https://api.friendli.ai/serverless/v1' },
  galadriel: { baseUrl: 'https://api.galadriel.com/v1' },
  github: { baseUrl: 'https://models.inference.ai.azure.com' },
  meta_llama: { baseUrl: 'https://api.llama.com/compat/v1', keyVariable: 'LLAMA_API_KEY' },
  volcengine: { baseUrl: 'https://ark.cn-beijing.volces.com/api/v3' },
  custom_openai: {},
  hosted_vllm: {},
  infinity: {},
  litellm_proxy: {},
  llamafile: {},
  lm_studio: {},
  openai_like: {},
  oobabooga: {},
  vllm: {},
  xinference: {},
  ...Object.fromEntries(
    [
      'aleph_alpha',
      'assemblyai',
      'clarifai',
      'cloudflare',
      'databricks',
      'deepgram',
      'elevenlabs',
      'github_copilot',
      'jina_ai',
      'maritalk',
      'nlp_cloud',
      'oci',
      'palm',
      'petals',
      'predibase',
      'replicate',
      'sagemaker',
      'sagemaker_chat',
      'snowflake',
      'text-completion-codestral',
      'topaz',
      'triton',
      'voyage',
      'watsonx',
      'watsonx_text',
    ].map((name) => [name, OTHER_DIALECT]),
  ),
};

/**
 * Finds the provider that LiteLLM means by a name in lower case. Returns null if it does not differ from the ids here.
 */
export function litellmProvider(name: string): LitellmProvider | null {
  return Object.hasOwn(NAMES, name) ? (NAMES[name] ?? null) : null;
}

/** A vendor that LiteLLM assigns to a model name without prefix, if the vendors' own patterns here differ. */
interface BareName {
  /** In lower case. */
  readonly name: RegExp;
  readonly provider: string;
}

/**
 * Model names without prefix that LiteLLM does not call at the vendor of the model. Its list of Gemini models is that
 * of Vertex AI.
 *
 * Source: as above.
 */
export const LITELLM_BARE_NAMES: readonly BareName[] = [
  { name: /^ft:gpt-/, provider: 'openai' },
  {
    name: /^(?:gemini-|imagen|text-embedding-00|textembedding-gecko|chat-bison|text-bison)/,
    provider: 'vertex_ai',
  },
  { name: /^claude-[^/]*@/, provider: 'vertex_ai' },
  {
    name: /^(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|cohere|mistral|ai21)\./,
    provider: 'bedrock',
  },
];

/** Parts of a configuration that concern one provider, and whose calls bypass the list of deployments. */
export const LITELLM_PARTS_OF_PROVIDERS: readonly string[] = ['default_vertex_config'];

/** Keys that mean that there is none. Self-hosted servers are configured with one of these. */
export const PLACEHOLDER_KEYS: ReadonlySet<string> = new Set(
  [
    '',
    'none',
    'null',
    'empty',
    'na',
    'n/a',
    'fake',
    'fake-key',
    'dummy',
    'no-key',
    'not-needed',
  ].concat(['sk-no-key-required', 'anything', 'any', 'x']),
);
