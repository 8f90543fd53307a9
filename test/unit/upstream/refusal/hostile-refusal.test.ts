import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { REFUSAL_BYTES_MAX } from '../../../../src/upstream/refusal/error-fields.ts';
import { answer } from '../../providers/seen-refusal.ts';

describe('a body that was cut', () => {
  const long = 'x'.repeat(REFUSAL_BYTES_MAX);

  test.each([
    ['in its message', `{"error":{"code":"queue_exceeded","message":"${long}"}}`, 'overload'],
    ['in its message, whose words tell', `{"error":{"message":"on RPM ${long}"}}`, 'requests'],
    ['in another field', `{"error":{"type":"tokens","message":"m"},"x":"${long}"}`, 'tokens'],
    ['in a list', `[{"error":{"type":"tokens","list":[${'1,'.repeat(5_000)}1]}}]`, 'tokens'],
  ])('%s is read as far as it goes', (_, body, kind) => {
    const read = body.slice(0, REFUSAL_BYTES_MAX);
    expect(() => JSON.parse(read)).toThrow(SyntaxError);
    expect(classifyRefusal(answer({ body: read }))?.signal.kind).toBe(kind);
  });

  test('anywhere is still a refusal, and its code counts as soon as it is whole', () => {
    const body =
      '{"error":{"code":"token_quota_exceeded","message":"a \\u00e9 \\" b","n":[1,{"x":true}]}}';
    const codeEnd = body.indexOf(',"message"');
    for (let length = 0; length <= body.length; length += 1) {
      const kind = classifyRefusal(answer({ body: body.slice(0, length) }))?.signal.kind;
      expect(kind).toBe(length < codeEnd - 1 ? 'unknown' : 'tokens');
    }
  });

  test('is not looked at beyond the bound', () => {
    const body = `${' '.repeat(REFUSAL_BYTES_MAX)}{"error":{"type":"tokens"}}`;
    expect(classifyRefusal(answer({ body }))?.signal.kind).toBe('unknown');
  });
});

describe('whatever an upstream writes', () => {
  const upstreamId = fc.constantFrom('openai', 'zai', 'minimax', 'gemini', 'aws', '__proto__', '');
  const status = fc.oneof(
    fc.constantFrom(200, 400, 402, 413, 429, 503, 529),
    fc.integer({ min: 200, max: 599 }),
  );
  const key = fc.constantFrom(
    'error',
    'errors',
    'code',
    'type',
    'message',
    'details',
    'metadata',
    'headers',
    'raw',
    'base_resp',
    '__proto__',
  );
  const { tree } = fc.letrec((tie) => ({
    leaf: fc.oneof(
      fc.string(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom(
        '(1002)',
        'try again in 1',
        'resets oct 99, 13pm (A/B)',
        'resets feb 30',
        'try again at 99:99 utc',
        '2026-99-99 99:99:99',
        '{"error":',
      ),
    ),
    tree: fc.oneof(
      { maxDepth: 6 },
      tie('leaf'),
      fc.array(tie('tree')),
      fc.dictionary(key, tie('tree')),
    ),
  }));
  const body = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => new TextDecoder().decode(bytes)),
    fc.tuple(tree, fc.nat({ max: 400 })).map(([value, cut]) => JSON.stringify(value).slice(0, cut)),
  );
  const header = fc.constantFrom(
    'retry-after',
    'retry-after-ms',
    'x-ms-retry-after-ms',
    'x-amzn-errortype',
    'x-ratelimit-remaining-requests',
    'x-ratelimit-reset-requests',
  );
  const value = fc.oneof(
    fc.constantFrom(
      '-1',
      '1e999',
      '99999999999999999999',
      '1h',
      'Wed, 99 Foo 2026',
      '2026-13-45T00:00:00Z',
    ),
    fc.string({
      unit: fc.constantFrom('0', '1', '9', '.', '-', ':', ' ', 'h', 'm', 's', 'T', 'Z', 'é'),
      maxLength: 80,
    }),
  );

  test('it is classified or not, without an error, and its delay is a time', () => {
    fc.assert(
      fc.property(
        upstreamId,
        status,
        body,
        fc.dictionary(header, value),
        (id, code, text, pairs) => {
          const headers = new Headers(pairs);
          const found = classifyRefusal(
            answer({ upstreamId: id, status: code, headers, body: text }),
          );
          const delay = found?.signal.retryAfterMs ?? 0;
          expect(Number.isInteger(delay) && delay >= 0).toBe(true);
          expect(found !== null || (code !== 429 && code < 500)).toBe(true);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  // Were any of these quadratic, one round would take a minute and the test would run out of time.
  test('no body takes long', () => {
    const hostile = [
      '[',
      '{"error":',
      '{"a":[',
      '\\',
      '"',
      'try again in ',
      'retry in 1s',
      '1m',
      ' ',
      '(1002',
      'per ',
      'fewer max_tokens',
      'quota exceeded for metric: a',
      '2026-10-06 ',
      'resets oct 9, ',
      'resets tomorrow ',
      '3 个',
      'retry_delay {',
      '{"message":"{\\"message\\":',
    ];
    for (const piece of hostile) {
      for (const start of ['', '{"error":{"message":"', 'try again in ', '[[[']) {
        const text = start + piece.repeat(1_000_000 / piece.length);
        for (let round = 0; round < 20; round += 1) {
          expect(classifyRefusal(answer({ body: text, upstreamId: 'minimax' }))).not.toBeNull();
        }
      }
    }
  });
});
