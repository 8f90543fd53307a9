// Every shape in which providers report usage, whole and streamed, from a real upstream through the Worker to the
// counts of the group. The same table is read field by field in the unit tests.
import { afterAll, describe, expect, it } from 'vitest';
import { REPORTS, type UsageReportsCounts } from '../../support/usage-reports.ts';
import { nothingLeaks } from '../support/pool.ts';
import { CHAT, newScene, post, PRICE, untilCounted } from './scene.ts';

afterAll(nothingLeaks);

/** A route, and an answer of it that contains a report. */
interface ReportsPacking {
  readonly form: string;
  readonly path: string;
  readonly request: object;
  readonly contentType: string;
  readonly body: string;
}

type MeteringReport = Readonly<Record<string, unknown>>;
type ReportsEvent = MeteringReport & { readonly type: string };

const JSON_TYPE = 'application/json';
const SSE = 'text/event-stream; charset=utf-8';
const MESSAGES = [{ role: 'user', content: 'one two three' }];

const data = (values: readonly object[]): string =>
  values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join('');

/** Frames that also name their event. */
const events = (values: readonly ReportsEvent[]): string =>
  values.map((value) => `event: ${value.type}\n${data([value])}`).join('');

function packing(
  form: string,
  path: string,
  request: object,
  body: object | string,
): ReportsPacking {
  const isText = typeof body === 'string';
  return {
    form,
    path,
    request,
    contentType: isText ? SSE : JSON_TYPE,
    body: isText ? body : JSON.stringify(body),
  };
}

function chat(usage: MeteringReport): ReportsPacking[] {
  const request = { model: 'm', messages: MESSAGES };
  const streamed = { ...request, stream: true, stream_options: { include_usage: true } };
  const chunk = (content: string) => ({
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { content } }],
  });
  const whole = { object: 'chat.completion', choices: [{ index: 0, message: {} }], usage };
  const last = [
    { ...chunk('Hi'), usage: null },
    { ...chunk(' there'), usage: null },
    { object: 'chat.completion.chunk', choices: [], usage },
  ];
  const each = ['Hi', ' there', ''].map((text) => ({ ...chunk(text), usage }));
  return [
    packing('chat', CHAT, request, whole),
    packing('chat stream, in the last chunk', CHAT, streamed, `${data(last)}data: [DONE]\n\n`),
    packing('chat stream, in every chunk', CHAT, streamed, `${data(each)}data: [DONE]\n\n`),
  ];
}

function responses(usage: MeteringReport): ReportsPacking[] {
  const path = '/v1/responses';
  const request = { model: 'm', input: 'one two three' };
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [], usage };
  const stream = events([
    { type: 'response.created', response: { ...response, status: 'in_progress', usage: null } },
    { type: 'response.output_text.delta', delta: 'Hi' },
    { type: 'response.completed', response },
  ]);
  return [
    packing('responses', path, request, response),
    packing('responses stream, when completed', path, { ...request, stream: true }, stream),
  ];
}

function anthropic(usage: MeteringReport): ReportsPacking[] {
  const path = '/v1/messages';
  const request = { model: 'm', max_tokens: 600, messages: MESSAGES };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [] };
  const stream = events([
    { type: 'message_start', message: { ...message, usage: { ...usage, output_tokens: 1 } } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
    { type: 'message_delta', delta: {}, usage: { output_tokens: usage['output_tokens'] } },
    { type: 'message_stop' },
  ]);
  return [
    packing('messages', path, request, { ...message, usage }),
    packing('messages stream, at start and end', path, { ...request, stream: true }, stream),
  ];
}

function gemini(usageMetadata: MeteringReport): ReportsPacking[] {
  const at = '/v1beta/models/gemini-2.5-flash';
  const request = { contents: [{ role: 'user', parts: [{ text: 'one two three' }] }] };
  const chunk = (text: string) => ({
    candidates: [{ content: { parts: [{ text }] } }],
    usageMetadata,
  });
  const { promptTokenCount } = usageMetadata;
  const first = { ...chunk('Hi'), usageMetadata: { promptTokenCount } };
  const chunks = [first, chunk(' there'), chunk('')];
  const stream = `${at}:streamGenerateContent`;
  return [
    packing('generateContent', `${at}:generateContent`, request, chunk('Hi')),
    packing('stream of events', `${stream}?alt=sse`, request, data(chunks)),
    packing('stream as a JSON array', stream, request, chunks),
  ];
}

function interactions(usage: MeteringReport): ReportsPacking[] {
  const request = { model: 'm', input: 'one two three' };
  return [packing('interaction', '/v1beta/interactions', request, { id: 'i', outputs: [], usage })];
}

function cohere(usage: MeteringReport): ReportsPacking[] {
  const request = { model: 'm', messages: MESSAGES };
  const stream = events([
    { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hi' } } } },
    { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } },
  ]);
  return [
    packing('chat', '/v2/chat', request, { id: 'c', message: {}, usage }),
    packing('chat stream, at its end', '/v2/chat', { ...request, stream: true }, stream),
  ];
}

function packingsOf(dialect: string, report: MeteringReport): ReportsPacking[] {
  if (dialect === 'anthropic') return anthropic(report);
  if ('promptTokenCount' in report) return gemini(report);
  if ('total_input_tokens' in report) return interactions(report);
  if ('billed_units' in report) return cohere(report);
  return 'input_tokens' in report ? responses(report) : chat(report);
}

/** The upstream of each dialect. Bedrock's reports come in binary messages, which the unit tests cut and read. */
const UPSTREAMS: Readonly<Record<string, string>> = {
  openai: 'up',
  anthropic: 'claude',
  gemini: 'gem',
};

const CASES = REPORTS.flatMap(([title, dialect, report, counts]) => {
  const id = UPSTREAMS[dialect];
  if (id === undefined) return [];
  return packingsOf(dialect, report as MeteringReport).map(
    (each) => [`${title}: ${each.form}`, id, each, counts] as const,
  );
});

function usdOf([input, output, read, written, long = 0]: UsageReportsCounts): number {
  const fresh = input - read - written;
  const millionths =
    fresh * PRICE.input +
    read * PRICE.cache_read +
    (written - long) * PRICE.cache_write +
    long * PRICE.cache_write * (2 / 1.25) +
    output * PRICE.output;
  return Number((millionths / 1e6).toFixed(9));
}

describe('a report is metered as it was meant, and its answer passes unchanged', () => {
  it.each(CASES)('%s', async (_, id, { path, request, contentType, body }, counts) => {
    const { group } = await newScene({ answer: { contentType, body } });
    const response = await post(`/${id}${path}`, JSON.stringify(request));
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(body);
    const [inputTokens, outputTokens] = counts;
    const usd = usdOf(counts);
    await untilCounted(group, { requests: 1, inputTokens, outputTokens, usd, reservedUsd: 0 });
  });
});
