// What stands before the first event of a stream becomes part of it, wherever its bytes are cut.
import { describe, expect, test } from 'vitest';
import { Opening } from '../../../src/call/results/error-frame.ts';

const encoder = new TextEncoder();

/** Builds what a caller gets: so many fillers, and then the answer in pieces of one size. */
function behindFillers(opening: Opening, fillers: number, answer: string, size: number): string {
  const decoder = new TextDecoder();
  const bytes = encoder.encode(answer);
  let text = '';
  for (let i = 0; i < fillers; i += 1) text += decoder.decode(opening.filler(': waits\n\n'));
  for (let at = 0; at < bytes.length; at += size) {
    text += decoder.decode(opening.join(bytes.subarray(at, at + size)), { stream: true });
  }
  return text + decoder.decode(opening.end());
}

const SIZES = [1, 2, 4, 5, 6, 7, 1_000];

describe.each(SIZES)('in pieces of %i', (size) => {
  test.each([
    ['data: {"a":"ä"}\n\ndata: {"b":2}\n\n', 'data:   {"a":"ä"}\n\ndata: {"b":2}\n\n'],
    ['data:{"a":1}\r\n\r\n', 'data:  {"a":1}\r\n\r\n'],
    // Whatever else it begins with comes behind an empty event.
    ['event: x\ndata: {}\n\n', 'data:  {}\n\nevent: x\ndata: {}\n\n'],
    ['dat', 'data:  {}\n\ndat'],
    ['', 'data:  {}\n\n'],
  ])('Gemini: %j goes on in the line that was begun', (answer, expected) => {
    expect(behindFillers(new Opening('gemini'), 2, answer, size)).toBe(expected);
  });

  test('elsewhere the fillers are comments, and the answer is untouched', () => {
    const text = behindFillers(new Opening('openai'), 2, 'data: {}\n\n', size);
    expect(text).toBe(': waits\n\n: waits\n\ndata: {}\n\n');
  });
});
