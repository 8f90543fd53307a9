import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { StreamEnd, type AnswerForm } from '../../../../src/upstream/opening/opening-reader.ts';

// The error with which a stream ends, found in the last of what passed.

const encoder = new TextEncoder();
const CHUNK = `data: ${JSON.stringify({ choices: [{ delta: { content: 'x'.repeat(40) } }] })}\n\n`;
const ERROR = 'data: {"error":{"code":502,"message":"Provider returned error"}}\n\n';

function endOf(pieces: readonly string[], form: AnswerForm = 'events', isResponses = false) {
  const end = new StreamEnd(form, isResponses);
  for (const piece of pieces) end.push(encoder.encode(piece));
  return end.read();
}

const LONG = { instructions: 'Be brief. '.repeat(900) };
const FAILED = JSON.stringify({
  type: 'response.failed',
  response: { status: 'failed', error: { code: 'server_error', message: 'no' }, ...LONG },
});

test('the finish reason of a choice may be the error', () => {
  const choice = { delta: { content: '' }, finish_reason: 'insufficient_system_resource' };
  const usage = { choices: [], usage: { total_tokens: 3 } };
  const text = [{ choices: [choice] }, usage].map((one) => `data: ${JSON.stringify(one)}\n\n`);
  expect(endOf([CHUNK, ...text, 'data: [DONE]\n\n'])).toEqual({
    error: '{"error":{"code":"overloaded"}}',
    isAfterContent: true,
  });
});

describe('an error ends a stream', () => {
  test.each<[string, readonly string[]]>([
    ['in one piece', [CHUNK + ERROR]],
    ['before the mark of the end', [CHUNK, ERROR, 'data: [DONE]\n\n']],
    ['after much', [...Array.from({ length: 200 }, () => CHUNK), ERROR]],
    ['in pieces', [CHUNK, ERROR.slice(0, 20), ERROR.slice(20, 41), ERROR.slice(41)]],
    ['in one large piece', [CHUNK.repeat(200) + ERROR]],
    ['before the usage', [CHUNK, ERROR, 'data: {"choices":[],"usage":{"total_tokens":3}}\n\n']],
  ])('%s', (_, pieces) => {
    expect(endOf(pieces)).toMatchObject({
      error: expect.stringContaining('502'),
      isAfterContent: true,
    });
  });

  test('of a response, which repeats a long request', () => {
    const created = 'event: response.created\ndata: {"type":"response.created"}\n\n';
    const late = endOf([created, `event: response.failed\ndata: ${FAILED}\n\n`], 'events', true);
    expect(late?.error).toBe('{"error":{"code":"server_error","message":"no"}}');
  });

  test('of lines', () => {
    const line = '{"message":{"content":"Hi"},"done":false}\n';
    expect(endOf([line, '{"error":"stopped"}\n'], 'lines')).toMatchObject({ isAfterContent: true });
  });

  test('without any content before it', () => {
    expect(endOf([': hi\n\n', ERROR])).toMatchObject({ isAfterContent: false });
  });
});

test.each<[string, string, AnswerForm]>([
  ['Gemini’s array', '[{"candidates":[1]}\n,\n{"error": {"code":503}}\n]\n', 'json'],
  ['an event without a type', `${CHUNK}${ERROR}`, 'text'],
  ['JSON on several lines behind spaces', '\n  \n{\n "error": {\n "code": 502\n }\n}', 'json'],
  ['a choice', `${CHUNK}data: {"choices":[{"error":{"code":503}}]}\n\n`, 'events'],
])('an error ends a stream in the form of %s', (_, text, form) => {
  expect(endOf([text], form)).toMatchObject({ error: expect.stringMatching(/50[23]/) });
});

test('tool arguments in the last element of an array are no error', () => {
  const parts = [{ functionCall: { name: 'f', args: { list: [{ error: { code: 429 } }] } } }];
  const text = `[${JSON.stringify({ candidates: [{ content: { parts } }] })}`;
  expect(endOf([text, '\n]\n'], 'json')).toBeNull();
  const args = { error: { code: 429, message: 'Rate limit' } };
  const last = { candidates: [{ content: { parts: [{ functionCall: { name: 'f', args } }] } }] };
  expect(endOf([JSON.stringify([last, last])], 'json')).toBeNull();
});

test.each<[string, readonly string[]]>([
  ['nothing', []],
  ['content', [CHUNK, 'data: [DONE]\n\n']],
  ['an error before content', [ERROR, CHUNK]],
  [
    'content that quotes one',
    [`data: ${JSON.stringify({ choices: [{ delta: { content: ERROR } }] })}\n\n`],
  ],
])('%s is no error at the end', (_, pieces) => {
  expect(endOf(pieces)).toBeNull();
});

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const)('an error ends a stream in %s', async (packing, pack) => {
  const packed = pack(encoder.encode(CHUNK.repeat(200) + ERROR));
  const end = new StreamEnd('events', false, [packing]);
  for (let at = 0; at < packed.length; at += 50) end.push(packed.subarray(at, at + 50));
  await end.caughtUp();
  expect(end.read()).toMatchObject({
    error: expect.stringContaining('502'),
    isAfterContent: true,
  });
});
