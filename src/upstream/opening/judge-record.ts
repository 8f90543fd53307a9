/**
 * Judges one JSON record of a response with status 200: an event of a stream, a line, an element of an array, or a
 * whole document. Providers and gateways mix their formats, so a record is judged by its own fields and not by the
 * dialect of its upstream. Only top-level fields count, so an error that a model quotes in its text is text.
 */

/** `prelude` precedes the first content. `error` is JSON that the refusal table can read. */
export type Judgement = 'prelude' | 'content' | { readonly error: string };
const PRELUDE_TYPES: ReadonlySet<unknown> = new Set([
  'ping',
  'message_start',
  'response.created',
  'response.queued',
  'response.in_progress',
  // Cohere, v2 and v1.
  'message-start',
  'stream-start',
  // Gemini Interactions API.
  'interaction.created',
  'interaction.start',
  'interaction.status_update',
  'interaction.in_progress',
  'keepalive',
  // Names of pings that gateways choose themselves.
  'keep-alive',
  'keep_alive',
  'heartbeat',
  'codex.rate_limits',
  // Mistral Conversations API.
  'conversation.response.started',
  // Runs of assistants. They name the event only in its `event` line.
  'thread.created',
  'thread.run.created',
  'thread.run.queued',
  'thread.run.in_progress',
  'thread.run.step.created',
  'thread.run.step.in_progress',
  'thread.message.created',
  'thread.message.in_progress',
]);

/** Types of events that start a part of the content, which may be empty. */
const OPENING_TYPES: ReadonlySet<unknown> = new Set([
  'content_block_start',
  'content-start',
  'content_block_delta',
  'response.output_item.added',
  'response.content_part.added',
  'response.reasoning_summary_part.added',
]);

/** Kinds of parts that may be empty. A tool call is never empty, because it has its name from the start. */
const EMPTY_PARTS: ReadonlySet<unknown> = new Set([
  'text',
  'thinking',
  'message',
  'output_text',
  'reasoning',
  'reasoning_text',
  'summary_text',
  'text_delta',
  'thinking_delta',
  'input_json_delta',
]);

/** Fields that contain output of a model unless they are empty. */
const CONTENT_KEYS = [
  'content',
  'output',
  'outputs',
  'data',
  'results',
  'embeddings',
  'embedding',
  'completion',
  'generations',
  'text',
  'thinking',
];

/** Fields of a delta or message that contain output of a model unless they are empty. */
const TEXT_KEYS = [
  'content',
  'text',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking',
  'summary',
  'encrypted_content',
  'partial_json',
  'tool_calls',
  'function_call',
  'refusal',
  'audio',
  'images',
];

/** Fields of a delta that only describe its message. */
const DELTA_NAMES: ReadonlySet<string> = new Set(['role', 'name', 'id', 'type', 'model']);

/** An error has at least one of these fields. */
const ERROR_KEYS = ['message', 'msg', 'code', 'type', 'status', 'error', 'detail', 'metadata'];

/**
 * Finish reasons of a choice that report a failure of the provider, with the error: those of OpenRouter and Mistral,
 * Z.ai, and DeepSeek. As of 2026-11-27.
 */
const FAILED_ENDS: ReadonlyMap<unknown, string> = new Map([
  ['error', 'server_error'],
  ['network_error', 'server_error'],
  ['insufficient_system_resource', 'overloaded'],
]);

/** The same for the last event of a stream (Cohere). */
const FAILED_STREAM_ENDS: ReadonlySet<unknown> = new Set(['ERROR', 'TIMEOUT']);

export function judgeRecord(record: unknown, event = ''): Judgement {
  const fields = fieldsOf(record);
  if (fields === null || hasContent(fields)) return 'content';
  const error = errorIn(fields, event);
  if (error !== null) return { error };
  return PRELUDE_TYPES.has(event) || isPrelude(fields) ? 'prelude' : 'content';
}

/** Returns the error that a record reports, as JSON. null if there is none. */
function errorIn(fields: Readonly<Record<string, unknown>>, event: string): string | null {
  const { type, error, response, object, status } = fields;
  if (type === 'response.failed' || (object === 'response' && status === 'failed')) {
    const failed = object === 'response' ? fields : fieldsOf(response);
    return JSON.stringify({ error: fieldsOf(failed?.['error']) ?? { code: 'server_error' } });
  }
  const isMarked = event === 'error' || type === 'error' || fields['event_type'] === 'error';
  if (isMarked || object === 'error' || isError(error)) return JSON.stringify(fields);
  if (isBareError(fields) || type === 'conversation.response.error') return JSON.stringify(fields);
  const code = fieldsOf(fields['x_groq'])?.['error'];
  if (typeof code === 'string' && code !== '') return JSON.stringify({ error: { code } });
  if (event === 'thread.run.failed') return JSON.stringify({ error: fields['last_error'] });
  if (type === 'message-end') return errorOfEnd(fieldsOf(fields['delta']));
  if (fields['event_type'] === 'stream-end') return errorOfEnd(fields);
  return errorOfChoices(listOf(fields['choices']));
}

function errorOfChoices(choices: readonly Readonly<Record<string, unknown>>[]): string | null {
  const failed = choices.find((choice) => isError(choice['error']));
  if (failed !== undefined) return JSON.stringify({ error: failed['error'] });
  const codes = choices.map((choice) => FAILED_ENDS.get(choice['finish_reason']));
  const code = codes.find((each) => each !== undefined);
  return code === undefined ? null : JSON.stringify({ error: { code } });
}

/** Reads the error of the event that ends a stream of messages. */
function errorOfEnd(end: Readonly<Record<string, unknown>> | null): string | null {
  if (end === null || !FAILED_STREAM_ENDS.has(end['finish_reason'])) return null;
  return JSON.stringify({ error: end['error'] ?? { code: 'server_error' } });
}

function isError(error: unknown): boolean {
  if (typeof error === 'string') return error !== '';
  const fields = fieldsOf(error);
  return fields !== null && ERROR_KEYS.some((key) => (fields[key] ?? null) !== null);
}

/**
 * Whether a record itself is an error: in the format of MiniMax, Zhipu, Baidu, DashScope, Azure API Management or
 * Portkey, one with the status of its problem, or a list of errors.
 */
function isBareError(fields: Readonly<Record<string, unknown>>): boolean {
  const code = fieldsOf(fields['base_resp'])?.['status_code'];
  if (code !== undefined) return Number(code) !== 0;
  // Baidu's error codes start at 1.
  if (isCode(fields['error_code'], 1) || fields['success'] === false) return true;
  const { __type: ofAmazon } = fields;
  if (typeof ofAmazon === 'string' && /(?:Exception|Error)$/.test(ofAmazon)) return true;
  const { errors, error, message, msg, detail, title, statusCode, status } = fields;
  if (listOf(errors).some(isError)) return true;
  if (![message, msg, detail, title].some((text) => typeof text === 'string')) return false;
  if (error === true || status === 'error' || status === 'failure') return true;
  // A `status` that is a word describes the state of something else.
  const ofProblem = typeof status === 'number' ? status : undefined;
  return isCode(fields['code'] ?? statusCode ?? ofProblem);
}

function isCode(value: unknown, least = 400): boolean {
  if (typeof value === 'string') return value !== '' && !NO_ERROR.test(value);
  return typeof value === 'number' && value >= least;
}

const NO_ERROR = /^(?:0+|2\d\d|ok|success)$/i;

/** Whether a record, or the part that has arrived, contains output of a model. */
export function hasContent(record: unknown): boolean {
  const fields = fieldsOf(record);
  if (fields === null) return false;
  const { choices, candidates, message, delta, response } = fields;
  if (!isFailedResponse(fields) && CONTENT_KEYS.some((key) => isFilled(fields[key]))) return true;
  if (listOf(choices).some(choiceHasContent)) return true;
  if (listOf(candidates).some(candidateHasContent)) return true;
  if (typeof response === 'string' ? response !== '' : isWrapper(fields) && hasContent(response)) {
    return true;
  }
  if (typeof delta === 'string' ? delta !== '' : hasText(delta)) return true;
  return hasText(message) && !isStart(fields);
}

/** Whether a record wraps a response, as in Code Assist, and is not an event about a response. */
function isWrapper({ type, event_type: eventType }: Readonly<Record<string, unknown>>): boolean {
  return type === undefined && eventType === undefined;
}

function hasText(message: unknown): boolean {
  const fields = fieldsOf(message);
  return fields !== null && TEXT_KEYS.some((key) => isFilled(fields[key]));
}

/**
 * Whether a field of a chat delta adds to its message. Gateways put citations, images and similar content there under
 * names of their own.
 */
function isMore([name, value]: readonly [string, unknown]): boolean {
  return !DELTA_NAMES.has(name) && isFilled(value);
}

/** Whether a record is the state of a failed response, with or without content before it. */
function isFailedResponse({ object, status }: Readonly<Record<string, unknown>>): boolean {
  return object === 'response' && status === 'failed';
}

/** Whether a record only announces its message. Its fields may be filled. */
function isStart({ type }: Readonly<Record<string, unknown>>): boolean {
  return PRELUDE_TYPES.has(type);
}

function choiceHasContent(fields: Readonly<Record<string, unknown>>): boolean {
  const delta = fieldsOf(fields['delta']);
  const hasMore = delta !== null && Object.entries(delta).some(isMore);
  if (hasMore || hasText(fieldsOf(fields['message']) ?? fields)) return true;
  // A token may have no text, or be a part of a character.
  const tokens = fieldsOf(fields['logprobs'])?.['content'];
  if ([tokens, fields['token_ids'], fields['messages']].some(isFilled)) return true;
  const end = fields['finish_reason'];
  return typeof end === 'string' && !mayBeFailure(end) && !isError(fields['error']);
}

/** Whether the finish reason of a choice, which may be cut off, reports a failure of the provider. */
function mayBeFailure(end: string): boolean {
  return [...FAILED_ENDS.keys()].some((name) => String(name).startsWith(end));
}

function candidateHasContent(fields: Readonly<Record<string, unknown>>): boolean {
  const parts = listOf(fieldsOf(fields['content'])?.['parts']);
  return (
    isFilled(fields['finishReason']) || parts.some((part) => Object.values(part).some(isFilled))
  );
}

function isPrelude(fields: Readonly<Record<string, unknown>>): boolean {
  const { type, choices, usage, candidates, done, response } = fields;
  if (PRELUDE_TYPES.has(type) || PRELUDE_TYPES.has(fields['event_type'])) return true;
  if (OPENING_TYPES.has(type)) return opensEmptyPart(fields);
  const wrapped = isWrapper(fields) ? fieldsOf(response) : null;
  if (wrapped !== null) return isPrelude(wrapped);
  // A record without choices reports the usage, or Azure's content filter results.
  if (Array.isArray(choices)) return true;
  if (Array.isArray(candidates) || 'usageMetadata' in fields) return !('promptFeedback' in fields);
  // Workers AI streams only the text, and the usage at the end.
  if (response === '' && done === undefined) return fieldsOf(usage) === null;
  return done === false && ('message' in fields || 'response' in fields);
}

function opensEmptyPart(fields: Readonly<Record<string, unknown>>): boolean {
  const part = fieldsOf(
    fields['content_block'] ??
      fields['item'] ??
      fields['part'] ??
      partOfDelta(fields) ??
      fields['delta'],
  );
  return part !== null && EMPTY_PARTS.has(part['type']) && !hasText(part);
}

function partOfDelta({ delta }: Readonly<Record<string, unknown>>): unknown {
  return fieldsOf(fieldsOf(delta)?.['message'])?.['content'];
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Readonly<Record<string, unknown>>) : null;
}

function listOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(fieldsOf).filter((fields) => fields !== null) : [];
}
