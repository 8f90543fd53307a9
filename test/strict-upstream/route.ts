import type { StrictDialect } from './settings.ts';

/** Operation of a call, by its path. */
type StrictOperation =
  | 'chat'
  | 'completions'
  | 'responses'
  | 'embeddings'
  | 'images'
  | 'transcriptions'
  | 'speech'
  | 'messages'
  | 'count_tokens'
  | 'generate'
  | 'generate_stream'
  | 'gemini_count'
  | 'ollama_chat'
  | 'ollama_generate'
  | 'models'
  | 'unknown';

export interface StrictRoute {
  readonly operation: StrictOperation;
  readonly dialect: StrictDialect;
  /** The model, where the path names it. */
  readonly model: string | null;
  /** Whether a provider would count the call as one in flight. */
  readonly counted: boolean;
}

/** By the end of the path, so that any prefix (`/api/paas/v4`, `/openai/v1`) leads to the same. */
const ENDINGS: readonly (readonly [RegExp, StrictOperation])[] = [
  [/\/chat\/completions$/, 'chat'],
  [/\/completions$/, 'completions'],
  [/\/responses$/, 'responses'],
  [/\/embeddings$/, 'embeddings'],
  [/\/images\/(?:generations|edits|variations)$/, 'images'],
  [/\/audio\/(?:transcriptions|translations)$/, 'transcriptions'],
  [/\/audio\/speech$/, 'speech'],
  [/\/messages$/, 'messages'],
  [/\/messages\/count_tokens$/, 'count_tokens'],
  [/:generateContent$/, 'generate'],
  [/:streamGenerateContent$/, 'generate_stream'],
  [/:countTokens$/, 'gemini_count'],
  [/\/api\/chat$/, 'ollama_chat'],
  [/\/api\/generate$/, 'ollama_generate'],
];

const UNCOUNTED: readonly StrictOperation[] = ['count_tokens', 'gemini_count', 'models'];

const GEMINI_PATH = /\/models\/(.+):[A-Za-z]+$/;
const AZURE_PATH = /\/deployments\/([^/]+)\//;

function dialectOf(path: string, operation: StrictOperation, anthropic: boolean): StrictDialect {
  if (operation === 'messages' || operation === 'count_tokens' || anthropic) return 'anthropic';
  if (operation.startsWith('ge') || /\/v1(?:beta|alpha)\/models/.test(path)) return 'gemini';
  if (operation.startsWith('ollama')) return 'ollama';
  if (AZURE_PATH.test(path)) return 'azure';
  return path.includes('/bedrock/') ? 'bedrock' : 'openai';
}

/** Recognises a call by method and path; `anthropic` says that it carries `anthropic-version`. */
export function recogniseRoute(method: string, path: string, anthropic: boolean): StrictRoute {
  const found = ENDINGS.find(([ending]) => ending.test(path))?.[1];
  const isPost = method === 'POST';
  const listed = !isPost && /\/models(?:\/[^/]+)?$/.test(path) ? 'models' : 'unknown';
  const operation = isPost ? (found ?? 'unknown') : listed;
  const inPath = GEMINI_PATH.exec(path)?.[1] ?? AZURE_PATH.exec(path)?.[1];
  return {
    operation,
    dialect: dialectOf(path, operation, anthropic),
    model: inPath === undefined ? null : decodeURIComponent(inPath),
    counted: isPost && !UNCOUNTED.includes(operation) && !/\/(?:files|batches)$/.test(path),
  };
}
