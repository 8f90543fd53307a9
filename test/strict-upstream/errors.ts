import type { StrictDialect } from './settings.ts';

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

/** A provider's error body for a status, in the call's dialect. */
export function errorBody(dialect: StrictDialect, status: number): unknown {
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

/** How calls are refused whose region is not served. */
export function regionError(dialect: StrictDialect): { status: number; body: unknown } {
  if (dialect === 'gemini') {
    const message = 'User location is not supported for the API use.';
    return { status: 400, body: { error: { code: 400, message, status: 'FAILED_PRECONDITION' } } };
  }
  const message = 'Country, region, or territory not supported';
  const code = 'unsupported_country_region_territory';
  return { status: 403, body: openaiError('request_forbidden', code, message) };
}
