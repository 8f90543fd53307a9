import { free, open, slot, type OperationRow } from './operation-row.ts';
import { NATIVE, STORED } from './operations-native.ts';

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
