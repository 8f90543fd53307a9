import { later } from './waits.ts';

/** A provider's answer in the words of the HTTP routes; without a status it is why there was none. */
export interface ProviderAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly error?: string;
}

/** Most characters of an error that are told. */
const ERROR_LENGTH_MAX = 16_384;

/** Most characters of a header that is told: what says when to come again is short. */
const HEADER_LENGTH_MAX = 4_096;

/** Longest time for which one is read that does not end. */
const READING_MS = 5_000;

/** Headers that are nobody's business. */
const SECRET = /cookie|authorization|api-key|token$/i;

/** gRPC says it in its own numbers: RESOURCE_EXHAUSTED, UNAVAILABLE. */
const OF_GRPC: Readonly<Record<number, number>> = { 8: 429, 14: 503 };

/** How deep an error may be wrapped in others. */
const DEPTH_MAX = 5;

/** Reads what a provider said from its `Response`, or from the error that an SDK made of it. Null: nothing of it is there. */
export async function readAnswer(said: unknown): Promise<ProviderAnswer | null> {
  if (isResponse(said)) {
    const { status, headers } = said;
    const error = said.ok ? '' : await beginningOf(said);
    return { status, headers: plain(headers), ...(error !== '' && { error }) };
  }
  let fields = fieldsOf(said);
  for (let depth = 0; depth < DEPTH_MAX && fields !== null; depth += 1) {
    const status = statusOf(fields);
    if (status !== null) {
      const error = errorOf(fields);
      return { status, headers: headersOf(fields), ...(error !== undefined && { error }) };
    }
    // The AI SDK tries again by itself, and wraps the last error then.
    fields = fieldsOf(fields['lastError'] ?? fields['cause']);
  }
  return null;
}

/** Reads why there was no answer. */
export function readFailure(said: unknown): ProviderAnswer {
  const error = said instanceof Error ? said.message : String(said);
  return { error: error.slice(0, ERROR_LENGTH_MAX) || 'unknown' };
}

/** Tells a `Response`, of whichever fetch, from everything else. */
export function isResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]';
}

/** Finds the status where SDKs put it: OpenAI's and Anthropic's, the AI SDK, the AWS SDK, fetch wrappers, gRPC. */
function statusOf(fields: Readonly<Record<string, unknown>>): number | null {
  const found = [
    fields['status'],
    fields['statusCode'],
    fieldsOf(fields['$metadata'])?.['httpStatusCode'],
    fieldsOf(fields['response'])?.['status'],
    typeof fields['details'] === 'string' ? OF_GRPC[Number(fields['code'])] : undefined,
  ];
  const status = found.find((one) => typeof one === 'number' && one >= 100 && one < 600);
  return typeof status === 'number' ? status : null;
}

function headersOf(fields: Readonly<Record<string, unknown>>): Record<string, string> {
  const found =
    fields['headers'] ??
    fields['responseHeaders'] ??
    fieldsOf(fields['response'])?.['headers'] ??
    fieldsOf(fields['$response'])?.['headers'];
  return plain(found);
}

/** Finds the provider's own words before those of the SDK. */
function errorOf(fields: Readonly<Record<string, unknown>>): string | undefined {
  const { responseBody, error, name, message } = fields;
  if (typeof responseBody === 'string') return responseBody.slice(0, ERROR_LENGTH_MAX);
  if (typeof error === 'object' && error !== null) {
    const text = written(error);
    if (text !== undefined) return text;
  }
  if (typeof message !== 'string') return undefined;
  // The AWS SDK has made an exception of what was this.
  const isOfAws = '$metadata' in fields;
  return (isOfAws ? JSON.stringify({ __type: name, message }) : message).slice(0, ERROR_LENGTH_MAX);
}

/** Writes a body that an SDK has parsed as it was; undefined: that cannot be done. */
function written(error: object): string | undefined {
  try {
    return JSON.stringify(error).slice(0, ERROR_LENGTH_MAX);
  } catch {
    return undefined;
  }
}

/** Writes headers of any kind as an object, without those that are secret. */
function plain(headers: unknown): Record<string, string> {
  const found = fieldsOf(headers);
  if (found === null) return {};
  const pairs =
    typeof found['entries'] === 'function'
      ? [...(headers as Headers).entries()]
      : Object.entries(found);
  return Object.fromEntries(
    pairs
      .filter(([name, value]) => !SECRET.test(name) && typeof value === 'string')
      .filter(([, value]) => (value as string).length <= HEADER_LENGTH_MAX)
      .map(([name, value]) => [name.toLowerCase(), value as string]),
  );
}

/** Reads the beginning of a body, and leaves the body to whoever wants it. */
async function beginningOf(response: Response): Promise<string> {
  if (response.body === null || response.bodyUsed || response.body.locked) return '';
  const reader = response.clone().body?.getReader();
  const enough = later(READING_MS, () => void reader?.cancel().catch(() => undefined));
  const decoder = new TextDecoder();
  let text = '';
  try {
    while (reader !== undefined && text.length < ERROR_LENGTH_MAX) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    // Waits for nothing: the other half of the clone may not be read for long.
    reader?.cancel().catch(() => undefined);
  } catch {
    // What was read until it broke is enough.
  } finally {
    enough();
  }
  return text.slice(0, ERROR_LENGTH_MAX);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : null;
}
