import AnthropicSdk from '@anthropic-ai/sdk';
import { ApiError } from '@google/genai';
import { APICallError, RetryError } from 'ai';
import OpenAI from 'openai';

/** Facts that an SDK's error tells its caller. */
export interface ToldByError {
  /** The SDK's class of it. Null: none that its users look for. */
  readonly kind: string | null;
  readonly status: number | undefined;
  /** `headgate-reason`; null: the header is absent, so that the status is the upstream's. */
  readonly reason: string | null;
  /** Absent where the SDK shows no headers. */
  readonly retryAfter?: string | null;
  readonly shouldRetry?: string | null;
  /** The body of the error as text, whatever the SDK makes of it. */
  readonly body: string;
}

const OPENAI_KINDS = [
  OpenAI.BadRequestError,
  OpenAI.AuthenticationError,
  OpenAI.NotFoundError,
  OpenAI.RateLimitError,
  OpenAI.InternalServerError,
];
const ANTHROPIC_KINDS = [
  AnthropicSdk.BadRequestError,
  AnthropicSdk.AuthenticationError,
  AnthropicSdk.PaymentRequiredError,
  AnthropicSdk.NotFoundError,
  AnthropicSdk.ContentTooLargeError,
  AnthropicSdk.RateLimitError,
  // Before its parent, or it would never be found.
  AnthropicSdk.ServiceUnavailableError,
  AnthropicSdk.InternalServerError,
];

function fromHeaders(headers: Headers): Pick<ToldByError, 'reason' | 'retryAfter' | 'shouldRetry'> {
  return {
    reason: headers.get('headgate-reason'),
    retryAfter: headers.get('retry-after'),
    shouldRetry: headers.get('x-should-retry'),
  };
}

/** Gemini's SDK shows no headers; the reason stands in the body's details. */
function geminiReason(message: string): string | null {
  return /"reason":"([a-z_]+)","domain":"headgate"/.exec(message)?.[1] ?? null;
}

/** Reads an error of any of the SDKs. */
function reportedByError(error: unknown): ToldByError {
  if (error instanceof OpenAI.APIError || error instanceof AnthropicSdk.APIError) {
    const kinds = [...OPENAI_KINDS, ...ANTHROPIC_KINDS];
    return {
      kind: kinds.find((kind) => error instanceof kind)?.name ?? null,
      status: error.status,
      ...fromHeaders(error.headers ?? new Headers()),
      body: JSON.stringify(error.error),
    };
  }
  if (APICallError.isInstance(error)) {
    return {
      kind: 'APICallError',
      status: error.statusCode,
      ...fromHeaders(new Headers(error.responseHeaders)),
      body: error.responseBody ?? '',
    };
  }
  // What the AI SDK throws after its last try.
  if (RetryError.isInstance(error)) return reportedByError(error.lastError);
  if (error instanceof ApiError) {
    const { status, message } = error;
    return { kind: 'ApiError', status, reason: geminiReason(message), body: message };
  }
  throw error;
}

/** Runs a call that has to fail, and reads its error. */
export async function errorOf(call: Promise<unknown>): Promise<ToldByError> {
  let result: unknown;
  try {
    result = await call;
  } catch (error) {
    return reportedByError(error);
  }
  throw new Error(`The call did not fail: ${JSON.stringify(result)}`);
}
