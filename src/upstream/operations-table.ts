import type { Dialect } from '../contract/dialect.ts';

/**
 * The routes of all providers as one table, read from top to bottom; the first row whose path matches
 * decides. Paths are told by their end, because every upstream mounts them somewhere else, and a base
 * URL may hold their first segments. Callers write the paths, so no pattern may take more than linear
 * time: nothing but the last part of one may run over several segments.
 */
export interface OperationRow {
  readonly name: string;
  /** The shape in which the call and its errors are spoken. Null: the upstream's own. */
  readonly shape: Dialect | null;
  /** The group `model`, where there is one, captures the model, still URL-encoded. */
  readonly path: RegExp;
  /** Whether a POST takes a slot. */
  readonly limited: boolean;
  /** The row holds for upstreams of this dialect only. */
  readonly only?: Dialect;
}

function slot(name: string, shape: Dialect | null, path: RegExp, only?: Dialect): OperationRow {
  const row = { name, shape, path: ofAnyCase(path), limited: true };
  return only === undefined ? row : { ...row, only };
}

function free(name: string, shape: Dialect | null, path: RegExp): OperationRow {
  return { name, shape, path: ofAnyCase(path), limited: false };
}

/** Azure and many servers that people run themselves route whatever the case: it must not dodge the slot. */
function ofAnyCase(path: RegExp): RegExp {
  return new RegExp(path, 'i');
}

/** Calls that look like generation by their path and are none: pollings, counts, batches, storage. */
const LOOKALIKES: readonly OperationRow[] = [
  free('count_tokens', 'openai', /\/responses\/input_tokens$/),
  free('count_tokens', 'anthropic', /\/messages\/count_tokens$/),
  free('count_tokens', 'anthropic', /\/publishers\/anthropic\/models\/count-tokens:rawPredict$/),
  free('count_tokens', 'gemini', /:(?:countTokens|computeTokens)$/),
  free('count_tokens', 'bedrock', /\/model\/[^/]+(?:\/[^/]+)?\/count-tokens$/),
  free('count_tokens', null, /\/(?:de)?tokenize$/),
  free('batches', 'anthropic', /\/messages\/batches(?:\/|$)/),
  free('batches', 'gemini', /:(?:batchGenerateContent|asyncBatchEmbedContent)$/),
  free('batches', null, /\/batch(?:es)?(?:\/|$)/),
  // A thread's messages are stored, not answered.
  free('threads', 'openai', /\/threads(?:\/|$)/),
  free('images', 'openai', /\/workflows\/accounts\/[^/]+\/models\/[^/]+\/get_result$/),
  free('responses', 'openai', /\/responses\/(?!compact$)[^/]+(?:\/.+)?$/),
];

const OPENAI: readonly OperationRow[] = [
  slot('chat', 'openai', /\/chat\/completions$/),
  slot('responses', 'openai', /\/responses(?:\/compact)?$/),
  slot('completions', 'openai', /\/completions$/),
  // Before the general row: Ollama's older route ends alike.
  slot('embed', 'ollama', /\/api\/embed(?:dings)?$/),
  slot('embed', 'ollama', /^\/embed(?:dings)?$/, 'ollama'),
  slot('embeddings', 'openai', /\/embeddings$/),
  slot('moderations', 'openai', /\/moderations$/),
  slot('images', 'openai', /\/images\/(?:generations|edits|variations)$/),
  slot('videos', 'openai', /\/videos(?:\/(?:generations|edits|extensions|[^/]+\/remix))?$/),
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
    /\/(?:models\/)?(?<model>(?:(?:tunedModels|endpoints)\/)?[^/:]+):(?:generateContent|streamGenerateContent|generateAnswer)$/,
  ),
  slot('generate', 'gemini', /\/interactions$/),
  slot(
    'embed',
    'gemini',
    /\/(?:models\/)?(?<model>(?:endpoints\/)?[^/:]+):(?:embedContent|batchEmbedContents)$/,
  ),
  slot(
    'predict',
    'gemini',
    /\/(?:models\/)?(?<model>(?:endpoints\/)?[^/:]+):(?:predict|rawPredict|streamRawPredict)$/,
  ),
  slot('videos', 'gemini', /\/(?:models\/)?(?<model>[^/:]+):predictLongRunning$/),
];

/** An ARN that came unencoded has one slash. */
const BEDROCK: readonly OperationRow[] = [
  slot(
    'invoke',
    'bedrock',
    /\/model\/(?<model>[^/]+(?:\/[^/]+)?)\/invoke(?:-with-(?:response|bidirectional)-stream)?$/,
  ),
  slot('converse', 'bedrock', /\/model\/(?<model>[^/]+(?:\/[^/]+)?)\/converse(?:-stream)?$/),
];

const OLLAMA: readonly OperationRow[] = [
  slot('ollama_chat', 'ollama', /\/api\/chat$/),
  slot('ollama_generate', 'ollama', /\/api\/generate$/),
  // The same with a base URL that ends in `/api`.
  slot('ollama_chat', 'ollama', /^\/chat$/, 'ollama'),
  slot('ollama_generate', 'ollama', /^\/generate$/, 'ollama'),
];

/** Routes that one provider or one kind of server has for itself. */
const NATIVE: readonly OperationRow[] = [
  // Cohere and the servers that copy its routes; LM Studio's own chat.
  slot('chat', null, /(?:^|\/v[12])\/chat$/),
  slot('embed', null, /(?:^|\/v[12])\/embed$/),
  slot('rerank', null, /\/re-?rank$/),
  // Perplexity.
  slot('chat', null, /\/sonar$/),
  // Mistral.
  slot('ocr', null, /\/ocr$/),
  slot('classifications', null, /\/classif(?:ications|y)$/),
  // NVIDIA.
  slot('rerank', null, /\/ranking$/),
  // Fireworks names the model of an image in the path.
  slot('images', null, /\/image_generation\/(?<model>.+)$/),
  slot('images', null, /\/workflows\/(?<model>accounts\/[^/]+\/models\/[^/]+)(?:\/[^/]+)?$/),
  // DeepInfra.
  slot('predict', null, /\/v1\/inference\/(?<model>.+)$/),
  // Workers AI: models begin with @.
  slot('predict', null, /\/run\/(?<model>(?:@|%40).+)$/),
  // MiniMax.
  slot('chat', null, /\/text\/chatcompletion_(?:v2|pro)$/),
  slot('audio_speech', null, /\/t2a_v2$/),
  slot('images', null, /\/image_generation$/),
  slot('videos', null, /\/video_generation$/),
  // DashScope.
  slot('generate', null, /\/services\/aigc\/(?:text|multimodal)-generation\/generation$/),
  slot('images', null, /\/services\/aigc\/[^/]+\/image-synthesis$/),
  slot('videos', null, /\/services\/aigc\/[^/]+\/video-synthesis$/),
  slot('embeddings', null, /\/services\/embeddings\/.+$/),
  slot('rerank', null, /\/services\/rerank\/.+$/),
  // vLLM, llama.cpp, Text Generation Inference.
  slot('embed', null, /\/pooling$/),
  slot('rerank', null, /\/score$/),
  slot('embed', null, /^\/embedding$/),
  slot('completions', null, /^\/(?:completion|infill|generate|generate_stream)$/),
];

/** Names for what passes without a slot; a path that no row knows does so as `other`. */
const STORED: readonly OperationRow[] = [
  free('realtime', 'openai', /\/realtime(?:\/|$)/),
  free('fine_tuning', null, /\/fine[_-]tuning(?:\/|$)/),
  free('vector_stores', 'openai', /\/vector_stores(?:\/|$)/),
  free('assistants', 'openai', /\/assistants(?:\/|$)/),
  free('uploads', null, /\/uploads(?:\/|$)/),
  free('files', null, /\/files(?:\/|$|:)/),
  free('async_invoke', 'bedrock', /\/async-invoke(?:\/|$)/),
  free('models', 'ollama', /\/api\/(?:tags|show|ps|pull|push|create|copy|delete|version)$/),
  free('models', null, /\/(?:models|tunedModels)(?:\/|$)/),
];

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

/** Names of the operations that take a slot. */
export const LIMITED_OPERATIONS: readonly string[] = [
  ...new Set(OPERATIONS.flatMap(({ name, limited }) => (limited ? [name] : []))),
];
