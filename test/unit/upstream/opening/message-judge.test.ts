// The beginning and the end of a stream in Amazon's messages: what precedes the content, and exceptions inside it.
import { describe, expect, test } from 'vitest';
import { StreamEnd, OpeningReader } from '../../../../src/upstream/opening/opening-reader.ts';
import type { Judgement } from '../../../../src/upstream/opening/judge-record.ts';
import { encode, exception, messages, wrapped } from '../usage/frames.ts';

const THROTTLED = exception('throttlingException', '{"message":"Too many tokens, please wait."}');
const START: readonly [string, string] = ['messageStart', '{"p":"ab","role":"assistant"}'];
const TEXT: readonly [string, string] = [
  'contentBlockDelta',
  '{"contentBlockIndex":0,"delta":{"text":"Hi"}}',
];

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

function inPieces(bytes: Uint8Array, size: number): Judgement {
  const reader = new OpeningReader('messages');
  for (let at = 0; at < bytes.length; at += size) {
    const judgement = reader.push(bytes.slice(at, at + size));
    if (judgement !== 'prelude') return judgement;
  }
  return 'prelude';
}

describe.each([1, 7, 10_000])('in pieces of %i bytes', (size) => {
  test.each<[string, Uint8Array, Judgement]>([
    ['the start of a message', messages([START]), 'prelude'],
    ['a part of a message', messages([TEXT]).subarray(0, -1), 'prelude'],
    [
      'an empty block and an empty delta',
      messages([
        START,
        ['contentBlockStart', '{"contentBlockIndex":0,"start":{}}'],
        ['contentBlockDelta', '{"contentBlockIndex":0,"delta":{"text":""}}'],
        ['contentBlockDelta', '{"delta":{"reasoningContent":{"text":""}}}'],
      ]),
      'prelude',
    ],
    [
      'the start of a model’s own message',
      messages([wrapped('{"type":"message_start","message":{"content":[]}}')]),
      'prelude',
    ],
    ['text', messages([START, TEXT]), 'content'],
    [
      'a call of a tool',
      messages([['contentBlockStart', '{"start":{"toolUse":{"name":"f","toolUseId":"t"}}}']]),
      'content',
    ],
    ['an end', messages([['messageStop', '{"stopReason":"end_turn"}']]), 'content'],
    [
      'text of a model',
      messages([
        wrapped('{"type":"content_block_delta","delta":{"type":"text_delta","text":"H"}}'),
      ]),
      'content',
    ],
    ['what is no message', encode('{"error":"no such thing"}'), 'content'],
  ])('%s', (_, bytes, expected) => {
    expect(inPieces(bytes, size)).toBe(expected);
  });

  test.each([
    'throttlingException',
    'modelStreamErrorException',
    'serviceUnavailableException',
    'internalServerException',
    'modelTimeoutException',
    'validationException',
  ])('%s behind the start of a message', (name) => {
    const failed = joined(messages([START]), exception(name, '{"message":"no"}'));
    expect(inPieces(failed, size)).toEqual({
      error: JSON.stringify({ __type: name, message: 'no' }),
    });
  });

  test('an error of the model in its own event', () => {
    const event = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';
    expect(inPieces(messages([wrapped(event)]), size)).toEqual({ error: event });
  });

  test('an exception that ends a stream', () => {
    const all = joined(messages([START, ...Array.from({ length: 90 }, () => TEXT)]), THROTTLED);
    const end = new StreamEnd('messages', false);
    for (let at = 0; at < all.length; at += size) end.push(all.slice(at, at + size));
    expect(end.read()).toEqual({
      error: expect.stringContaining('throttlingException'),
      isAfterContent: true,
    });
  });
});

test('an exception before the first content is not one after content', () => {
  const end = new StreamEnd('messages', false);
  end.push(joined(messages([START]), THROTTLED));
  expect(end.read()).toMatchObject({ isAfterContent: false });
});

test('a stream without an exception ends well', () => {
  const end = new StreamEnd('messages', false);
  end.push(messages([START, TEXT, ['messageStop', '{}'], ['metadata', '{"usage":{}}']]));
  expect(end.read()).toBeNull();
});
