import { describe, expect, test } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import type { UpstreamAnswer } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { answer, NOW, type SeenAnswer } from '../../providers/seen-refusal.ts';

function withMessage(message: string, changes: Partial<SeenAnswer> = {}): UpstreamAnswer {
  return answer({ body: JSON.stringify({ error: { message } }), ...changes });
}

describe('the delay', () => {
  const message = 'Rate limit (RPM). Please try again in 5s.';
  const reset = {
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '6s',
  };
  const google = {
    details: [{ retryDelay: '4s' }],
    metadata: { headers: { 'X-RateLimit-Reset': String(NOW + 5_500) } },
  };
  const all = {
    'retry-after-ms': '1000',
    'x-ms-retry-after-ms': '2000',
    'retry-after': '3',
    ...reset,
  };

  test.each([
    ['retry-after-ms', [], message, 1_000],
    ['x-ms-retry-after-ms', ['retry-after-ms'], message, 2_000],
    ['retry-after', ['retry-after-ms', 'x-ms-retry-after-ms'], message, 3_000],
  ] as const)('is that of %s first', (_, without, text, expected) => {
    const headers = new Headers(all);
    for (const name of without) headers.delete(name);
    const body = JSON.stringify({ error: { message: text, ...google } });
    expect(classifyRefusal(answer({ headers, body }))?.signal.retryAfterMs).toBe(expected);
  });

  test.each([
    ['RetryInfo', { message, ...google }, 4_000],
    ['the text', { message, metadata: google.metadata }, 5_000],
    ['the reset in the metadata', { message: 'RPM', metadata: google.metadata }, 5_500],
    ['the reset of the dimension', { message: 'RPM' }, 6_000],
  ])('then that of %s', (_, error, expected) => {
    const seen = { headers: new Headers(reset), body: JSON.stringify({ error }) };
    expect(classifyRefusal(answer(seen))?.signal.retryAfterMs).toBe(expected);
  });

  test.each([
    ['try again in 1m2.3s', 62_300],
    ['Please try again in 20ms.', 20],
    ['retry after 4 seconds', 4_000],
    ['Please retry in 15.06s.', 15_060],
    ['Please retry your request in 2 minutes', 120_000],
    ['try again in 6 minutes and 5 seconds', 365_000],
    ['try again in 1 hour', 3_600_000],
    ['try again in 1 day', 86_400_000],
    ['try again in a while. Try again in 3s', 3_000],
    ['try again in 3 sheep', null],
    ['try again later', null],
    ['try again after 2026', null],
    ['resets at 2026-10-06 13:00:00', null],
    ['resets at 2026-10-06T13:00:00Z', 3_600_000],
    ['resets at 2026-10-06 13:00:00+01:00', 0],
  ])('of "%s" is %s', (text, expected) => {
    expect(classifyRefusal(withMessage(text))?.signal.retryAfterMs).toBe(expected);
  });

  test('of a rate of minutes that is longer than any client waits makes it a long window', () => {
    const ten = classifyRefusal(
      withMessage('RPM', { headers: new Headers({ 'retry-after': '600' }) }),
    );
    expect(ten).toMatchObject({
      signal: { kind: 'requests', retryAfterMs: 600_000 },
      isFinal: false,
    });
    const more = classifyRefusal(
      withMessage('RPM', { headers: new Headers({ 'retry-after': '601' }) }),
    );
    expect(more).toMatchObject({
      signal: { kind: 'long_window', retryAfterMs: 601_000 },
      isFinal: true,
    });
  });

  test('of an overload may be as long as it likes', () => {
    const headers = new Headers({ 'retry-after': '3600' });
    const found = classifyRefusal(answer({ status: 503, headers }));
    expect(found).toMatchObject({
      signal: { kind: 'overload', retryAfterMs: 3_600_000 },
      isFinal: false,
    });
  });

  test('of a dimension is not that of another', () => {
    const headers = new Headers(reset);
    expect(classifyRefusal(withMessage('TPM', { headers }))?.signal.retryAfterMs).toBeNull();
    expect(
      classifyRefusal(withMessage('concurrency', { headers }))?.signal.retryAfterMs,
    ).toBeNull();
  });

  test('of two dimensions that are used up is the longer', () => {
    const headers = new Headers({
      ...reset,
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '9s',
    });
    expect(classifyRefusal(withMessage('no', { headers }))?.signal.retryAfterMs).toBe(9_000);
  });
});
