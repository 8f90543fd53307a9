// The models that any parser finds in a message of a session, and messages that cannot be read reliably.
import { describe, expect, it } from 'vitest';
import {
  beginsObject,
  mayNameModel,
  readFrameModels,
} from '../../../../src/upstream/socket/messages.ts';

describe('the models of a message', () => {
  it.each([
    ['{"setup":{"model":"models/live-1"}}', ['models/live-1'], []],
    ['{"setup":{"mod\\u0065l":"a"}}', ['a'], []],
    ['\ufeff{"setup":{"model":"a"}}', ['a'], []],
    ['{"type":"session.update","session":{"model":"a"}}', ['a'], []],
    ['{"type":"response.create","response":{"model":"a"},"model":"b"}', ['a', 'b'], []],
    ['{"session":{"input_audio_transcription":{"model":"w"}}}', [], ['w']],
    ['{"session":{"audio":{"input":{"transcription":{"model":"w"}}}}}', [], ['w']],
    ['{"session":{"model":null,"tools":[{"parameters":{"properties":{"model":{}}}}]}}', [], []],
    ['{"item":{"content":[{"model":"none"}]}}', [], []],
    ['{"response":{"input":[{"model":"none"}]}}', [], []],
    ['{}', [], []],
  ])('%s', (text, main, beside) => {
    expect(readFrameModels(text)).toMatchObject({ kind: 'read', main, beside });
  });

  it.each([
    '{"setup":{"model":"a"},"setup":{"model":"b"}}',
    '{"setup":{"model":"a","model":"b"}}',
    '{"Setup":{"model":"a"}}',
    '{"bidiGenerateContentSetup":{"model":"a"}}',
    '{"\u017fetup":{"model":"a"}}',
    '{"setup":{"Model":"a"}}',
    '{"setup":{"model":["a"]}}',
    '{"setup":{"model":{"name":"a"}}}',
    '{"setup":{"model":"a,b"}}',
    `{"setup":{"model":"${'a'.repeat(1_100)}"}}`,
    '{"models":["a"]}',
    '{"session":{"fallbacks":["a"]}}',
    '{setup:{"model":"a"}}',
    "{'setup':{'model':'a'}}",
    '/**/{"setup":{"model":"a"}}',
    '{"setup":/**/{"model":"a"}}',
    '{"setup":{"model":"a"}}{"setup":{"model":"b"}}',
    '{"setup":{"model":"a"}',
    '[{"setup":{"model":"a"}}]',
    '{"s\\xetup":1}',
    '',
  ])('cannot be read reliably: %s', (text) => {
    expect(readFrameModels(text).kind).toBe('unreadable');
  });
});

describe('a message that need not be parsed', () => {
  it.each([
    ['{"type":"input_audio_buffer.append","audio":"AAAA"}', false],
    ['{"realtimeInput":{"text":"a \\"word\\"\\n"}}', false],
    ['{"session":{"Model":"a"}}', true],
    ['{"session":{"mod\\u0065l":"a"}}', true],
    ['{"session":{"mod\\x65l":"a"}}', true],
    ['{"\u017fetup":{}}', true],
    ['{\0"\0', true],
  ])('%j may name a model: %s', (text, expected) => {
    expect(mayNameModel(text)).toBe(expected);
  });

  it.each([
    [' \n{"a":1}', true],
    ['\ufeff{}', true],
    ['[{}]', false],
    ['//\n{}', false],
    ['', false],
  ])('%j is an object: %s', (text, expected) => {
    expect(beginsObject(text)).toBe(expected);
  });
});
