import type { Dialect } from '../../../src/contract/http.ts';
import type { NamesBySystem } from '../../../src/providers/provider.ts';

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

/** A server that other systems know by name. It only becomes an upstream through configuration. */
export interface NamedServer {
  /** Id of the upstream that an import creates for it. */
  readonly id: string;
  readonly namedBy: NamesBySystem;
  readonly baseUrl: string;
  readonly dialect: Dialect;
}

/** Self-hosted model servers, at their default ports. */
export const LOCAL_SERVERS: readonly NamedServer[] = [
  {
    id: 'ollama-local',
    namedBy: { clawith: ['ollama'], picoclaw: ['ollama'] },
    baseUrl: 'http://localhost:11434',
    dialect: 'ollama',
  },
  {
    id: 'vllm',
    namedBy: { clawith: ['vllm'], picoclaw: ['vllm'] },
    baseUrl: 'http://localhost:8000',
    dialect: 'openai',
  },
  {
    id: 'sglang',
    namedBy: { clawith: ['sglang'] },
    baseUrl: 'http://localhost:30000',
    dialect: 'openai',
  },
  {
    id: 'lmstudio',
    namedBy: { hermes: ['lmstudio'], picoclaw: ['lmstudio'] },
    baseUrl: 'http://localhost:1234',
    dialect: 'openai',
  },
  {
    id: 'litellm',
    namedBy: { picoclaw: ['litellm'] },
    baseUrl: 'http://localhost:4000',
    dialect: 'openai',
  },
];

/**
 * Hosts that other systems know by name and that are not built in here. An import creates upstreams for them. The
 * addresses are those that the systems themselves use, from `provider_metadata.go` of PicoClaw, `hermes_cli/auth.py` of
 * Hermes and the folders of `src/providers` of Portkey's gateway, all read on 2026-11-27. All of them use OpenAI's
 * dialect.
 */
export const HOSTED_SERVERS: readonly NamedServer[] = [
  ['arcee', 'https://api.arcee.ai/api/v1', { hermes: ['arcee', 'arcee-ai', 'arceeai'] }],
  ['avian', 'https://api.avian.io/v1', { picoclaw: ['avian'] }],
  ['cometapi', 'https://api.cometapi.com/v1', { portkey: ['cometapi'] }],
  [
    'dashscope-us',
    'https://dashscope-us.aliyuncs.com/compatible-mode/v1',
    { picoclaw: ['qwen-us', 'dashscope-us'] },
  ],
  ['featherless', 'https://api.featherless.ai/v1', { portkey: ['featherless-ai'] }],
  ['gmi', 'https://api.gmi-serving.com/v1', { hermes: ['gmi'] }],
  ['inference-net', 'https://api.inference.net/v1', { portkey: ['inference-net'] }],
  ['kilocode', 'https://api.kilo.ai/api/gateway', { hermes: ['kilocode'] }],
  ['kluster', 'https://api.kluster.ai/v1', { portkey: ['kluster-ai'] }],
  ['lambda', 'https://api.lambdalabs.com/v1', { portkey: ['lambda'] }],
  ['lemonfox', 'https://api.lemonfox.ai/v1', { portkey: ['lemonfox-ai'] }],
  ['longcat', 'https://api.longcat.chat/openai', { picoclaw: ['longcat'] }],
  [
    'mimo',
    'https://api.xiaomimimo.com/v1',
    { hermes: ['xiaomi', 'mimo', 'xiaomi-mimo'], picoclaw: ['mimo'] },
  ],
  ['modelscope', 'https://api-inference.modelscope.cn/v1', { picoclaw: ['modelscope'] }],
  ['ncompass', 'https://api.ncompass.tech/v1', { portkey: ['ncompass'] }],
  ['nscale', 'https://inference.api.nscale.com/v1', { portkey: ['nscale'] }],
  ['opencode-go', 'https://opencode.ai/zen/go/v1', { hermes: ['opencode-go'] }],
  ['opencode-zen', 'https://opencode.ai/zen/v1', { hermes: ['opencode-zen'] }],
  ['ovhcloud', 'https://oai.endpoints.kepler.ai.cloud.ovh.net/v1', { portkey: ['ovhcloud'] }],
  ['shengsuanyun', 'https://router.shengsuanyun.com/api/v1', { picoclaw: ['shengsuanyun'] }],
  ['tokenhub', 'https://tokenhub.tencentmaas.com/v1', { hermes: ['tencent-tokenhub'] }],
  ['upstage', 'https://api.upstage.ai/v1', { hermes: ['upstage', 'solar'], portkey: ['upstage'] }],
  ['venice', 'https://api.venice.ai/api/v1', { picoclaw: ['venice'] }],
  ['vivgrid', 'https://api.vivgrid.com/v1', { picoclaw: ['vivgrid'] }],
  ['volcengine', 'https://ark.cn-beijing.volces.com/api/v3', { picoclaw: ['volcengine'] }],
].map(([id, baseUrl, namedBy]) => ({ id, baseUrl, namedBy, dialect: 'openai' }) as NamedServer);

/**
 * Facts about providers as other systems configure them. Sources: `hermes_cli/auth.py` of Hermes Agent, and `api.ts` of
 * each folder of `src/providers` of Portkey's gateway, read on 2026-11-27.
 */

/** Providers that Hermes signs in to automatically, with tokens that it renews. */
export const SIGNED_IN_BY_HERMES: ReadonlySet<string> = new Set(
  (
    'nous nous-portal openai-codex codex copilot github-copilot copilot-acp qwen-oauth xai-oauth grok-oauth ' +
    'minimax-oauth google-gemini-cli'
  ).split(' '),
);

/** Prefix of tokens that expire, which Hermes stores together with keys, whatever type it records for them. */
export const SIGN_IN_TOKEN_OF_HERMES = 'sk-ant-oat';

/** A field of a Portkey target that forms an address. */
interface AddressField {
  /** Id of the provider that uses it. */
  readonly provider: string;
  readonly field: string;
  /** Address with `*` for the value. null if the value is the address. */
  readonly address: string | null;
}

/** Fields that form addresses at Portkey, in order of precedence. */
export const PORTKEY_ADDRESSES: readonly AddressField[] = [
  { provider: 'azure', field: 'azure_foundry_url', address: null },
  { provider: 'azure', field: 'azure_resource_name', address: 'https://*.openai.azure.com' },
  { provider: 'azure', field: 'resource_name', address: 'https://*.openai.azure.com' },
  { provider: 'bedrock', field: 'aws_region', address: 'https://bedrock-runtime.*.amazonaws.com' },
  {
    provider: 'workers-ai',
    field: 'workers_ai_account_id',
    address: 'https://api.cloudflare.com/client/v4/accounts/*/ai/v1',
  },
  { provider: 'huggingface', field: 'huggingface_base_url', address: null },
];

/** A temporary way to sign in that a Portkey target may use. */
interface SignIn {
  readonly provider: string;
  /** Fields that indicate it. Empty if the provider has no other way to sign in. */
  readonly fields: readonly string[];
  readonly message: string;
}

/** Ways to sign in at Portkey that no secret can replace. */
export const PORTKEY_SIGN_INS: readonly SignIn[] = [
  {
    provider: 'vertex',
    fields: [],
    message:
      'Vertex AI accepts only tokens that expire after an hour, so a stored secret does not work. Let callers send their own tokens',
  },
  {
    provider: 'azure',
    fields: ['azure_auth_mode', 'azure_ad_token', 'azure_entra_client_id'],
    message:
      'signs in with Entra ID, but members need keys. Set `api_key` to a key of the resource',
  },
];

/** Fields of cloud providers for signing in and for the location of a target. */
export const PORTKEY_CLOUD_FIELDS: readonly string[] = [
  ...PORTKEY_ADDRESSES.map(({ field }) => field),
  ...PORTKEY_SIGN_INS.flatMap(({ fields }) => fields),
  ...(
    'deployment_id azure_deployment_id azure_model_name azure_deployment_name deployments azure_entra_client_secret ' +
    'azure_entra_tenant_id aws_auth_type aws_access_key_id aws_secret_access_key aws_session_token aws_role_arn ' +
    'aws_external_id vertex_project_id vertex_region vertex_service_account_json'
  ).split(' '),
];
