/**
 * Judges one JSON record of an answer whose status was 200: an event of a stream, a line, an element of an array, or a whole
 * document. Providers and gateways mix their shapes, so a record is judged by its own fields and not by the dialect of its
 * upstream. Only fields of the record itself count, so an error that a model quotes in its text is text.
 */

/** `prelude`: it comes before the first content. An error is given as the JSON that the refusal table reads. */
export type Judgement = 'prelude' | 'content' | { readonly error: string };

type Fields = Readonly<Record<string, unknown>>;

/** Types of events that precede the first content. */
const PRELUDE_TYPES: ReadonlySet<unknown> = new Set([
  'ping',
  'message_start',
  'response.created',
  'response.queued',
  'response.in_progress',
  // Cohere, v2 and v1.
  'message-start',
  'stream-start',
  // Gemini's interactions.
  'interaction.created',
  'interaction.start',
  'interaction.status_update',
  'interaction.in_progress',
]);

/** Fields that hold what a model made, where they hold anything. */
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
  'response',
];

/** Fields of a delta or message that hold what a model made, where they hold anything. */
const TEXT_KEYS = [
  'content',
  'text',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking',
  'tool_calls',
  'function_call',
  'refusal',
  'audio',
  'images',
];

/** Fields of which an error has at least one. */
const ERROR_KEYS = ['message', 'msg', 'code', 'type', 'status', 'error', 'detail', 'metadata'];

/** Judges a record. `event`: the name that the stream gives it; empty: none. */
export function judgeRecord(record: unknown, event = ''): Judgement {
  const fields = fieldsOf(record);
  if (fields === null || hasContent(fields)) return 'content';
  const error = errorIn(fields, event);
  if (error !== null) return { error };
  return isPrelude(fields) ? 'prelude' : 'content';
}

/** Returns the error that a record reports, as JSON; null: it reports none. */
export function errorIn(record: unknown, event = ''): string | null {
  const fields = fieldsOf(record);
  if (fields === null) return null;
  const { type, error, response, object, status } = fields;
  if (type === 'response.failed' || (object === 'response' && status === 'failed')) {
    const failed = object === 'response' ? fields : fieldsOf(response);
    return JSON.stringify({ error: fieldsOf(failed?.['error']) ?? { code: 'server_error' } });
  }
  const saysSo = event === 'error' || type === 'error' || fields['event_type'] === 'error';
  if (saysSo || object === 'error' || isError(error)) return JSON.stringify(record);
  return isBareError(fields) ? JSON.stringify(record) : null;
}

function isError(error: unknown): boolean {
  if (typeof error === 'string') return error !== '';
  const fields = fieldsOf(error);
  return fields !== null && ERROR_KEYS.some((key) => (fields[key] ?? null) !== null);
}

/** Tells errors that stand at the top of a record: MiniMax's, Zhipu's, Baidu's, DashScope's. */
function isBareError(fields: Fields): boolean {
  const code = fieldsOf(fields['base_resp'])?.['status_code'];
  if (code !== undefined) return code !== 0;
  if (isCode(fields['error_code']) || fields['success'] === false) return true;
  const { message, msg, detail } = fields;
  return isCode(fields['code']) && [message, msg, detail].some((text) => typeof text === 'string');
}

function isCode(value: unknown): boolean {
  return typeof value === 'string' ? value !== '' : typeof value === 'number' && value >= 400;
}

function hasContent(fields: Fields): boolean {
  const { choices, candidates, message } = fields;
  if (CONTENT_KEYS.some((key) => isFilled(fields[key]) && !isFailedResponse(fields, key))) {
    return true;
  }
  if (Array.isArray(choices) && choices.some(choiceHasContent)) return true;
  if (Array.isArray(candidates) && candidates.some(candidateHasContent)) return true;
  return TEXT_KEYS.some((key) => isFilled(fieldsOf(message)?.[key])) && !isStart(fields);
}

/** Whether a field is the state of a response and not what it says. */
function isFailedResponse({ type, object, status }: Fields, key: string): boolean {
  if (key === 'response') return typeof type === 'string' && type.startsWith('response.');
  return object === 'response' && status === 'failed';
}

/** Whether a record only announces its message, of which a field may be filled. */
function isStart({ type }: Fields): boolean {
  return PRELUDE_TYPES.has(type);
}

function choiceHasContent(choice: unknown): boolean {
  const fields = fieldsOf(choice);
  if (fields === null) return false;
  const said = fieldsOf(fields['delta']) ?? fieldsOf(fields['message']) ?? fields;
  if (TEXT_KEYS.some((key) => isFilled(said[key]))) return true;
  // OpenRouter ends a choice so when its provider failed.
  const end = fields['finish_reason'] ?? null;
  return end !== null && end !== 'error';
}

function candidateHasContent(candidate: unknown): boolean {
  const fields = fieldsOf(candidate);
  if (fields === null) return false;
  return isFilled(fieldsOf(fields['content'])?.['parts']) || isFilled(fields['finishReason']);
}

function isPrelude(fields: Fields): boolean {
  const { type, choices, usage, candidates, done } = fields;
  if (PRELUDE_TYPES.has(type) || PRELUDE_TYPES.has(fields['event_type'])) return true;
  // A record without a choice reports the usage at the end, or Azure's filters at the beginning.
  if (Array.isArray(choices)) return choices.length > 0 || fieldsOf(usage) === null;
  if (Array.isArray(candidates) || 'usageMetadata' in fields) return !('promptFeedback' in fields);
  return done === false && ('message' in fields || 'response' in fields);
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

function fieldsOf(value: unknown): Fields | null {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Fields) : null;
}
