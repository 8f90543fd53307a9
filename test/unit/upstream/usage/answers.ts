import type { Dialect } from '../../../../src/contract/http.ts';
import type { TokenUsage } from '../../../../src/upstream/usage/usage.ts';
import {
  dataFrames,
  encode,
  EVENT_STREAM,
  eventFrames,
  JSON_TYPE,
  messages,
  SSE,
  wrapped,
} from './frames.ts';

/** Answers as the providers send them, and what they say of their usage. */
export interface UsageAnswer {
  readonly name: string;
  readonly shape: Dialect;
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly usage: TokenUsage | null;
}

function usage(inputTokens: number, outputTokens: number, read = 0, written = 0): TokenUsage {
  return { inputTokens, cacheReadTokens: read, cacheWriteTokens: written, outputTokens };
}

const chatChunk = (rest: string): string =>
  `{"id":"chatcmpl-CzW1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_b1","choices":${rest},"obfuscation":"dG2x"}`;

const CHAT_STREAM = dataFrames([
  chatChunk(
    '[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null',
  ),
  chatChunk(
    '[{"index":0,"delta":{"content":"The \\"usage\\":{\\"prompt_tokens\\":9}"},"logprobs":null,"finish_reason":null}],"usage":null',
  ),
  chatChunk('[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null'),
  chatChunk(
    '[],"usage":{"prompt_tokens":1117,"completion_tokens":46,"total_tokens":1163,"prompt_tokens_details":{"cached_tokens":1024,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":20,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}',
  ),
  '[DONE]',
]);

const RESPONSES_STREAM = eventFrames([
  '{"type":"response.created","sequence_number":0,"response":{"id":"resp_68","object":"response","created_at":1790000000,"status":"in_progress","error":null,"instructions":"Say \\"usage\\"","metadata":{"usage":"none"},"model":"gpt-5","output":[],"usage":null}}',
  '{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello","logprobs":[],"obfuscation":"x"}',
  '{"type":"response.output_text.done","sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Hello","logprobs":[]}',
  '{"type":"response.completed","sequence_number":8,"response":{"id":"resp_68","object":"response","status":"completed","output":[{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hello"}],"role":"assistant"}],"parallel_tool_calls":true,"usage":{"input_tokens":2011,"input_tokens_details":{"cached_tokens":1920},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":2098},"user":null,"metadata":{}}}',
]);

export const ANTHROPIC_EVENTS = [
  '{"type":"message_start","message":{"model":"claude-sonnet-4-5","id":"msg_01","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":21,"cache_creation_input_tokens":188,"cache_read_input_tokens":2048,"cache_creation":{"ephemeral_5m_input_tokens":188,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}',
  '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
  '{"type": "ping"}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello! I can"}}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" help with that."}}',
  '{"type":"content_block_stop","index":0}',
  '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}',
  '{"type":"message_stop"}',
];

const GEMINI_CHUNKS = [
  '{"candidates":[{"content":{"parts":[{"text":"Let me think","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":310,"totalTokenCount":310,"promptTokensDetails":[{"modality":"TEXT","tokenCount":310}]},"modelVersion":"gemini-2.5-pro","responseId":"x1"}',
  '{"candidates":[{"content":{"parts":[{"text":"Paris"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":310,"candidatesTokenCount":12,"totalTokenCount":552,"cachedContentTokenCount":256,"promptTokensDetails":[{"modality":"TEXT","tokenCount":310}],"thoughtsTokenCount":230},"modelVersion":"gemini-2.5-pro","responseId":"x1"}',
];

const OLLAMA_LINES = [
  '{"model":"llama3.2","created_at":"2026-11-20T08:52:19.385406455Z","message":{"role":"assistant","content":"The"},"done":false}',
  '{"model":"llama3.2","created_at":"2026-11-20T08:52:19.385406456Z","message":{"role":"assistant","content":" sky","thinking":"hm"},"done":false}',
  '{"model":"llama3.2","created_at":"2026-11-20T08:52:19.485406455Z","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":26,"prompt_eval_duration":342546000,"eval_count":282,"eval_duration":4535599000}',
];

const COHERE_EVENTS = [
  '{"type":"message-start","id":"29f1","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}',
  '{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}',
  '{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hi there"}}}}',
  '{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":8,"text":"Hi there","sources":[]}}}}',
  '{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":21,"output_tokens":124},"tokens":{"input_tokens":186,"output_tokens":124}}}}',
];

const CONVERSE_MESSAGES = messages([
  ['messageStart', '{"p":"abcdef","role":"assistant"}'],
  ['contentBlockDelta', '{"contentBlockIndex":0,"delta":{"text":"Hi {there"},"p":"abcdefghij"}'],
  ['contentBlockStop', '{"contentBlockIndex":0,"p":"abc"}'],
  ['messageStop', '{"p":"abcdefghijk","stopReason":"end_turn"}'],
  [
    'metadata',
    '{"metrics":{"latencyMs":613},"p":"abcd","usage":{"cacheReadInputTokens":1500,"cacheWriteInputTokens":20,"inputTokens":30,"outputTokens":12,"totalTokens":1562}}',
  ],
]);

const INVOKE_MESSAGES = messages([
  wrapped(
    '{"type":"message_start","message":{"id":"msg_bdrk_01","type":"message","role":"assistant","model":"claude-3-5-haiku","content":[],"usage":{"input_tokens":365,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}}}',
  ),
  wrapped('{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}'),
  wrapped(
    '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":41}}',
  ),
  wrapped(
    '{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":365,"outputTokenCount":41,"invocationLatency":1181,"firstByteLatency":366}}',
  ),
]);

const OPENAI_USAGE = '{"prompt_tokens":24,"completion_tokens":8,"total_tokens":32}';

function answer(
  name: string,
  shape: Dialect,
  contentType: string,
  body: string | Uint8Array,
  expected: TokenUsage | null,
): UsageAnswer {
  const bytes = typeof body === 'string' ? encode(body) : new Uint8Array(body);
  return { name, shape, contentType, body: bytes, usage: expected };
}

export const STREAMS: readonly UsageAnswer[] = [
  answer('OpenAI chat', 'openai', SSE, CHAT_STREAM, usage(1_117, 46, 1_024)),
  answer(
    'OpenAI chat with CRLF',
    'openai',
    SSE,
    CHAT_STREAM.replaceAll('\n', '\r\n'),
    usage(1_117, 46, 1_024),
  ),
  answer(
    'OpenAI chat with CR',
    'openai',
    SSE,
    CHAT_STREAM.replaceAll('\n', '\r'),
    usage(1_117, 46, 1_024),
  ),
  answer('OpenAI responses', 'openai', SSE, RESPONSES_STREAM, usage(2_011, 87, 1_920)),
  answer(
    'OpenRouter, which says that it works',
    'openai',
    SSE,
    `: OPENROUTER PROCESSING "{"\n\n${dataFrames([
      '{"id":"gen-1","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm"}]},"finish_reason":null}]}',
      `{"id":"gen-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":${OPENAI_USAGE}}`,
      '[DONE]',
    ])}`,
    usage(24, 8),
  ),
  answer(
    'Groq',
    'openai',
    SSE,
    dataFrames([
      '{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"x_groq":{"id":"req_01"}}',
      '{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"req_01","usage":{"queue_time":0.03,"prompt_tokens":38,"prompt_time":0.001,"completion_tokens":9,"completion_time":0.02,"total_tokens":47,"total_time":0.021}}}',
      '[DONE]',
    ]),
    usage(38, 9),
  ),
  answer(
    'Moonshot, in the last choice',
    'openai',
    SSE,
    dataFrames([
      '{"id":"cmpl-1","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}',
      '{"id":"cmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":19,"completion_tokens":13,"total_tokens":32,"cached_tokens":16}}]}',
      '[DONE]',
    ]),
    usage(19, 13, 16),
  ),
  answer(
    'Perplexity, which counts on in every chunk',
    'openai',
    SSE,
    dataFrames(
      [3, 7, 11].map(
        (tokens) =>
          `{"id":"p","usage":{"prompt_tokens":5,"completion_tokens":${tokens},"total_tokens":${5 + tokens}},"choices":[{"index":0,"delta":{"content":"abcdefgh"}}]}`,
      ),
      '\r\n',
    ),
    usage(5, 11),
  ),
  answer(
    'Anthropic',
    'anthropic',
    SSE,
    eventFrames(ANTHROPIC_EVENTS),
    usage(2_257, 15, 2_048, 188),
  ),
  answer(
    'Anthropic with tools of its own, whose input grows',
    'anthropic',
    SSE,
    eventFrames([
      ANTHROPIC_EVENTS[0] ?? '',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10682,"cache_creation_input_tokens":188,"cache_read_input_tokens":2048,"output_tokens":510,"server_tool_use":{"web_search_requests":1}}}',
    ]),
    usage(12_918, 510, 2_048, 188),
  ),
  answer('Gemini', 'gemini', SSE, dataFrames(GEMINI_CHUNKS, '\r\n'), usage(310, 242, 256)),
  answer(
    'Gemini as an array',
    'gemini',
    JSON_TYPE,
    `[${GEMINI_CHUNKS.join(',\r\n')}]`,
    usage(310, 242, 256),
  ),
  answer('Ollama', 'ollama', 'application/x-ndjson', OLLAMA_LINES.join('\n'), usage(26, 282)),
  answer('Cohere', 'openai', SSE, eventFrames(COHERE_EVENTS), usage(186, 124)),
  answer(
    'Bedrock converse',
    'bedrock',
    EVENT_STREAM,
    CONVERSE_MESSAGES,
    usage(1_550, 12, 1_500, 20),
  ),
  answer('Bedrock invoke', 'bedrock', EVENT_STREAM, INVOKE_MESSAGES, usage(365, 41)),
];

export const WHOLE: readonly UsageAnswer[] = [
  answer(
    'OpenAI chat',
    'openai',
    JSON_TYPE,
    `{\n  "id": "chatcmpl-1",\n  "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}],\n  "usage": ${OPENAI_USAGE}\n}\n`,
    usage(24, 8),
  ),
  answer(
    'DeepSeek, which sends empty lines first',
    'openai',
    JSON_TYPE,
    `\n\n\n{"choices":[],"usage":${OPENAI_USAGE}}`,
    usage(24, 8),
  ),
  answer(
    'OpenAI embeddings',
    'openai',
    JSON_TYPE,
    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[${'-0.0069,'.repeat(1_535)}0.1]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":5,"total_tokens":5}}`,
    usage(5, 0),
  ),
  answer(
    'Anthropic',
    'anthropic',
    JSON_TYPE,
    '{"id":"msg_01","type":"message","content":[{"type":"tool_use","id":"t","name":"log","input":{"usage":{"input_tokens":999999},"message":{"usage":{"output_tokens":999999}}}}],"stop_reason":"tool_use","usage":{"input_tokens":2095,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":503}}',
    usage(2_095, 503),
  ),
  answer('Gemini', 'gemini', JSON_TYPE, GEMINI_CHUNKS[1] ?? '', usage(310, 242, 256)),
  answer('Ollama', 'ollama', JSON_TYPE, OLLAMA_LINES[2] ?? '', usage(26, 282)),
  answer(
    'Bedrock converse',
    'bedrock',
    JSON_TYPE,
    '{"metrics":{"latencyMs":551},"output":{"message":{"content":[{"text":"Hi"}],"role":"assistant"}},"stopReason":"end_turn","usage":{"inputTokens":30,"outputTokens":5,"totalTokens":35}}',
    usage(30, 5),
  ),
  answer(
    'Bedrock invoke, Claude',
    'bedrock',
    JSON_TYPE,
    '{"id":"msg_bdrk_1","content":[],"usage":{"input_tokens":7,"cache_read_input_tokens":100,"output_tokens":3}}',
    usage(107, 3, 100),
  ),
  answer(
    'Bedrock invoke, Llama',
    'bedrock',
    JSON_TYPE,
    '{"generation":"Hi","prompt_token_count":9,"generation_token_count":4,"stop_reason":"stop"}',
    usage(9, 4),
  ),
  answer(
    'Cohere',
    'openai',
    JSON_TYPE,
    '{"id":"c1","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"usage":{"billed_units":{"input_tokens":5,"output_tokens":418},"tokens":{"input_tokens":71,"output_tokens":420}}}',
    usage(71, 420),
  ),
  answer(
    'Cohere embeddings',
    'openai',
    JSON_TYPE,
    '{"embeddings":{"float":[[0.1,0.2]]},"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":3}}}',
    usage(3, 0),
  ),
  answer(
    'Voyage',
    'openai',
    JSON_TYPE,
    '{"data":[],"model":"voyage-3","usage":{"total_tokens":10}}',
    usage(10, 0),
  ),
  answer(
    'Workers AI, in the result of its own route',
    'openai',
    JSON_TYPE,
    `{"result":{"response":"Hi","tool_calls":[],"usage":${OPENAI_USAGE}},"success":true,"errors":[],"messages":[]}`,
    usage(24, 8),
  ),
  answer('an image', 'openai', JSON_TYPE, '{"created":1,"data":[{"b64_json":"AAAA"}]}', null),
  answer(
    'an error',
    'openai',
    JSON_TYPE,
    '{"error":{"message":"usage","type":"x","usage":{"prompt_tokens":1}}}',
    null,
  ),
];
