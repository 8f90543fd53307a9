// The media type of an upstream's answer decides how it is read; words in its parameters do not count.
import { describe, expect, it } from 'vitest';
import { isJson, isRunStream } from '../../../src/call/answer/hold-run.ts';

const answer = (type: string): Response => new Response('x', { headers: { 'content-type': type } });

describe.each<[type: string, isOfJson: boolean, isStream: boolean]>([
  ['application/json', true, false],
  ['Application/Problem+JSON ; charset=utf-8', true, false],
  ['text/html; profile="application/json"', false, false],
  ['application/json-seq', false, false],
  ['Text/Event-Stream;charset=utf-8', false, true],
  ['application/x-ndjson', false, true],
  ['text/event-stream-like', false, false],
  ['text/html; x="text/event-stream"', false, false],
])('%s', (type, isOfJson, isStream) => {
  it('is read by its media type', () => {
    expect([isJson(answer(type)), isRunStream(answer(type))]).toEqual([isOfJson, isStream]);
  });
});
