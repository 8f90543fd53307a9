import { READING_METHODS } from '../../contract/methods.ts';
import { free, open, slot, type OperationRow } from './operation-row.ts';

/** Routes at which only one provider, or one kind of server, generates. */
export const NATIVE: readonly OperationRow[] = [
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
export const STORED: readonly OperationRow[] = [
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
