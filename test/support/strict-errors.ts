import type { StrictRoute } from './strict-route.ts';
import type { RefusalStyle } from './strict-settings.ts';

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

const GEMINI_STATUS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
};

const REQUEST_ID = 'req_strict0000000000000000';

const anthropicError = (type: string, message: string): unknown => ({
  type: 'error',
  error: { type, message },
  request_id: REQUEST_ID,
});

const openaiError = (type: string, code: string | null, message: string): unknown => ({
  error: { message, type, param: null, code },
});

/** The body with which a provider refuses a call because too many are in flight. */
export function refusalBody(style: RefusalStyle, model: string | null, limit: number): unknown {
  switch (style) {
    case 'openai':
      return openaiError(
        'requests',
        'rate_limit_exceeded',
        `Rate limit reached for ${model ?? 'this model'} in organization org-strict on concurrent requests: Limit ${limit}, Used ${limit}, Requested 1. Please try again later.`,
      );
    case 'anthropic':
      return anthropicError(
        'rate_limit_error',
        'Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales.',
      );
    case 'gemini':
      return {
        error: {
          code: 429,
          message: `Too many concurrent requests for ${model ?? 'this model'}: the limit is ${limit}.`,
          status: 'RESOURCE_EXHAUSTED',
        },
      };
    case 'azure':
      return {
        error: {
          code: '429',
          message: `Requests to the ChatCompletions_Create Operation under Azure OpenAI API have exceeded the concurrent request limit of ${limit}. Please retry after 1 second.`,
        },
      };
    case 'bedrock':
      return { message: 'Too many concurrent requests, please wait before trying again.' };
    case 'ollama':
      return { error: 'too many concurrent requests' };
    case 'kimi':
      return {
        error: {
          message: `Your account org-strict<ak-strict> request reached max organization concurrency: ${limit}, please try again after 1 seconds`,
          type: 'rate_limit_reached_error',
        },
      };
    case 'zai':
      return {
        error: {
          code: '1302',
          message:
            'High concurrency usage of this API, please reduce concurrency or contact customer service to increase limits',
        },
      };
  }
}

/** A provider's error body for a status, in the call's dialect. */
export function errorBody(dialect: StrictRoute['dialect'], status: number): unknown {
  const message = `The strict upstream was asked to answer ${status}.`;
  switch (dialect) {
    case 'anthropic':
      return anthropicError(ANTHROPIC_TYPES[status] ?? 'api_error', message);
    case 'gemini':
      return { error: { code: status, message, status: GEMINI_STATUS[status] ?? 'INTERNAL' } };
    case 'ollama':
      return { error: message };
    case 'bedrock':
      return { message };
    case 'openai':
    case 'azure':
      if (status === 429) return openaiError('requests', 'rate_limit_exceeded', message);
      return openaiError(status >= 500 ? 'server_error' : 'invalid_request_error', null, message);
  }
}
