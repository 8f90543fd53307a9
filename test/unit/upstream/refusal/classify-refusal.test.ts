import { describe, expect, test } from 'vitest';
import { COMMON_HEADERS } from '../../../../src/upstream/refusal/limit-headers.ts';
import { classifyRefusal, mayRefuse } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { COMMON_ROWS } from '../../../../src/upstream/refusal/refusal-table.ts';
import { answer } from '../../providers/seen-refusal.ts';

describe('what is no refusal', () => {
  test.each([201, 301, 401, 404, 408, 409, 422])('status %i, whatever its body', (status) => {
    const body = '{"error":{"type":"insufficient_quota","message":"concurrency, RPM, overloaded"}}';
    expect(classifyRefusal(answer({ status, body }))).toBeNull();
  });

  test.each([400, 403])('status %i without a code that says so', (status) => {
    const body = '{"error":{"type":"invalid_request_error","message":"insufficient balance, RPM"}}';
    expect(classifyRefusal(answer({ status, body }))).toBeNull();
  });

  test.each(['minimax', 'zai'])('a 200 of %s that answers', (upstreamId) => {
    const body =
      '{"id":"1302","code":"ok","choices":[{"message":{"content":"concurrency","code":"1302"}}],"base_resp":{"status_code":0,"status_msg":""}}';
    expect(classifyRefusal(answer({ upstreamId, status: 200, body }))).toBeNull();
  });

  test('a 200 of others with a code of Z.ai', () => {
    const body = '{"error":{"code":"1302"}}';
    expect(classifyRefusal(answer({ status: 200, body }))).toBeNull();
  });
});

describe('which answers are looked at', () => {
  test.each([
    [200, false],
    [404, false],
    [400, true],
    [402, true],
    [403, true],
    [409, true],
    [413, true],
    [429, true],
    [500, true],
    [529, true],
  ])('status %i: %s', (status, expected) => {
    expect(mayRefuse(status)).toBe(expected);
  });
});

describe('codes', () => {
  test('are those of their provider alone', () => {
    const body = '{"error":{"code":"1302","message":"no"}}';
    expect(classifyRefusal(answer({ body }))?.signal.kind).toBe('unknown');
    expect(classifyRefusal(answer({ body, upstreamId: 'zai' }))?.signal.kind).toBe('concurrency');
  });

  test('are not looked for in messages, ids and what is echoed', () => {
    const body = JSON.stringify({
      error: {
        message: 'slow_down insufficient_quota tokens requests 1302 1113',
        param: 'queue_exceeded',
      },
      request_id: 'req_1302',
      request: { messages: [{ role: 'user', content: 'concurrency', code: '1302' }] },
    });
    expect(classifyRefusal(answer({ body, upstreamId: 'zai' }))?.signal.kind).toBe('unknown');
  });

  test('of the table are in lower case, as they are compared', () => {
    const codes = COMMON_ROWS.flatMap((row) => row.codes ?? []);
    expect(codes).toEqual(codes.map((code) => code.toLowerCase()));
  });
});

describe('the hints of a refusal', () => {
  const headers = new Headers({ 'x-ratelimit-remaining-requests': '0' });

  test('are those of the upstream’s profile', () => {
    const hints = [{ dimension: 'requests', remaining: 0 }];
    expect(classifyRefusal(answer({ headers }))?.signal.hints).toMatchObject(hints);
    expect(classifyRefusal(answer({ headers, upstreamId: 'mine' }))?.signal.hints).toEqual([]);
  });

  test('are those of another profile where one is given', () => {
    const given = { upstreamId: 'mine', headers };
    const headerProfile = {
      ...COMMON_HEADERS,
      isReliable: true,
      source: 'me',
      date: '2026-11-20',
    };
    expect(classifyRefusal(answer({ ...given, headerProfile }))?.signal.hints).toHaveLength(1);
    const none = { ...given, upstreamId: 'openai', headerProfile: null };
    expect(classifyRefusal(answer(none))?.signal.hints).toEqual([]);
  });
});
