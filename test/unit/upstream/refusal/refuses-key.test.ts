import { describe, expect, it } from 'vitest';
import { classifyRefusal, mayRefuse } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { answer } from '../../providers/seen-refusal.ts';

/** Which answers blame the key of a member. */

function kindOf(status: number, error: unknown, isOfMember = true): string | null {
  const body = JSON.stringify({ error });
  return classifyRefusal({ ...answer({ status, body }), isOfMember })?.signal.kind ?? null;
}

describe('a key that is not accepted is told', () => {
  it.each<[string, number, unknown]>([
    [
      'OpenAI, unknown',
      401,
      { message: 'Incorrect API key provided: sk-…', code: 'invalid_api_key' },
    ],
    [
      'OpenAI, deactivated',
      401,
      { message: 'The account has been deactivated.', code: 'account_deactivated' },
    ],
    ['Anthropic', 401, { type: 'authentication_error', message: 'invalid x-api-key' }],
    [
      'Anthropic, a token',
      403,
      {
        type: 'permission_error',
        message: 'OAuth token has been revoked. Please obtain a new token.',
      },
    ],
    [
      'Azure',
      401,
      {
        code: '401',
        message: 'Access denied due to invalid subscription key or wrong API endpoint.',
      },
    ],
    [
      'Gemini',
      400,
      {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'API key not valid.',
        details: [{ reason: 'API_KEY_INVALID' }],
      },
    ],
    [
      'Gemini, suspended',
      403,
      {
        status: 'PERMISSION_DENIED',
        message: 'Consumer has been suspended.',
        details: [{ reason: 'CONSUMER_SUSPENDED' }],
      },
    ],
    [
      'Gemini, leaked',
      403,
      {
        status: 'PERMISSION_DENIED',
        message: 'Your API key was reported as leaked. Please use another API key.',
      },
    ],
    [
      'Anthropic, an organization',
      400,
      { type: 'invalid_request_error', message: 'This organization has been disabled.' },
    ],
    [
      'xAI',
      400,
      'Incorrect API key provided: sk***YA. You can obtain an API key from https://console.x.ai.',
    ],
    [
      'Bedrock, a key',
      403,
      { message: 'Authentication failed: Please make sure your API Key is valid.' },
    ],
    ['a gateway', 403, { message: 'This API key has been disabled.' }],
    ['another', 403, { message: 'Invalid API key provided.' }],
    ['a third', 403, { message: 'The provided access token is not valid or expired.' }],
    ['whoever says no more', 401, {}],
  ])('%s', (_, status, error) => {
    expect(kindOf(status, error)).toBe('unauthorized');
  });

  it('in a way that no wait helps', () => {
    const said = classifyRefusal({ ...answer({ status: 401, body: '' }), isOfMember: true });
    expect(said).toMatchObject({
      isFinal: true,
      scope: 'upstream',
      signal: { retryAfterMs: null },
    });
  });
});

describe('it is not the key', () => {
  it.each<[string, number, unknown]>([
    [
      'a call that is not allowed',
      403,
      { message: 'Your project does not have access to this model.' },
    ],
    [
      'an organisation of the caller',
      401,
      {
        message: 'OpenAI-Organization header should match organization for API key',
        code: 'mismatched_organization',
      },
    ],
    [
      'a route that the key is not for',
      401,
      {
        message:
          'You have insufficient permissions for this operation. Missing scopes: model.request',
      },
    ],
    ['words of the caller, quoted', 403, { message: 'No access to the model "api key revoked".' }],
    ['words of the caller in a 400', 400, { message: 'unknown role: api key revoked' }],
    ['a key that the call holds, for a tool', 400, { message: 'The access token is invalid.' }],
    ['a parameter', 400, { message: 'Invalid value for max_tokens', code: 'invalid_value' }],
  ])('%s', (_, status, error) => {
    expect(kindOf(status, error)).toBeNull();
  });

  it.each<[string, number, unknown, string]>([
    ['an empty account', 403, { code: 'insufficient_quota', message: 'API key disabled' }, 'quota'],
    ['the region', 403, { code: 'unsupported_country_region_territory' }, 'egress'],
  ])('%s', (_, status, error, kind) => {
    expect(kindOf(status, error)).toBe(kind);
  });
});

it.each([400, 401, 403])('nothing of it is said of another key: %s', (status) => {
  expect(kindOf(status, { code: 'invalid_api_key', message: 'API key revoked' }, false)).toBeNull();
});

it('a 401 is worth its body with the key of a member alone', () => {
  expect([mayRefuse(401, true), mayRefuse(401)]).toEqual([true, false]);
});
