import type { ServerResponse } from 'node:http';
import { EVENT_STREAM, exception, messages } from '../unit/upstream/usage/frames.ts';
import { CREATED_S, sseData, sseEvent } from './answer.ts';
import type { StrictRoute } from './route.ts';

/** A call that is refused inside a 200. */
interface StrictRefused {
  readonly route: StrictRoute;
  readonly query: string;
  /** Whether the body requests a stream. null if it does not specify that. */
  readonly isStream: boolean | null;
}

const SSE = 'text/event-stream; charset=utf-8';

/** Answers with status 200 and an error, like a full provider. In a stream, the error follows the opening events. */
export function refuseInside(res: ServerResponse, body: unknown, refused: StrictRefused): void {
  if (refused.route.dialect === 'bedrock') return refuseInMessages(res, body);
  const [type, text] = formOf(body, refused);
  res.writeHead(200, { 'content-type': type });
  res.end(text);
}

/** Refuses in Bedrock's stream format: a header of the message names the exception. */
function refuseInMessages(res: ServerResponse, body: unknown): void {
  const type = String(res.getHeader('x-amzn-errortype') ?? 'ThrottlingException');
  res.removeHeader('x-amzn-errortype');
  res.writeHead(200, { 'content-type': EVENT_STREAM });
  res.write(messages([['messageStart', '{"role":"assistant"}']]));
  res.end(exception(type.charAt(0).toLowerCase() + type.slice(1), JSON.stringify(body)));
}

function formOf(
  body: unknown,
  { route, query, isStream }: StrictRefused,
): [type: string, text: string] {
  const json = JSON.stringify(body);
  const { operation } = route;
  if (operation === 'generate_stream') {
    return query.includes('alt=sse')
      ? [SSE, `data: ${json}\r\n\r\n`]
      : ['application/json', `[${json}]`];
  }
  if (operation.startsWith('ollama') && isStream !== false) {
    return ['application/x-ndjson', `${json}\n`];
  }
  if (isStream !== true) return ['application/json', json];
  if (operation === 'messages') return [SSE, messagesError(json)];
  if (operation === 'responses') return [SSE, failedResponse(body)];
  const role = { index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null };
  const chunk = { id: 'chatcmpl-strict', object: 'chat.completion.chunk', choices: [role] };
  return [SSE, `: keep-alive\n\n${sseData(chunk)}${sseData(body)}`];
}

function messagesError(json: string): string {
  const usage = { input_tokens: 1, output_tokens: 0 };
  const message = { id: 'msg_strict', type: 'message', role: 'assistant', content: [], usage };
  const start = sseEvent({ type: 'message_start', message });
  return `${start}${sseEvent({ type: 'ping' })}event: error\ndata: ${json}\n\n`;
}

function failedResponse(body: unknown): string {
  const { error } = body as { error: { code: string; message: string } };
  const response = { id: 'resp_strict', object: 'response', created_at: CREATED_S };
  const started = { ...response, status: 'in_progress', error: null };
  const failed = { ...response, status: 'failed', error, instructions: 'Be brief. '.repeat(400) };
  return [
    sseEvent({ type: 'response.created', sequence_number: 0, response: started }),
    sseEvent({ type: 'response.in_progress', sequence_number: 1, response: started }),
    sseEvent({ type: 'response.failed', sequence_number: 2, response: failed }),
  ].join('');
}
