import { describe, expect, it, test } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { REFUSAL_BYTES_MAX } from '../../../../src/upstream/refusal/error-fields.ts';
import {
  isInWords,
  isSentence,
  withoutQuoted,
} from '../../../../src/upstream/refusal/refusal-words.ts';
import { answer } from '../../providers/seen-refusal.ts';

/** Names that callers give, which come back in messages and say nothing there: of no key, no address and no account. */

/** JSON that never ends. */
const OPEN_JSON = '{"error":{"code":"invalid_api_key","x":"';

/** Names of a model, a tool or a parameter by which a caller would be taken for its provider. */
const NAMES = [
  'country, region, or territory not supported',
  'User location is not supported for the API use.',
  'request not allowed',
  'api key revoked',
  'This API key has been disabled.',
  'OAuth token has been revoked. Please obtain a new token.',
  'This organization has been disabled.',
  'Incorrect API key provided: sk-1. You can obtain an API key from https://console.x.ai.',
  'Your credit balance is too low to access the Anthropic API.',
  'error code: 1020',
  '{"error":{"code":"insufficient_quota"}}',
  '{"error":{"code":"unsupported_country_region_territory"}}',
  '{"error":{"code":"invalid_api_key"}}',
  OPEN_JSON,
  '{"cloudflare_error":true,"error_code":1010}',
] as const;

/** Messages around a name. */
const AROUND: readonly ((name: string) => string)[] = [
  (name) => `Unknown model: ${name}`,
  (name) => `${name} is not a valid model ID`,
  (name) => `${name}: no such model`,
  (name) => `The model "${name}" does not exist.`,
  (name) => `The model '${name}' does not exist or you do not have access to it.`,
  (name) => `The model \`${name}\` does not exist`,
  (name) => `The model “${name}” does not exist`,
  (name) => `The model «${name}» does not exist`,
  (name) => `The model (${name}) does not exist`,
  (name) => `The model does not exist:\n${name}\nSee the list of models.`,
  (name) => `Can't use '${name}`,
  (name) => `It isn't allowed: '${name}', nor is 'x'`,
  (name) => `Unknown tool 'x' ${name} 'y' in the call's tools`,
  (name) => `Invalid value for \`x\`: \`x\` ${name} \`y\``,
];

/** How a body carries a message. */
const BODIES: readonly ((message: string) => string)[] = [
  (message) =>
    JSON.stringify({ error: { message, type: 'invalid_request_error', param: 'model' } }),
  (message) => JSON.stringify({ type: 'error', error: { type: 'forbidden', message } }),
  (message) => JSON.stringify([{ error: { code: 400, message, status: 'FAILED_PRECONDITION' } }]),
  (message) => JSON.stringify({ error: message }),
  (message) => JSON.stringify({ error: { message: JSON.stringify({ error: { message } }) } }),
  (message) => message,
];

function kindOf(body: string, status: number, upstreamId = 'anthropic'): string | null {
  const given = answer({ status, body, upstreamId });
  return classifyRefusal({ ...given, isOfMember: true })?.signal.kind ?? null;
}

describe.each(NAMES)('a caller that names something: %s', (name) => {
  test.each([400, 403, 409])('is not believed in a %i', (status) => {
    for (const around of AROUND) {
      for (const bodyOf of BODIES) {
        const body = bodyOf(around(name));
        // Without a field around it, it is the same as an answer that was cut.
        if (body.startsWith(OPEN_JSON)) continue;
        expect([body, kindOf(body, status)]).toEqual([body, null]);
      }
    }
  });

  test('is not believed where the answer is cut behind it', () => {
    const open = JSON.stringify({ model: 'm', error: { message: `${name} is no model` } });
    const end = open.indexOf(' is no model');
    const filled = `x${'x'.repeat(REFUSAL_BYTES_MAX - end)}`;
    const body = open.replace('"m"', `"${filled}"`).slice(0, REFUSAL_BYTES_MAX);
    expect(body.endsWith(JSON.stringify(name).slice(1, -1))).toBe(true);
    expect([400, 403].map((status) => kindOf(body, status))).toEqual([null, null]);
  });
});

test.each(['insufficient balance', 'You exceeded your current quota', 'credit balance'])(
  'a name in quotes empties no account: %s',
  (name) => {
    for (const quoted of [
      `'${name}'`,
      `"${name}"`,
      `\`${name}\``,
      `“${name}”`,
      `'x' ${name} 'y'`,
    ]) {
      const body = JSON.stringify({ error: { message: `You can't call ${quoted} so often` } });
      expect([quoted, kindOf(body, 429)]).toEqual([quoted, 'unknown']);
    }
  },
);

describe('pages', () => {
  const headers = new Headers({
    server: 'cloudflare',
    'content-type': 'text/html',
    'cf-ray': '9f1c74bde9f76c24-HKG',
  });

  it.each(['cf-error-details', 'Cloudflare Ray ID: 9f1c74bde9f76c23', '_cf_chl_opt = {}'])(
    'that repeat the mark of another: %s',
    (name) => {
      const body = `<html><head><title>Forbidden</title><script>x()</script></head><body>You may not see /v1/${name} here.</body></html>`;
      expect(classifyRefusal(answer({ status: 403, body, headers }))).toBeNull();
    },
  );
});

describe('a sentence', () => {
  const says = isSentence(/no\.?/, /not now/);

  it('is the whole message', () => {
    expect(['no', 'no.', 'not now'].map(says)).toEqual([true, true, true]);
    expect(['no!', 'no\nno', 'no.\n', ' no', 'not no', ''].some(says)).toBe(false);
  });
});

describe('a message in known words', () => {
  const says = isInWords(/too long/, 'the prompt is too long by tokens');

  it('has no others, in whatever order and script', () => {
    expect(says('the prompt is too long: 5 > 4 (tokens)')).toBe(true);
    expect(says('by tokens too long')).toBe(true);
    expect(says('the prompt is long')).toBe(false);
    expect(says('the model is too long')).toBe(false);
    expect(says('too long 模型')).toBe(false);
  });
});

describe('what is quoted', () => {
  it.each([
    ['no quotes', 'no quotes'],
    ["can't use it", "can't use it"],
    ["the calls' rate isn't 5", "the calls' rate isn't 5"],
    ["can't use 'x' here", "can't use   here"],
    ["can't use 'x", "can't use  "],
    ["'x' y 'z' is over", '  is over'],
    ["model 'it's' is gone", 'model   is gone'],
    ['model "a `b` c" is gone', 'model   is gone'],
    ['model `a "b" c` is gone', 'model   is gone'],
    ['model “a” is gone', 'model   is gone'],
    ['model (‘a’) is gone', 'model ( ) is gone'],
    ["model='a', key='b'.", 'model= .'],
  ])('%s', (message, left) => {
    expect(withoutQuoted(message)).toBe(left);
  });

  it('is found in a time that grows with the message', () => {
    for (const piece of ["'", "a'", "' ", '“', '`a`', '"']) {
      const message = piece.repeat(200_000);
      expect(withoutQuoted(message).length).toBeLessThanOrEqual(message.length);
    }
  });
});
