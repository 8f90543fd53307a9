import { READING_METHODS, type Dialect } from '../../contract/http.ts';

/** The operations of all providers: the routes that name them, and what each means for limits and access. */

/**
 * Which callers may use a route without a slot if the upstream sees the operator's key. `open`: all, with the methods
 * of the row. `readable`: all that only read. `listed`: those for which the operator lists it. `closed`: none.
 */
type RouteAccess = 'open' | 'readable' | 'listed' | 'closed';

export interface OperationRow {
  readonly name: string;
  /** The dialect of the call and its errors. null for the dialect of the upstream. */
  readonly shape: Dialect | null;
  /** The named group `model`, if there is one, captures the model, still URL-encoded. */
  readonly path: RegExp;
  /** Whether a POST takes a slot. */
  readonly limited: boolean;
  /** Access for calls that take no slot. */
  readonly access: RouteAccess;
  /** Methods for which an `open` or `readable` route is open. */
  readonly openBy: readonly string[];
  /** Restricts the row to upstreams of this dialect. */
  readonly only?: Dialect;
}

/** A route whose POST generates. Other methods there are about what was generated before. */
function slot(name: string, shape: Dialect | null, path: RegExp, only?: Dialect): OperationRow {
  const base = { name, shape, path: ofAnyCase(path), limited: true };
  const row = { ...base, access: 'listed' as const, openBy: [] };
  return only === undefined ? row : { ...row, only };
}

/** A route that takes no slot, and is open to all callers with these methods. */
function open(
  name: string,
  shape: Dialect | null,
  path: RegExp,
  ...openBy: readonly string[]
): OperationRow {
  return { name, shape, path: ofAnyCase(path), limited: false, access: 'open', openBy };
}

/** A route that takes no slot. */
function free(
  name: string,
  shape: Dialect | null,
  path: RegExp,
  access: Exclude<RouteAccess, 'open'> = 'listed',
): OperationRow {
  const openBy = access === 'readable' ? READING_METHODS : [];
  return { name, shape, path: ofAnyCase(path), limited: false, access, openBy };
}

/** Azure and many self-hosted servers ignore the case of routes, so a different case must not bypass the slot. */
function ofAnyCase(path: RegExp): RegExp {
  return new RegExp(path, 'i');
}

/** Routes at which only one provider, or one kind of server, generates. */
const NATIVE: readonly OperationRow[] = [
  // Cohere and the servers that copy its routes, and LM Studio's own chat.
  slot('chat', null, /(?:^|\/v[12])\/chat$/),
  slot('embed', null, /(?:^|\/v[12])\/embed$/),
  slot('generate', null, /\/v[12]\/generate$/),
  slot('summarize', null, /(?:^|\/v[12])\/summarize$/),
  slot('rerank', null, /\/re-?rank(?:ing)?$/),
  // Perplexity.
  slot('chat', null, /\/sonar$/),
  // Mistral. OpenAI stores conversations under the same path. A slot for that is harmless.
  slot('conversations', null, /\/conversations(?:\/[^/]+(?:\/restart)?)?$/),
  slot('ocr', null, /\/ocr$/),
  slot('classifications', null, /\/classif(?:ications|y)$/),
  // NVIDIA.
  slot('rerank', null, /\/ranking$/),
  // Voyage.
  slot('embeddings', null, /\/(?:multimodal|contextualized)embeddings$/),
  // Fireworks names the model of an image in the path.
  slot('images', null, /\/image_generation\/(?<model>.+)$/),
  slot('images', null, /\/workflows\/(?<model>accounts\/[^/]+\/models\/[^/]+)(?:\/[^/]+)?$/),
  // DeepInfra.
  slot('predict', null, /\/v1\/inference\/(?<model>.+)$/),
  // Hugging Face.
  slot('predict', null, /\/hf-inference\/models\/(?<model>.+?)(?:\/pipeline\/[^/]+)?$/),
  // Workers AI. Its models begin with @.
  slot('predict', null, /\/run\/(?<model>(?:@|%40).+)$/),
  // Z.ai.
  slot('agents', null, /\/api\/v1\/agents$/),
  // MiniMax.
  slot('chat', null, /\/text\/chatcompletion(?:_v2|_pro)?$/),
  slot('audio_speech', null, /\/t2a(?:_async)?(?:_v2|_pro)?$/),
  slot('audio_speech', null, /\/voice_(?:clone|design)$/),
  slot('music', null, /\/(?:music|lyrics)_generation$/),
  slot('images', null, /\/image_generation$/),
  slot('videos', null, /\/video_(?:template_)?generation$/),
  // Hyperbolic, SiliconFlow, Novita, xAI.
  slot('images', null, /\/image\/generation$/),
  slot('audio_speech', null, /\/(?:audio\/generation|tts)$/),
  slot('audio_transcriptions', null, /\/stt$/),
  slot('videos', null, /\/video\/submit$/),
  slot('images', null, /\/v3\/async\/[^/]+$/),
  // DashScope.
  slot('generate', null, /\/services\/aigc\/(?:text|multimodal)-generation\/generation$/),
  slot('videos', null, /\/services\/aigc\/[^/]+\/video-synthesis$/),
  slot('images', null, /\/services\/aigc\/[^/]+(?:\/[^/]+)?$/),
  slot('audio_speech', null, /\/services\/audio\/tts(?:\/[^/]+)?$/),
  slot('audio_transcriptions', null, /\/services\/audio\/[^/]+\/[^/]+$/),
  slot('embeddings', null, /\/services\/embeddings\/.+$/),
  slot('rerank', null, /\/services\/rerank\/.+$/),
  slot('completions', null, /\/apps\/[^/]+\/completion$/),
  // vLLM, llama.cpp, Text Generation Inference and Text Embeddings Inference.
  slot('embed', null, /\/pooling$/),
  slot('rerank', null, /\/score$/),
  slot('embed', null, /^\/(?:embedding|embed_all|embed_sparse|similarity)$/),
  slot('completions', null, /^\/(?:completion|infill|generate|generate_stream)$/),
  slot('completions', null, /\/invocations$/),
  // Its root generates, and some clients use it to check whether the server is up.
  { ...slot('completions', null, /^$/), access: 'readable', openBy: READING_METHODS },
  slot('predict', null, /\/predict$/),
];

/** Names for routes that take no slot. A path that matches no row takes none either, under the name `other`. */
const STORED: readonly OperationRow[] = [
  // Claude Code requests it before its first call.
  open('health', 'anthropic', /\/api\/hello$/, ...READING_METHODS),
  open('health', null, /^(?:\/v1)?\/(?:health|ping|version)$/, ...READING_METHODS),
  open(
    'health',
    null,
    /^\/(?:healthz|livez|readyz|health\/(?:live|ready|liveliness|readiness))$/,
    ...READING_METHODS,
  ),
  // Model information of self-hosted servers: vLLM, SGLang, llama.cpp, TGI and TEI.
  free('models', null, /^\/(?:info|load|props|(?:get_)?model_info)$/, 'readable'),
  // A session generates for as long as it lasts, without any limit here.
  free('realtime', 'openai', /\/realtime(?:\/|$)/, 'closed'),
  free('chat', null, /\/chat\/deferred-completion\/.+$/),
  free('videos', null, /\/videos?(?:\/|$)/),
  free('interactions', 'gemini', /\/interactions\/.+$/),
  // Work that continues at the provider: Gemini, DashScope, Z.ai, MiniMax, Azure.
  free('results', null, /\/(?:operations|tasks|async-result|query)(?:\/|$)/),
  free('results', null, /:fetchPredictOperation$/),
  free('fine_tuning', null, /\/(?:fine[_-]?tun(?:ing|es)|tuningJobs)(?:\/|$)/),
  free('vector_stores', null, /\/(?:vector_stores|fileSearchStores|corpora)(?:\/|$)/),
  free('assistants', 'openai', /\/assistants(?:\/|$)/),
  free('agents', null, /\/agents(?:\/|$)/),
  free('evals', null, /\/eval(?:s|uations?)(?:\/|$)/),
  free('containers', 'openai', /\/containers(?:\/|$)/),
  free('datasets', null, /\/datasets(?:\/|$)/),
  free('libraries', null, /\/libraries(?:\/|$)/),
  free('connectors', null, /\/connectors(?:\/|$)/),
  free('uploads', null, /\/uploads(?:\/|$)/),
  free('files', null, /\/files(?:\/|$|:)/),
  free('caches', 'gemini', /\/cachedContents(?:\/|$)/),
  free('async_invoke', 'bedrock', /\/async-invoke(?:\/|$)/),
  open('models', 'ollama', /\/api\/show$/, 'POST'),
  open('models', 'ollama', /\/api\/(?:tags|ps|version)$/, ...READING_METHODS),
  free('models', 'ollama', /\/api\/(?:pull|push|create|copy|delete)$/),
  free(
    'models',
    null,
    /\/(?:(?:language|embedding|(?:image|video)-generation)-models|models|tunedModels)(?:\/|$)/,
    'readable',
  ),
];

/** Routes that look like generation by their path but are not: polling, counting, batches, storage. */
const LOOKALIKES: readonly OperationRow[] = [
  open('count_tokens', 'openai', /\/responses\/input_tokens$/, 'POST'),
  open('count_tokens', 'anthropic', /\/messages\/count_tokens$/, 'POST'),
  open(
    'count_tokens',
    'anthropic',
    /\/publishers\/anthropic\/models\/count-tokens:rawPredict$/,
    'POST',
  ),
  open('count_tokens', 'gemini', /:(?:countTokens|computeTokens)$/, 'POST'),
  open('count_tokens', 'bedrock', /\/model\/[^/]+(?:\/[^/]+)?\/count-tokens$/, 'POST'),
  open(
    'count_tokens',
    null,
    /\/(?:(?:de)?tokenize|tokenize-text|tokenizer|estimate-token-count)$/,
    'POST',
  ),
  free('batches', 'anthropic', /\/messages\/batches(?:\/|$)/),
  free('batches', 'gemini', /:(?:batchGenerateContent|asyncBatchEmbedContent)$/),
  free('batches', null, /\/(?:batch(?:es)?|batchPredictionJobs|embed-jobs)(?:\/|$)/),
  slot('runs', 'openai', /\/threads\/(?:[^/]+\/)?runs$/),
  slot('runs', 'openai', /\/threads\/[^/]+\/runs\/[^/]+\/submit_tool_outputs$/),
  free('chat', 'openai', /\/chat\/completions\/.+$/),
  free('conversations', null, /\/conversations\/[^/]+\/(?!restart$).+$/),
  // The messages of a thread are stored and not answered.
  free('threads', 'openai', /\/threads(?:\/|$)/),
  free('images', 'openai', /\/workflows\/accounts\/[^/]+\/models\/[^/]+\/get_result$/),
  free('responses', 'openai', /\/responses\/(?!compact$)[^/]+(?:\/.+)?$/),
];

const OPENAI: readonly OperationRow[] = [
  slot('chat', 'openai', /\/chat\/completions$/),
  slot('responses', 'openai', /\/responses(?:\/compact)?$/),
  slot('completions', 'openai', /\/completions$/),
  // Before the general row, because Ollama's older route has the same ending.
  slot('embed', 'ollama', /\/api\/embed(?:dings)?$/),
  slot('embed', 'ollama', /^\/embed(?:dings)?$/, 'ollama'),
  slot('embeddings', 'openai', /\/embeddings$/),
  slot('moderations', 'openai', /\/moderations$/),
  slot('images', 'openai', /\/images\/(?:generations(?::submit)?|edits|variations)$/),
  slot('videos', 'openai', /\/videos(?:\/(?:generations|edits|extensions|[^/]+\/remix))?$/),
  slot('videos', 'openai', /\/video\/generations(?:\/jobs)?$/),
  slot('audio_transcriptions', 'openai', /\/audio\/transcriptions$/),
  slot('audio_translations', 'openai', /\/audio\/translations$/),
  slot('audio_speech', 'openai', /\/audio\/speech$/),
];

const ANTHROPIC: readonly OperationRow[] = [
  slot('messages', 'anthropic', /\/messages$/),
  slot(
    'messages',
    'anthropic',
    /\/publishers\/anthropic\/models\/(?<model>[^/:]+):(?:rawPredict|streamRawPredict)$/,
  ),
  slot('completions', 'anthropic', /\/v1\/complete$/),
];

const GEMINI: readonly OperationRow[] = [
  slot(
    'generate',
    'gemini',
    /\/(?:models\/)?(?<model>(?:(?:tunedModels|endpoints)\/)?[^/:]+):(?:generateContent|streamGenerateContent|generateAnswer|generateText|generateMessage)$/,
  ),
  slot('generate', 'gemini', /\/interactions$/),
  slot(
    'embed',
    'gemini',
    /\/(?:models\/)?(?<model>(?:endpoints\/)?[^/:]+):(?:embedContent|batchEmbedContents|embedText|batchEmbedText)$/,
  ),
  slot(
    'predict',
    'gemini',
    /\/(?:models\/)?(?<model>(?:endpoints\/)?[^/:]+):(?:predict|explain|(?:stream)?rawPredict|(?:serverStreaming|streaming|(?:stream)?direct)(?:Raw)?Predict)$/,
  ),
  slot('videos', 'gemini', /\/(?:models\/)?(?<model>[^/:]+):predictLongRunning$/),
  slot('agents', 'gemini', /\/reasoningEngines\/[^/:]+:(?:query|streamQuery)$/),
];

/** An unencoded ARN has one slash. */
const BEDROCK: readonly OperationRow[] = [
  slot('async_invoke', 'bedrock', /\/async-invoke$/),
  slot(
    'invoke',
    'bedrock',
    /\/model\/(?<model>[^/]+(?:\/[^/]+)?)\/invoke(?:-with-(?:response|bidirectional)-stream)?$/,
  ),
  slot('converse', 'bedrock', /\/model\/(?<model>[^/]+(?:\/[^/]+)?)\/converse(?:-stream)?$/),
  slot('moderations', 'bedrock', /\/guardrail\/[^/]+\/version\/[^/]+\/apply$/),
  slot('generate', 'bedrock', /\/retrieveAndGenerate(?:Stream)?$/),
  slot('agents', 'bedrock', /\/agents\/[^/]+\/agentAliases\/[^/]+\/sessions\/[^/]+\/text$/),
  slot('agents', 'bedrock', /\/flows\/[^/]+\/aliases\/[^/]+$/),
];

const OLLAMA: readonly OperationRow[] = [
  slot('ollama_chat', 'ollama', /\/api\/chat$/),
  slot('ollama_generate', 'ollama', /\/api\/generate$/),
  // The same with a base URL that ends in `/api`.
  slot('ollama_chat', 'ollama', /^\/chat$/, 'ollama'),
  slot('ollama_generate', 'ollama', /^\/generate$/, 'ollama'),
];

/**
 * The routes of all providers as one table, read from top to bottom. The first row whose path matches applies. Paths
 * are matched by their end, because each upstream mounts them elsewhere, and a base URL may contain their first
 * segments. Callers control the paths, so every pattern must take linear time: only the last part of a pattern may span
 * several segments.
 */
export const OPERATIONS: readonly OperationRow[] = [
  ...LOOKALIKES,
  ...OPENAI,
  ...ANTHROPIC,
  ...GEMINI,
  ...BEDROCK,
  ...OLLAMA,
  ...NATIVE,
  ...STORED,
];

/** The operation of every session over WebSocket. */
export const SESSION_NAME = 'realtime';

/** The name by which groups match leases that callers request directly. */
export const LEASE = 'lease';

export const OPAQUE = 'opaque';

export const LIMITED_OPERATIONS: readonly string[] = [
  ...new Set(OPERATIONS.flatMap(({ name, limited }) => (limited ? [name] : []))),
  SESSION_NAME,
  OPAQUE,
];

/** Names of the operations that take no slot, and are closed with the operator's key unless they are listed. */
export const LISTED_OPERATIONS: readonly string[] = [
  ...new Set(
    OPERATIONS.flatMap(({ name, access }) =>
      access === 'listed' || access === 'readable' ? [name] : [],
    ),
  ),
  OPAQUE,
];
