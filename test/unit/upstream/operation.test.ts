import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DIALECTS, type Dialect } from '../../../src/contract/http.ts';
import { classify, neededRoutes } from '../../../src/upstream/operation/operation.ts';
import { OPERATIONS } from '../../../src/upstream/operation/operations-table.ts';

/**
 * Every line is a call that a provider's documentation or SDK makes, behind the base URL that the
 * catalog (or, where marked, an operator) has for it.
 */

function classifyUrl(method: string, target: string, dialectName: string) {
  const dialect = DIALECTS.find((known) => known === dialectName);
  if (dialect === undefined) throw new Error(`no dialect: ${dialectName}`);
  const url = new URL(target, 'https://upstream.example');
  return classify(method, url.pathname, url.searchParams, dialect);
}

/** One row per line, its cells parted by spaces; what follows ` # ` is a remark. */
function rows(table: string): [string, string, string, string, string][] {
  return table
    .trim()
    .split('\n')
    .map((line) => {
      const [a = '', b = '', c = '', d = '', e = ''] = line
        .replace(/ # .*$/, '')
        .trim()
        .split(' ');
      return [a, b, c, d, e];
    });
}

type Generation = readonly [dialect: Dialect, target: string, name: string, shape: Dialect];

describe('calls that take a slot and name their model in the body', () => {
  it.each<Generation>([
    // OpenAI and what is compatible with it.
    ['openai', '/v1/chat/completions', 'chat', 'openai'],
    ['openai', '/v1/responses', 'responses', 'openai'],
    ['openai', '/v1/responses?beta=true', 'responses', 'openai'],
    ['openai', '/v1/responses/compact', 'responses', 'openai'],
    ['openai', '/v1/completions', 'completions', 'openai'],
    ['openai', '/v1/embeddings', 'embeddings', 'openai'],
    ['openai', '/v1/moderations', 'moderations', 'openai'],
    ['openai', '/v1/images/generations', 'images', 'openai'],
    ['openai', '/v1/images/edits', 'images', 'openai'],
    ['openai', '/v1/images/variations', 'images', 'openai'],
    ['openai', '/v1/videos', 'videos', 'openai'],
    ['openai', '/v1/videos/video_68/remix', 'videos', 'openai'],
    ['openai', '/v1/audio/transcriptions', 'audio_transcriptions', 'openai'],
    ['openai', '/v1/audio/translations', 'audio_translations', 'openai'],
    ['openai', '/v1/audio/speech', 'audio_speech', 'openai'],
    ['openai', '/v1/chat/completions/', 'chat', 'openai'],
    ['openai', '/openai/v1/chat/completions', 'chat', 'openai'], // Groq
    ['openai', '/api/paas/v4/chat/completions', 'chat', 'openai'], // Z.ai
    ['openai', '/api/coding/paas/v4/chat/completions', 'chat', 'openai'],
    ['openai', '/api/paas/v4/async/chat/completions', 'chat', 'openai'],
    ['openai', '/api/paas/v4/videos/generations', 'videos', 'openai'],
    ['openai', '/compatible-mode/v1/chat/completions', 'chat', 'openai'], // DashScope
    ['openai', '/api/v1/services/aigc/text-generation/generation', 'generate', 'openai'],
    ['openai', '/api/v1/services/aigc/text2image/image-synthesis', 'images', 'openai'],
    ['openai', '/inference/v1/chat/completions', 'chat', 'openai'], // Fireworks
    ['openai', '/inference/chat/completions', 'chat', 'openai'], // GitHub Models
    ['openai', '/v1/fim/completions', 'completions', 'openai'], // Mistral
    ['openai', '/v1/agents/completions', 'completions', 'openai'],
    ['openai', '/v1/chat/moderations', 'moderations', 'openai'],
    ['openai', '/v1/ocr', 'ocr', 'openai'],
    ['openai', '/chat/completions', 'chat', 'openai'], // Perplexity
    ['openai', '/v1/sonar', 'chat', 'openai'],
    ['openai', '/beta/completions', 'completions', 'openai'], // DeepSeek
    ['openai', '/v2/chat', 'chat', 'openai'], // Cohere
    ['openai', '/v2/embed', 'embed', 'openai'],
    ['openai', '/v2/rerank', 'rerank', 'openai'],
    ['openai', '/compatibility/v1/embeddings', 'embeddings', 'openai'],
    ['openai', '/v1/text/chatcompletion_v2', 'chat', 'openai'], // MiniMax
    ['openai', '/client/v4/accounts/a1/ai/v1/chat/completions', 'chat', 'openai'], // Workers AI
    ['openai', '/completion', 'completions', 'openai'], // llama.cpp
    ['openai', '/', 'completions', 'openai'], // Text Generation Inference
    ['openai', '/v1/conversations', 'conversations', 'openai'], // Mistral
    ['openai', '/v1/conversations/conv_1', 'conversations', 'openai'],
    ['openai', '/v1/conversations/conv_1/restart', 'conversations', 'openai'],
    ['openai', '/v1/generate', 'generate', 'openai'], // Cohere
    ['openai', '/v1/summarize', 'summarize', 'openai'],
    ['openai', '/v1/classify', 'classifications', 'openai'],
    ['openai', '/v1/threads/runs', 'runs', 'openai'],
    ['openai', '/v1/threads/thread_1/runs', 'runs', 'openai'],
    ['openai', '/v1/threads/thread_1/runs/run_1/submit_tool_outputs', 'runs', 'openai'],
    ['azure', '/openai/threads/thread_1/runs?api-version=2024-05-01-preview', 'runs', 'azure'],
    ['azure', '/openai/v1/video/generations/jobs', 'videos', 'openai'],
    ['openai', '/api/v1/apps/app_1/completion', 'completions', 'openai'], // DashScope
    ['openai', '/api/v1/services/audio/asr/transcription', 'audio_transcriptions', 'openai'],
    ['openai', '/v1/music_generation', 'music', 'openai'], // MiniMax
    ['openai', '/v1/t2a_async_v2', 'audio_speech', 'openai'],
    ['openai', '/v1/contextualizedembeddings', 'embeddings', 'openai'], // Voyage
    ['openai', '/v1/video/submit', 'videos', 'openai'], // SiliconFlow
    ['bedrock', '/async-invoke', 'async_invoke', 'bedrock'],
    ['bedrock', '/retrieveAndGenerateStream', 'generate', 'bedrock'],
    // Anthropic's shape, at Anthropic and elsewhere.
    ['anthropic', '/v1/messages', 'messages', 'anthropic'],
    ['anthropic', '/v1/messages?beta=true', 'messages', 'anthropic'],
    ['anthropic', '/v1/complete', 'completions', 'anthropic'],
    ['openai', '/anthropic/v1/messages', 'messages', 'anthropic'], // DeepSeek, Moonshot
    ['openai', '/api/anthropic/v1/messages', 'messages', 'anthropic'], // Z.ai
    ['openai', '/api/v1/messages', 'messages', 'anthropic'], // OpenRouter
    // Gemini.
    ['gemini', '/v1beta/openai/chat/completions', 'chat', 'openai'],
    ['gemini', '/v1beta/openai/embeddings', 'embeddings', 'openai'],
    ['gemini', '/v1beta/interactions', 'generate', 'gemini'],
    [
      'gemini',
      '/v1/projects/p/locations/global/endpoints/openapi/chat/completions',
      'chat',
      'openai',
    ],
    // Azure.
    ['azure', '/openai/v1/chat/completions', 'chat', 'openai'],
    ['azure', '/openai/v1/responses', 'responses', 'openai'],
    ['azure', '/openai/responses?api-version=2025-03-01-preview', 'responses', 'azure'],
    ['azure', '/models/chat/completions?api-version=2024-05-01-preview', 'chat', 'azure'],
    ['azure', '/anthropic/v1/messages', 'messages', 'anthropic'],
    // Code Assist: a version is no model.
    ['gemini', '/v1internal:generateContent', 'generate', 'gemini'],
    ['gemini', '/v1internal:streamGenerateContent?alt=sse', 'generate', 'gemini'],
    ['gemini', '/v1internal%3AstreamGenerateContent?alt=sse', 'generate', 'gemini'],
    ['gemini', '/v2beta1:generateContent', 'generate', 'gemini'],
    ['gemini', '/v1/projects/p/locations/us-central1:predict', 'predict', 'gemini'],
    // Bedrock.
    ['bedrock', '/openai/v1/chat/completions', 'chat', 'openai'],
    ['bedrock', '/openai/v1/responses', 'responses', 'openai'],
    // Ollama, the cloud and one's own.
    ['ollama', '/api/chat', 'ollama_chat', 'ollama'],
    ['ollama', '/api/generate', 'ollama_generate', 'ollama'],
    ['ollama', '/api/embed', 'embed', 'ollama'],
    ['ollama', '/api/embeddings', 'embed', 'ollama'],
    ['ollama', '/v1/chat/completions', 'chat', 'openai'],
    ['ollama', '/v1/embeddings', 'embeddings', 'openai'],
    ['ollama', '/v1/messages', 'messages', 'anthropic'],
    ['ollama', '/chat', 'ollama_chat', 'ollama'], // A base URL that ends in /api.
    ['openai', '/api/chat', 'ollama_chat', 'ollama'],
  ])('%s POST %s is %s, spoken as %s', (dialect, target, name, shape) => {
    expect(classifyUrl('POST', target, dialect)).toEqual({
      name,
      shape,
      limited: true,
      model: { from: 'body' },
    });
  });
});

describe('calls that take a slot and name their model in the path', () => {
  it.each(
    rows(`
    gemini /v1beta/models/gemini-2.5-flash:generateContent generate gemini gemini-2.5-flash
    gemini /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse generate gemini gemini-2.5-flash
    gemini /v1/models/gemini-2.5-pro%3AgenerateContent generate gemini gemini-2.5-pro
    gemini /v1/models/v1internal:generateContent generate gemini v1internal
    gemini /v1beta/tunedModels/mine-7:generateContent generate gemini tunedModels/mine-7
    gemini /v1beta/models/gemini-embedding-001:embedContent embed gemini gemini-embedding-001
    gemini /v1beta/models/gemini-embedding-001:batchEmbedContents embed gemini gemini-embedding-001
    gemini /v1beta/models/imagen-4.0-generate-001:predict predict gemini imagen-4.0-generate-001
    gemini /v1beta/models/veo-3.0-generate-001:predictLongRunning videos gemini veo-3.0-generate-001
    gemini /v1/projects/p/locations/us-central1/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse generate gemini gemini-2.5-flash
    gemini /v1/projects/p/locations/us-central1/endpoints/4711:generateContent generate gemini endpoints/4711
    gemini /v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-4@20250514:streamRawPredict messages anthropic claude-sonnet-4@20250514
    gemini /v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-4%4020250514:rawPredict messages anthropic claude-sonnet-4@20250514
    gemini /v1/projects/p/locations/us-central1/publishers/mistralai/models/mistral-small-2503:rawPredict predict gemini mistral-small-2503
    azure /openai/deployments/prod-7/chat/completions?api-version=2024-10-21 chat azure prod-7
    azure /openai/deployments/my%2Egpt/embeddings?api-version=2024-10-21 embeddings azure my.gpt
    azure /openai/deployments/whisper/audio/transcriptions?api-version=2024-10-21 audio_transcriptions azure whisper
    azure /deployments/prod-7/chat/completions?api-version=2024-10-21 chat azure prod-7 # A base URL that ends in /openai.
    azure /openai/deployments/batches/chat/completions?api-version=2024-10-21 chat azure batches
    openai /engines/prod-7/chat/completions chat openai prod-7 # LiteLLM
    openai /v1/engines/azure/prod-7/completions completions openai azure/prod-7
    openai /v1/engines/ada%2D2/embeddings embeddings openai ada-2
    openai /serving-endpoints/prod-7/invocations completions openai prod-7 # Databricks
    openai /hf-inference/models/openai/gpt-oss-20b/v1/chat/completions chat openai openai/gpt-oss-20b # Hugging Face
    gemini /v1/projects/p/locations/l/endpoints/4711/chat/completions chat openai endpoints/4711
    bedrock /model/anthropic.claude-3-haiku-20240307-v1%3A0/invoke invoke bedrock anthropic.claude-3-haiku-20240307-v1:0
    bedrock /model/us.amazon.nova-pro-v1:0/invoke-with-response-stream invoke bedrock us.amazon.nova-pro-v1:0
    bedrock /model/us.amazon.nova-pro-v1%3A0/converse converse bedrock us.amazon.nova-pro-v1:0
    bedrock /model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-v1%3A0/converse-stream converse bedrock arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-v1:0
    bedrock /model/arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-pro-v1:0/converse converse bedrock arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-pro-v1:0
    openai /inference/v1/image_generation/accounts/fireworks/models/playground-v2-5-1024px-aesthetic images openai accounts/fireworks/models/playground-v2-5-1024px-aesthetic
    openai /inference/v1/workflows/accounts/fireworks/models/flux-1-schnell-fp8/text_to_image images openai accounts/fireworks/models/flux-1-schnell-fp8
    openai /client/v4/accounts/a1/ai/run/@cf/meta/llama-3.1-8b-instruct predict openai @cf/meta/llama-3.1-8b-instruct
    openai /hf-inference/models/openai/whisper-large-v3 predict openai openai/whisper-large-v3 # Hugging Face
    gemini /v1/projects/p/locations/l/publishers/google/models/x:serverStreamingPredict predict gemini x
    openai /run/@cf/meta/llama-3.1-8b-instruct predict openai @cf/meta/llama-3.1-8b-instruct # A base URL that ends in /ai.
    openai /v1/inference/meta-llama/Llama-3.3-70B-Instruct predict openai meta-llama/Llama-3.3-70B-Instruct # DeepInfra
    gemini /v1beta/models/half-%E0%A4:generateContent generate gemini half-%E0%A4 # Escapes that decode to nothing.
  `),
  )('%s POST %s is %s, spoken as %s, for %s', (dialect, target, name, shape, model) => {
    expect(classifyUrl('POST', target, dialect)).toEqual({
      name,
      shape,
      limited: true,
      model: { from: 'path', value: model },
    });
  });
});

describe('calls that pass without a slot', () => {
  it.each(
    rows(`
    openai GET /v1/models models openai
    openai GET /v1/models/gpt-4o models openai
    openai GET /v1/responses/resp_1?stream=true responses openai
    openai DELETE /v1/responses/resp_1 responses openai
    openai POST /v1/responses/resp_1/cancel responses openai
    openai GET /v1/responses/resp_1/input_items responses openai
    openai POST /v1/responses/input_tokens count_tokens openai
    openai GET /v1/chat/completions?limit=5 chat openai
    openai GET /v1/videos/video_68 videos openai
    openai GET /v1/chat/completions/chatcmpl_1/messages chat openai
    openai GET /v1/conversations/conv_1/messages conversations openai
    openai POST /v1/evals/eval_1/runs evals openai
    openai GET /api/paas/v4/async-result/1 results openai
    openai POST /v1/files files openai
    openai GET /v1/files/file-1/content files openai
    openai POST /v1/uploads/upload_1/parts uploads openai
    openai POST /v1/batches batches openai
    openai POST /v1/batches/batch_1/cancel batches openai
    openai POST /v1/fine_tuning/jobs fine_tuning openai
    openai POST /v1/vector_stores/vs_1/search vector_stores openai
    openai POST /v1/threads/thread_1/messages threads openai
    openai POST /v1/realtime/client_secrets realtime openai
    openai GET /v1/organization/usage/completions completions openai
    openai OPTIONS /v1/chat/completions chat openai
    openai HEAD /v1/chat/completions chat openai
    openai POST /v1/no/such/route other openai
    openai POST /v1/batch/jobs batches openai # Mistral
    openai GET /api/v1/key other openai # OpenRouter
    openai GET /v1/users/me/balance other openai # Moonshot
    openai POST /inference/v1/workflows/accounts/fireworks/models/flux-kontext-pro/get_result images openai
    openai GET /anthropic/v1/models models anthropic # DeepSeek
    openai POST /v1/tokenize count_tokens openai # Cohere, vLLM
    anthropic GET /v1/models models anthropic
    anthropic POST /v1/messages/count_tokens count_tokens anthropic
    anthropic POST /v1/messages/count_tokens?beta=true count_tokens anthropic
    anthropic POST /v1/messages/batches batches anthropic
    anthropic GET /v1/messages/batches/msgbatch_1/results batches anthropic
    anthropic POST /v1/files?beta=true files anthropic
    gemini GET /v1beta/models?pageSize=50 models gemini
    gemini GET /v1beta/models/gemini-2.5-flash models gemini
    gemini GET /v1beta/openai/models models openai
    gemini POST /v1beta/models/gemini-2.5-flash:countTokens count_tokens gemini
    gemini POST /v1internal:countTokens count_tokens gemini # Code Assist
    gemini POST /v1internal:loadCodeAssist other gemini
    gemini POST /v1internal:onboardUser other gemini
    gemini POST /v1beta/models/gemini-2.5-flash:batchGenerateContent batches gemini
    gemini POST /upload/v1beta/files files gemini
    gemini POST /v1beta/cachedContents caches gemini
    gemini GET /v1beta/models/veo-3.0/operations/op1 results gemini
    gemini GET /v1beta/interactions/i1 interactions gemini
    gemini POST /v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict count_tokens anthropic
    azure GET /openai/v1/models models openai
    azure GET /openai/deployments?api-version=2022-12-01 other azure
    azure POST /openai/files?api-version=2024-10-21 files azure
    bedrock GET /async-invoke async_invoke bedrock
    bedrock GET /async-invoke/arn%3Aaws async_invoke bedrock
    bedrock POST /model/amazon.nova-pro-v1%3A0/count-tokens count_tokens bedrock
    ollama GET /api/tags models ollama
    ollama POST /api/show models ollama
  `),
  )('%s %s %s is %s', (dialect, method, target, name, shape) => {
    expect(classifyUrl(method, target, dialect)).toEqual({
      name,
      shape,
      limited: false,
      model: { from: 'none' },
    });
  });
});

describe('a path that a caller wrote to keep us busy', () => {
  it.each([
    '/',
    '/model/',
    '/model/a/',
    '/workflows/',
    '/workflows/accounts/a/models/',
    '/openai/deployments/',
    '/engines/',
    '/serving-endpoints/',
    '/hf-inference/models/a/v1/',
    '/endpoints/',
    '/publishers/anthropic/models/',
    '/models/',
    '/services/embeddings/',
    '/v1/inference/',
    '/run/@',
    '/responses/',
    '/videos/',
    '/%3A',
    '/threads/',
    '/hf-inference/models/',
    '/agents/a/agentAliases/',
    '/services/audio/',
    '/projects/',
    '%25',
    '%2',
    '%',
    ';',
    '/;',
    '/..;',
    '//',
    '%2e',
    '. ',
    '.json',
    '%3b/',
    '%00',
    ':',
    'a',
  ])('is read in linear time: %s, repeated', (part) => {
    const path = `${part.repeat(Math.ceil(65_536 / part.length))}!/`;
    const started = process.cpuUsage();
    classify('POST', path, new URLSearchParams(), 'azure');
    neededRoutes('POST', path, 'openai');
    // Quadratic time over 64 KiB takes more than a second; microseconds of this process, not of others.
    expect(process.cpuUsage(started).user).toBeLessThan(500_000);
  });
});

describe('an opaque upstream', () => {
  it.each([
    ['POST', '/v1/chat/completions', true],
    ['PUT', '/anything', true],
    ['PATCH', '/anything', true],
    ['GET', '/anything', false],
    ['HEAD', '/anything', false],
    ['OPTIONS', '/anything', false],
    ['DELETE', '/anything', false],
  ])('%s %s: takes a slot: %s, and has no model', (method, path, limited) => {
    expect(classifyUrl(method, path, 'opaque')).toEqual({
      name: 'opaque',
      shape: 'opaque',
      limited,
      model: { from: 'none' },
    });
  });
});

it.each([
  ['/v1/mess%61ges', 'anthropic', 'messages'],
  ['/v1/chat%2Fcompletions', 'openai', 'chat'],
  ['/v1beta/models/gemini-pro:generate%43ontent', 'gemini', 'generate'],
  ['/v1/chat/completions%2F', 'openai', 'chat'],
  ['/v1/batches/..%2Fchat/completions', 'openai', 'chat'],
  ['/v1/files/%2E%2E%2Fchat%2Fcompletions', 'openai', 'chat'],
  ['/v1/%FF/..%2Fmess%61ges', 'anthropic', 'messages'],
  ['/%2F%2Fhost/chat%2Fcompletions', 'openai', 'chat'],
  ['/v1/x%3Fy/..%2Fchat%2Fcompletions', 'openai', 'chat'],
  ['/v1/x%23y/..%2Fmessages', 'anthropic', 'messages'],
  ['/v1/batch//..%2Fchat/completions', 'openai', 'chat'],
  ['/v1/batch/x%5Cy/..%2F..%2Fchat%2Fcompletions', 'openai', 'chat'],
])('an escape in the path of %s does not dodge the slot', (path, dialect, name) => {
  expect(classifyUrl('POST', path, dialect)).toMatchObject({ name, limited: true });
});

it.each([
  ['/v1/Chat/Completions', 'openai', 'chat', { from: 'body' }],
  ['/v1/MESSAGES', 'anthropic', 'messages', { from: 'body' }],
  [
    '/openai/Deployments/My-Gpt/Chat/Completions',
    'azure',
    'chat',
    { from: 'path', value: 'My-Gpt' },
  ],
] as const)('nor does the case of %s', (path, dialect, name, model) => {
  expect(classifyUrl('POST', path, dialect)).toMatchObject({ name, limited: true, model });
});

/** Ways to write a path that some server or proxy undoes before it routes. */
const DECORATIONS: readonly (readonly [string, (path: string) => string])[] = [
  ['a parameter at the end', (path) => `${path};x=1`],
  ['a parameter of every segment', (path) => path.replaceAll(/(?<=[^/])(?=\/|$)/g, ';v')],
  ['an escaped parameter', (path) => `${path}%3bx`],
  ['one that was escaped twice', (path) => `${path}%253Bx`],
  ['a parameter with a colon', (path) => `${path};a:b`],
  ['dots behind a parameter', (path) => `/batches/..;${path}`],
  ['escaped dots behind a parameter', (path) => `/batches/%252e%2e%3b${path}`],
  ['slashes that were escaped twice', (path) => `/${path.slice(1).replaceAll('/', '%252f')}`],
  ['backslashes', (path) => `/${path.slice(1).replaceAll('/', '%5c')}`],
  ['a dot at the end', (path) => `${path}.`],
  ['a dot behind every segment', (path) => path.replaceAll(/(?<=[^/])(?=\/|$)/g, '.')],
  ['a space at the end', (path) => `${path}%20`],
  ['a format', (path) => `${path}.json`],
  ['an escaped format', (path) => `${path}%2Ejson/`],
  ['a byte that ends texts', (path) => `${path}%00x`],
  ['an escaped question mark', (path) => `${path}%3Fx`],
  ['empty segments', (path) => path.replaceAll('/', '//')],
  ['a line break', (path) => `${path}%0a`],
  ['every letter escaped', (path) => path.replaceAll(/[a-z]/gi, escaped)],
  [
    'every letter escaped twice',
    (path) => path.replaceAll(/[a-z]/gi, (c) => `%25${escaped(c).slice(1)}`),
  ],
];

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16)}`;
}

/** A path for every row of the table that takes a slot, with the dialect that it belongs to. */
const SLOT_PATHS = OPERATIONS.filter(({ limited }) => limited).flatMap((row) => {
  const dialect = row.only ?? row.shape ?? 'openai';
  const path = examplePath(row.path);
  return [{ name: row.name, dialect, path }];
});

/** One path that a pattern of the table matches: the first of each choice, and of every part that may be there. */
function examplePath(pattern: RegExp): string {
  let text = pattern.source.replaceAll(/\(\?<model>/g, '(?:').replace(/\(\?![^)]*\)/g, '');
  text = text
    .replaceAll('[^/:]+', 'm1')
    .replaceAll('[^/]+', 'p1')
    .replaceAll(/\.\+\??/g, 'm2');
  text = text
    .replaceAll('[12]', '1')
    .replaceAll('-?', '')
    .replace(/^\^|\$$/g, '')
    .replaceAll('\\/', '/');
  for (let last = ''; last !== text;) {
    last = text;
    text = text.replace(
      /\(\?:([^()]*)\)\??/,
      (_, choices: string) => choices.replace('^', '').split('|').at(-1) ?? '',
    );
  }
  return text.startsWith('/') || text === '' ? text : `/${text}`;
}

describe('however a path is written', () => {
  it('the examples are of the table', () => {
    for (const { path, dialect } of SLOT_PATHS) {
      const { limited } = classify('POST', path, new URLSearchParams(), dialect);
      expect({ path, limited }).toEqual({ path, limited: true });
    }
    expect(SLOT_PATHS.length).toBeGreaterThan(60);
  });

  it('a call that generates takes its slot, as the same operation of the same model', () => {
    const some = fc.constantFrom(...SLOT_PATHS.filter(({ path }) => path !== ''));
    const ways = fc.array(fc.constantFrom(...DECORATIONS), { minLength: 1, maxLength: 2 });
    fc.assert(
      fc.property(some, ways, ({ path, dialect }, [first, second]) => {
        const plain = classify('POST', path, new URLSearchParams(), dialect);
        // Two at once only where the first leaves nothing for the second to undo.
        const both = second === undefined || second === first ? [first] : [first, second];
        const odd = both.reduce((text, way) => (way === undefined ? text : way[1](text)), path);
        const { pathname } = new URL(`http://upstream${odd}`);
        const seen = classify('POST', pathname, new URLSearchParams(), dialect);
        expect({ odd, ...seen }).toMatchObject({ odd, limited: true });
        // What two of them at once leave of a name is nobody's.
        expect({ odd, ...seen }).toEqual({ odd, ...(both.length === 1 ? plain : seen) });
      }),
      { numRuns: 3_000 },
    );
  });

  it.each(SLOT_PATHS.map(({ path, dialect }) => [dialect, path] as const))(
    '%s %s with a parameter that has a slash takes its slot',
    (dialect, path) => {
      expect(classifyUrl('POST', `${path};a/b`, dialect).limited).toBe(true);
    },
  );

  it.each([
    ['gemini', '/v1beta/models/gemini-2.5-pro;x:generateContent', 'gemini-2.5-pro'],
    ['gemini', '/v1beta/models/gemini-2.5-pro%3bx:generateContent;y', 'gemini-2.5-pro'],
    ['gemini', '/v1beta/models/gemini-2.5-pro.:generateContent', 'gemini-2.5-pro.'],
    ['azure', '/openai/deployments/prod;x/chat/completions', 'prod'],
    ['azure', '/openai/deployments/prod./chat/completions', 'prod'],
    ['azure', '/openai/deployments/prod;a:b/chat/completions', 'prod'],
    ['bedrock', '/model/us.amazon.nova-pro-v1:0;x/converse', 'us.amazon.nova-pro-v1:0'],
    ['bedrock', '/model/other/..;/nova/converse', 'nova'],
    ['openai', '/run/@cf/meta/llama;x', '@cf/meta/llama'],
    ['openai', '/run/@cf/meta/llama%252525252525253Bx', '@cf/meta/llama'],
  ])('the model of %s %s is %s', (dialect, path, value) => {
    const seen = classifyUrl('POST', path, dialect);
    expect(seen).toMatchObject({ limited: true, model: { from: 'path', value } });
  });
});

describe('with the key of the operator', () => {
  it.each(
    rows(`
    openai POST /v1/chat/completions
    openai GET /v1/models
    openai GET /v1/models/gpt-4o
    openai HEAD /v1/models
    openai POST /v1/responses/input_tokens
    openai POST //v1/chat/completions
    openai POST /v1/tokenize
    openai GET /health
    openai HEAD /
    anthropic HEAD /api/hello
    anthropic POST /v1/messages/count_tokens
    gemini POST /v1beta/models/gemini-2.5-flash:countTokens
    gemini GET /v1beta/models
    gemini POST /v1/models/gemini-2.5-pro%3AgenerateContent
    gemini POST /v1/projects/p/locations/l/publishers/google/models/x:generateContent
    bedrock POST /model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse
    ollama POST /api/show
    opaque POST /anything
    azure POST /openai/deployments/batches/chat/completions
  `),
  )('%s %s %s needs nothing more', (dialect, method, path) => {
    expect(neededRoutes(method, path, dialect as Dialect)).toEqual([]);
  });

  it.each(
    rows(`
    openai POST /v1/batches batches
    openai POST /v1/fine_tuning/jobs fine_tuning
    openai DELETE /v1/files/file-1 files
    openai GET /v1/responses/resp_1 responses
    openai POST /v1/responses/resp_1/cancel responses
    openai GET /v1/chat/completions chat
    openai PUT /v1/chat/completions chat
    openai GET /v1/videos videos
    openai GET /v1/videos/video_1/content videos
    openai DELETE /v1/models/ft:gpt-4o:me models
    openai POST /v1/no/such/route other
    openai GET /v1/no/such/route other
    openai POST /v1/realtime/calls realtime
    openai POST /v1/realtime/sessions realtime
    openai POST /v1/realtime/client_secrets realtime
    openai POST /v1/realtime/transcription_sessions realtime
    openai GET /v1/organization/admin_api_keys administration
    openai GET /v1/organization/usage/completions administration
    openai POST /v1/organization/usage/completions administration
    openai GET /v1/organization/projects/proj_1/users administration
    openai POST /v1/projects/proj_1/service_accounts administration
    openai GET /v1/fine_tuning/checkpoints/x/permissions administration
    openai GET /v1/organization%2Finvites administration
    openai POST /v1/organization/admin_api_keys;/chat/completions administration
    openai POST /v1/models/..;/organization/invites administration
    openai GET /v1/models/..;/files files
    openai GET /v1/files/..;/models files
    openai GET /v1/models%2F..%2Ffiles files
    openai GET /v1/models/..%252ffiles files
    openai POST /v1/batches;/chat/completions batches
    openai GET /v1/dashboard/billing/usage administration
    anthropic GET /v1/organizations/api_keys administration
    anthropic POST /v1/messages/batches batches
    gemini POST /v1beta/models/gemini-2.5-flash:batchGenerateContent batches
    gemini POST /v1beta/tunedModels models
    gemini POST /v1beta/tunedModels/x/permissions administration
    gemini GET /v1beta/files files
    ollama POST /api/pull models
    opaque GET /anything opaque
    opaque DELETE /anything opaque
    opaque POST /v1/organization/invites administration
  `),
  )('%s %s %s needs %s', (dialect, method, path, name) => {
    expect(neededRoutes(method, path, dialect as Dialect)).toContain(name);
  });
});
