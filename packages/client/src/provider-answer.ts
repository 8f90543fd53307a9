import { later } from './waits.ts';

/** A provider's response in the format of the HTTP routes. Without a status, `error` is why there was no response. */
export interface ProviderAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly error?: string;
}

/** Maximum characters of an error that are reported. */
const ERROR_LENGTH_MAX = 16_384;

/** Maximum characters of a header that is reported. Headers with retry times are short. */
const HEADER_LENGTH_MAX = 4_096;

/** Maximum time for reading an error body, which may not end. */
const READING_MS = 5_000;

/** Headers that may contain secrets, which are not reported. */
const SECRET = /cookie|authorization|api-key|token$/i;

/** Statuses for the gRPC codes RESOURCE_EXHAUSTED and UNAVAILABLE. */
const OF_GRPC: Readonly<Record<number, number>> = { 8: 429, 14: 503 };

/** Maximum depth of wrapped errors. */
const DEPTH_MAX = 5;

/** Reads a provider's response from a `Response` or from an SDK's error. null if the value contains no response. */
export async function readAnswer(answer: unknown): Promise<ProviderAnswer | null> {
  if (isResponse(answer)) {
    const { status, headers } = answer;
    const error = answer.ok ? '' : await beginningOf(answer);
    return { status, headers: plain(headers), ...(error !== '' && { error }) };
  }
  let fields = fieldsOf(answer);
  for (let depth = 0; depth < DEPTH_MAX && fields !== null; depth += 1) {
    const status = statusOf(fields);
    if (status !== null) {
      const error = errorOf(fields);
      return { status, headers: headersOf(fields), ...(error !== undefined && { error }) };
    }
    // The AI SDK retries on its own and wraps the last error.
    fields = fieldsOf(fields['lastError'] ?? fields['cause']);
  }
  return null;
}

/** Describes why there was no response. */
export function readFailure(failure: unknown): ProviderAnswer {
  const error = failure instanceof Error ? failure.message : String(failure);
  return { error: error.slice(0, ERROR_LENGTH_MAX) || 'unknown' };
}

/** Whether a value is a `Response` of any implementation of fetch. */
export function isResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]';
}

/** Finds the status in errors of the OpenAI, Anthropic, AI and AWS SDKs, of fetch wrappers and of gRPC. */
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

/** Prefers the provider's own message to that of the SDK. */
function errorOf(fields: Readonly<Record<string, unknown>>): string | undefined {
  const { responseBody, error, name, message } = fields;
  if (typeof responseBody === 'string') return responseBody.slice(0, ERROR_LENGTH_MAX);
  if (typeof error === 'object' && error !== null) {
    const text = written(error);
    if (text !== undefined) return text;
  }
  if (typeof message !== 'string') return undefined;
  // The AWS SDK converts this shape into an exception.
  const isOfAws = '$metadata' in fields;
  return (isOfAws ? JSON.stringify({ __type: name, message }) : message).slice(0, ERROR_LENGTH_MAX);
}

/** Serializes a body that an SDK has parsed. undefined if it cannot be serialized. */
function written(error: object): string | undefined {
  try {
    return JSON.stringify(error).slice(0, ERROR_LENGTH_MAX);
  } catch {
    return undefined;
  }
}

/** Converts headers of any type to an object, without secret ones. */
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

/** Reads the beginning of a body from a clone, so that the body stays readable. */
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
    // This is not awaited, because it may wait until the original body is read.
    reader?.cancel().catch(() => undefined);
  } catch {
    // The part that was read is enough.
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
