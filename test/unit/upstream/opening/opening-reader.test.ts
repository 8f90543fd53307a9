import { describe, expect, test, vi } from 'vitest';
import type { Judgement } from '../../../../src/upstream/opening/judge-record.ts';
import {
  formOf,
  judgeWhole,
  OpeningReader,
  type AnswerForm,
} from '../../../../src/upstream/opening/opening-reader.ts';

// The beginning of an answer with status 200: what announces an answer, what is content, and what is an error.

const encoder = new TextEncoder();

function sse(data: unknown, event?: string): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  return `${name}data: ${JSON.stringify(data)}\n\n`;
}

function judged(form: AnswerForm, text: string): Judgement {
  return new OpeningReader(form).push(encoder.encode(text));
}

/** Judges a text that comes in pieces, up to the first that tells. */
function inPieces(form: AnswerForm, text: string, size: number): Judgement {
  const bytes = encoder.encode(text);
  const reader = new OpeningReader(form);
  for (let at = 0; at < bytes.length; at += size) {
    const judgement = reader.push(bytes.subarray(at, at + size));
    if (judgement !== 'prelude') return judgement;
  }
  return 'prelude';
}

const MESSAGE_START = sse({ type: 'message_start', message: { role: 'assistant', content: [] } });
const ROLE = sse({
  choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
});
const CREATED = sse({
  type: 'response.created',
  response: { status: 'in_progress', error: null, text: { format: { type: 'text' } } },
});
const BLOCK = sse({ type: 'content_block_start', content_block: { type: 'text', text: '' } });
const RATE_LIMIT = { code: 'rate_limit_exceeded', message: 'Rate limit reached' };

describe('a prelude', () => {
  test.each<[string, AnswerForm, string]>([
    ['nothing', 'events', ''],
    ['a comment', 'events', ': OPENROUTER PROCESSING\n\n'],
    ['comments and empty events', 'events', ': keep-alive\n\n\n\ndata:\n\n: keep-alive\r\n\r\n'],
    ['a message that starts', 'events', MESSAGE_START],
    ['a ping', 'events', `${MESSAGE_START}event: ping\ndata: {"type": "ping"}\n\n`],
    ['a heartbeat', 'events', 'event: heartbeat\ndata: {"at":1}\n\n'],
    ['the same by its type', 'events', sse({ type: 'keep-alive', at: 1 })],
    ['a response that was created', 'events', CREATED],
    [
      'the same, queued and in progress',
      'events',
      CREATED + sse({ type: 'response.queued' }) + sse({ type: 'response.in_progress' }),
    ],
    ['a role', 'events', ROLE],
    [
      'a role and empty reasoning',
      'events',
      sse({ choices: [{ delta: { role: 'assistant', content: null, reasoning: '' } }] }),
    ],
    ['filters of the prompt', 'events', sse({ choices: [], prompt_filter_results: [{}] })],
    ['empty text of a completion', 'events', sse({ choices: [{ text: '', finish_reason: null }] })],
    ['a candidate without parts', 'events', sse({ candidates: [{ content: { role: 'model' } }] })],
    ['a usage without candidates', 'events', sse({ usageMetadata: { promptTokenCount: 3 } })],
    [
      'Cohere’s start',
      'events',
      sse({ type: 'message-start', delta: { message: { content: [] } } }),
    ],
    [
      'an empty line of Ollama',
      'lines',
      '{"message":{"role":"assistant","content":""},"done":false}\n',
    ],
    ['half of an event', 'events', `${ROLE}data: {"choices":[{"delta":{"content":"`],
    ['half of a field', 'events', 'dat'],
    ['half of an event of an error', 'events', 'event: error\ndata: oops'],
    ['an empty block', 'events', `${MESSAGE_START}${BLOCK}event: ping\ndata: {}\n\n`],
    [
      'an empty message of a response',
      'events',
      CREATED +
        sse({ type: 'response.output_item.added', item: { type: 'message', content: [] } }) +
        sse({ type: 'response.content_part.added', part: { type: 'output_text', text: '' } }),
    ],
    [
      'Gemini’s empty text',
      'events',
      sse({ candidates: [{ content: { parts: [{ text: '' }] } }] }),
    ],
    [
      'an empty chunk that is wrapped',
      'events',
      sse({ response: { candidates: [] }, traceId: 't' }),
    ],
    [
      'an empty thought of a response',
      'events',
      CREATED +
        sse({
          type: 'response.output_item.added',
          item: { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: '' },
        }) +
        sse({
          type: 'response.reasoning_summary_part.added',
          part: { type: 'summary_text', text: '' },
        }),
    ],
    [
      'an empty thought of a message',
      'events',
      MESSAGE_START +
        sse({
          type: 'content_block_start',
          content_block: { type: 'thinking', thinking: '', signature: '' },
        }),
    ],
    [
      'an empty delta of a message',
      'events',
      MESSAGE_START +
        BLOCK +
        sse({ type: 'content_block_delta', delta: { type: 'text_delta', text: '' } }),
    ],
    ['an empty text of Workers AI', 'events', sse({ response: '', p: 'abc' })],
    ['a conversation that starts', 'events', sse({ type: 'conversation.response.started' })],
    ['an event of a gateway', 'events', sse({ type: 'keepalive', sequence_number: 3 })],
    [
      'a run that begins',
      'events',
      sse({ object: 'thread.run', status: 'queued' }, 'thread.run.created') +
        sse({ object: 'thread.run', status: 'in_progress' }, 'thread.run.in_progress') +
        sse({ object: 'thread.message', content: [] }, 'thread.message.created'),
    ],
    ['the first elements of an array', 'json', '[{"candidates": []}\n,{"usageMetadata": {}}\n,'],
    ['half of an element', 'json', '[{"candidates": [{"content": {"parts": [{"te'],
    ['the first characters of JSON', 'json', '{"er'],
    [
      'the first fields of an answer',
      'json',
      '{"id":"chatcmpl-1","object":"chat.completion","choi',
    ],
    ['usage before any choice', 'events', sse({ choices: [], usage: { total_tokens: 3 } })],
    ['spaces without a type', 'text', ' \n'],
    ['a comment without a type', 'text', ': hi\n\n'],
    ['spaces before JSON', 'json', '\n \n'],
    ['half of an error', 'json', '{"error": {"message": "Rate'],
  ])('is %s', (_, form, text) => {
    expect(judged(form, text)).toBe('prelude');
  });
});

describe('content', () => {
  const quoted = JSON.stringify({ error: { code: 429, message: 'Rate limit' } });
  test.each<[string, AnswerForm, string]>([
    ['text', 'events', `${ROLE}${sse({ choices: [{ delta: { content: 'Hi' } }] })}`],
    [
      'a tool call',
      'events',
      sse({ choices: [{ delta: { role: 'assistant', tool_calls: [{ index: 0 }] } }] }),
    ],
    ['a thought', 'events', sse({ choices: [{ delta: { reasoning_content: 'Hm' } }] })],
    [
      'a token without text',
      'events',
      sse({ choices: [{ delta: { content: '' }, logprobs: { content: [{ token: '' }] } }] }),
    ],
    ['the number of a token', 'events', sse({ choices: [{ text: '', token_ids: [7] }] })],
    ['a citation', 'events', sse({ choices: [{ delta: { annotations: [{ url: 'u' }] } }] })],
    ['an end', 'events', sse({ choices: [{ delta: {}, finish_reason: 'stop' }] })],
    ['the end of the stream', 'events', `${ROLE}data: [DONE]\n\n`],
    [
      'a call of a tool that opens',
      'events',
      sse({ type: 'content_block_start', content_block: { type: 'tool_use', name: 'f' } }),
    ],
    ['text of an event that is cut', 'events', `${ROLE}data: {"choices":[{"delta":{"content":"H`],
    ['text that is no JSON', 'events', 'data: H'],
    [
      'a thought that is encrypted',
      'events',
      CREATED +
        sse({
          type: 'response.output_item.added',
          item: { type: 'reasoning', summary: [], encrypted_content: 'gAAA' },
        }),
    ],
    [
      'a call of a tool in a response',
      'events',
      CREATED +
        sse({
          type: 'response.output_item.added',
          item: { type: 'function_call', name: 'f', arguments: '' },
        }),
    ],
    [
      'the signature of a thought',
      'events',
      sse({ type: 'content_block_delta', delta: { type: 'signature_delta', signature: 'x' } }),
    ],
    ['the end of a text of Workers AI', 'events', sse({ response: '', usage: {} })],
    [
      'text of a delta that is cut',
      'events',
      `${MESSAGE_START}${BLOCK}data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"H`,
    ],
    [
      'text that is wrapped',
      'events',
      'data: {"response":{"candidates":[{"content":{"parts":[{"text":"H',
    ],
    ['text without a type', 'text', 'Once'],
    ['an event without a type', 'text', 'data: {"choices":[{"delta":{"content":"H'],
    [
      'a delta of a response',
      'events',
      CREATED + sse({ type: 'response.output_text.delta', delta: 'Hi' }),
    ],
    ['a part', 'events', sse({ candidates: [{ content: { parts: [{ text: 'Hi' }] } }] })],
    [
      'a blocked prompt',
      'events',
      sse({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: {} }),
    ],
    ['something unknown', 'events', 'data: ready\n\n'],
    ['a text that quotes an error', 'events', sse({ choices: [{ delta: { content: quoted } }] })],
    ['a line of Ollama', 'lines', '{"message":{"role":"assistant","content":"Hi"},"done":false}\n'],
    [
      'an answer',
      'json',
      JSON.stringify({ id: 'chatcmpl-1', choices: [{ message: { content: 'Hi' } }] }),
    ],
    [
      'text of an answer that is cut',
      'json',
      '{"id":"chatcmpl-1","choices":[{"message":{"content":"H',
    ],
    ['a long answer without a sign of an error', 'json', `{"id":"${'x'.repeat(2_100)}`],
    [
      'an answer that quotes an error',
      'json',
      JSON.stringify({ content: [{ type: 'text', text: quoted }] }),
    ],
    [
      'an answer beside an error',
      'json',
      JSON.stringify({ error: RATE_LIMIT, choices: [{ message: { content: 'Hi' } }] }),
    ],
    [
      'a response without an error',
      'json',
      '{"id":"resp_1","object":"response","status":"completed","error": null,"output":[]}',
    ],
    [
      'MiniMax’s answer',
      'json',
      '{"base_resp":{"status_code":0,"status_msg":""},"choices":[{"message":{"content":"Hi"}}]}',
    ],
    ['text in an array', 'json', '[{"candidates": [{"content": {"parts": [{"text": "H'],
    ['an answer of another kind', 'json', '{"code":"ok","message":"done"}'],
  ])('is %s', (_, form, text) => {
    expect(judged(form, text)).toBe('content');
  });
});

describe('an error', () => {
  test.each<[string, AnswerForm, string, string]>([
    [
      'Anthropic’s',
      'events',
      sse({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
      'overloaded_error',
    ],
    [
      'Anthropic’s behind its start',
      'events',
      `${MESSAGE_START}event: error\ndata: {"type":"error","error":{"type":"api_error"}}\n\n`,
      'api_error',
    ],
    [
      'that of a failed response',
      'events',
      CREATED + sse({ type: 'response.failed', response: { status: 'failed', error: RATE_LIMIT } }),
      'rate_limit_exceeded',
    ],
    [
      'the flat one of a response',
      'events',
      CREATED + sse({ type: 'error', code: 'rate_limit_exceeded', message: 'no', param: null }),
      'rate_limit_exceeded',
    ],
    [
      'a chat’s behind comments',
      'events',
      `: hi\n\n\n\n${sse({ error: { code: 502, message: 'Provider returned error' } })}`,
      '502',
    ],
    [
      'a chat’s in a choice that ends with it',
      'events',
      sse({ error: { code: 429 }, choices: [{ delta: { content: '' }, finish_reason: 'error' }] }),
      '429',
    ],
    [
      'one by the name of its event',
      'events',
      'id:1\nevent:error\n:HTTP_STATUS/429\ndata:{"code":"Throttling.RateQuota","message":"no"}\n\n',
      'Throttling.RateQuota',
    ],
    [
      'Gemini’s',
      'events',
      `data: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}\r\n\r\n`,
      'RESOURCE_EXHAUSTED',
    ],
    [
      'Gemini’s in an array',
      'json',
      '[{\n  "error": {\n    "code": 429,\n    "status": "RESOURCE_EXHAUSTED"\n  }\n}\n]',
      'RESOURCE_EXHAUSTED',
    ],
    ['Ollama’s', 'lines', '{"error":"model runner has unexpectedly stopped"}\n', 'stopped'],
    [
      'MiniMax’s',
      'json',
      '{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}',
      '1002',
    ],
    [
      'Z.ai’s',
      'json',
      '{"error":{"code":"1302","message":"Rate limit reached for requests"}}',
      '1302',
    ],
    [
      'OpenRouter’s',
      'json',
      '{"error":{"message":"Rate limit exceeded","code":429},"user_id":"u"}',
      '429',
    ],
    [
      'that of a response',
      'json',
      JSON.stringify({
        id: 'r',
        object: 'response',
        status: 'failed',
        error: RATE_LIMIT,
        text: { format: {} },
      }),
      'rate_limit_exceeded',
    ],
    [
      'vLLM’s',
      'json',
      '{"object":"error","message":"no","type":"TooManyRequests","code":429}',
      '429',
    ],
    [
      'Anthropic’s behind an empty block',
      'events',
      `${MESSAGE_START}${BLOCK}event: ping\ndata: {"type":"ping"}\n\n${sse({ type: 'error', error: { type: 'overloaded_error' } }, 'error')}`,
      'overloaded_error',
    ],
    [
      'Gemini’s behind an empty element',
      'json',
      '[{"candidates":[{"content":{"role":"model"}}]}\n,{"error":{"code":503}}]',
      '503',
    ],
    [
      'OpenRouter’s in a choice alone',
      'json',
      '{"id":"gen-1","choices":[{"error":{"code":502,"message":"no"},"message":{"content":""}}]}',
      '502',
    ],
    [
      'the same in a stream',
      'events',
      sse({ choices: [{ delta: { content: '' }, error: { code: 502 }, finish_reason: 'error' }] }),
      '502',
    ],
    ['one on two lines', 'events', 'data: {"error":\ndata: {"code":429}}\n\n', '429'],
    ['JSON instead of events', 'events', '{"error":{"code":429}}', '429'],
    ['events instead of JSON', 'json', ': hi\n\ndata: {"error":{"code":429}}\n\n', '429'],
    ['one behind empty lines', 'json', '\n\n \n{"error":{"code":429}}', '429'],
    ['one without a type', 'text', '{"error":{"code":429}}', '429'],
    [
      'an event without a type',
      'text',
      'event: error\ndata: {"code":"Throttling"}\n\n',
      'Throttling',
    ],
    [
      'Mistral’s in a conversation',
      'events',
      sse({ type: 'conversation.response.started' }) +
        sse({ type: 'conversation.response.error', code: 3051, message: 'no' }),
      '3051',
    ],
    [
      'that of a run that failed',
      'events',
      sse({ object: 'thread.run', status: 'queued' }, 'thread.run.created') +
        sse(
          { object: 'thread.run', status: 'failed', last_error: RATE_LIMIT },
          'thread.run.failed',
        ),
      'rate_limit_exceeded',
    ],
    ['Amazon’s', 'json', '{"__type":"ThrottlingException","message":"no"}', 'ThrottlingException'],
    [
      'behind an empty thought',
      'events',
      CREATED +
        sse({ type: 'response.output_item.added', item: { type: 'reasoning', summary: [] } }) +
        sse({ type: 'response.failed', response: { status: 'failed', error: RATE_LIMIT } }),
      'rate_limit_exceeded',
    ],
    [
      'one with a mark of the byte order',
      'events',
      '\ufeffdata: {"error":{"code":429}}\n\n',
      '429',
    ],
    ['one whose lines end with CR', 'events', ': hi\r\rdata:{"error":{"code":429}}\r\r', '429'],
    ['a bare one', 'json', '{"code":"Throttling","message":"no","request_id":"r"}', 'Throttling'],
    ['one of a gateway', 'json', '{"success":false,"code":1305,"msg":"no"}', '1305'],
    ['one in a list', 'json', '{"errors":[{"code":2003,"message":"Rate limited"}]}', '2003'],
    [
      'one with its status',
      'json',
      '{"statusCode":429,"message":"Try again in 7 seconds."}',
      '429',
    ],
    ['one with the status of its problem', 'json', '{"title":"Too Many","status":429}', '429'],
    ['Baidu’s, whose codes are small', 'json', '{"error_code":18,"error_msg":"qps"}', '18'],
    [
      'a choice that ends with an error and names none',
      'events',
      ROLE + sse({ choices: [{ delta: { content: '' }, finish_reason: 'error' }] }),
      'server_error',
    ],
    [
      'Z.ai’s end of a choice',
      'events',
      ROLE + sse({ choices: [{ delta: { content: '' }, finish_reason: 'network_error' }] }),
      'server_error',
    ],
    [
      'DeepSeek’s end of a choice',
      'json',
      '{"choices":[{"finish_reason":"insufficient_system_resource","message":{"content":""}}]}',
      'overloaded',
    ],
    [
      'one behind the usage',
      'events',
      sse({ choices: [], usage: { prompt_tokens: 3 } }) + sse({ error: { code: 429 } }),
      '429',
    ],
    [
      'Cohere’s end of a stream in its first version',
      'lines',
      '{"event_type":"stream-start"}\n{"event_type":"stream-end","finish_reason":"ERROR"}\n',
      'server_error',
    ],
    [
      'Cohere’s end of a stream',
      'events',
      sse({ type: 'message-start', delta: { message: { role: 'assistant', content: [] } } }) +
        sse({ type: 'message-end', delta: { finish_reason: 'ERROR', error: 'rate limit' } }),
      'rate limit',
    ],
    [
      'Groq’s in the last event',
      'events',
      ROLE + sse({ choices: [], x_groq: { id: 'req', error: 'over_capacity' } }),
      'over_capacity',
    ],
    [
      'that of a gateway without a code',
      'json',
      '{"status": "failure", "message": "Rate limit exceeded"}',
      'Rate limit',
    ],
    ['a flag beside its message', 'json', '{"error": true, "message": "Slow down"}', 'Slow down'],
  ])('is %s', (_, form, text, says) => {
    const found = { error: expect.stringContaining(says) };
    expect(judged(form, text)).toEqual(found);
    expect(judgeWhole(form, encoder.encode(text))).toEqual(found);
    for (const size of [1, 2, 7]) expect(inPieces(form, text, size)).toEqual(found);
  });

  test('may be a text in quotes, which are not part of it', () => {
    const text = 'event: error\ndata: "Too many requests"\n\n';
    expect(judged('events', text)).toEqual({ error: 'Too many requests' });
  });

  test('is found wherever the bytes are cut', () => {
    const text = `: hi\r\n\r\n${ROLE}event: error\r\n${sse({ error: { message: 'zu viele Aufrufe – später', code: 429 } })}`;
    const bytes = encoder.encode(text);
    for (let at = 1; at < bytes.length; at += 1) {
      const reader = new OpeningReader('events');
      expect(reader.push(bytes.subarray(0, at))).toBe('prelude');
      expect(reader.push(bytes.subarray(at))).toEqual({ error: expect.stringContaining('429') });
    }
  });

  test('may be in the last event, even if it is incomplete', () => {
    const reader = new OpeningReader('events');
    expect(reader.push(encoder.encode('data: {"error":{"code":429}}'))).toBe('prelude');
    expect(reader.end()).toEqual({ error: '{"error":{"code":429}}' });
  });
});

test.each([
  ['text/event-stream; charset=utf-8', 'events'],
  ['application/json', 'json'],
  ['Application/JSON; charset=UTF-8', 'json'],
  ['application/x-ndjson', 'lines'],
  ['application/problem+json', 'json'],
  ['audio/mpeg', null],
  ['text/plain; charset=utf-8', 'text'],
  [null, 'text'],
])('the form of %s: %s', (type, form) => {
  expect(formOf(type)).toBe(form);
});

describe('what comes in single bytes is read in linear time', () => {
  const LONG = 'x'.repeat(60_000);
  test.each<[string, AnswerForm, string]>([
    [
      'a long event',
      'events',
      `data: {"type":"response.in_progress","response":{"instructions":"${LONG}`,
    ],
    ['an event of many lines', 'events', 'data: {},\n'.repeat(6_000).replace('{},', '[')],
    ['a long error', 'json', `{"error":{"code":429,"message":"${LONG}`],
    ['an error of many objects', 'json', `{"error":{"details":[${'{},'.repeat(20_000)}`],
    ['blank lines', 'json', '\n'.repeat(60_000)],
  ])('%s', (_, form, text) => {
    const parse = vi.spyOn(JSON, 'parse');
    expect(inPieces(form, text, 1)).toBe('prelude');
    const parsed = parse.mock.calls.reduce((sum, [json]) => sum + json.length, 0);
    parse.mockRestore();
    // Each look into a value that is cut may parse it twice.
    expect(parsed).toBeLessThan(100 * text.length);
  });
});
