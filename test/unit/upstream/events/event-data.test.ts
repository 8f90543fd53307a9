// The one reader of server-sent events: their data, however a server writes it and wherever its bytes are cut.
import { describe, expect, test } from 'vitest';
import { EventData } from '../../../../src/upstream/event-streams.ts';
import { createUsageDrop } from '../../../../src/upstream/usage/usage-drop.ts';
import { createUsageMeter } from '../../../../src/upstream/usage/usage-meter.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The data of each event, pushed in pieces of so many bytes. */
function dataOf(text: string, bytes: number): string[] {
  const found: string[] = [];
  const decoder = new TextDecoder();
  let open = '';
  const reader = new EventData(
    (piece) => {
      open += decoder.decode(piece, { stream: true });
    },
    () => {
      found.push(open);
      open = '';
    },
  );
  const all = encode(text);
  for (let at = 0; at < all.length; at += bytes) reader.push(all.slice(at, at + bytes));
  return found;
}

describe.each([1, 2, 3, 7, 1_000])('in pieces of %i bytes', (bytes) => {
  test.each<[string, string, string[]]>([
    ['one line each', 'data: a\n\ndata: b\n\n', ['a', 'b']],
    ['several lines', 'data: {\ndata:  "a": 1\ndata: }\n\n', ['{\n "a": 1\n}']],
    ['carriage returns', 'data: a\r\rdata: b\r\r', ['a', 'b']],
    ['both', 'data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n', ['a\nb', 'c']],
    ['comments and other fields', ': data: x\nevent: data\nid: 1\ndata: a\nretry: 2\n\n', ['a']],
    ['no space', 'data:a\ndata:  b\n\n', ['a\n b']],
    ['a byte order mark', '\ufeffdata: für\n\n', ['für']],
    ['no colon, and a longer name', 'data\ndatas: x\ndata: a\n\n', ['\na']],
    ['empty events, and one that is cut', '\n\nevent: x\n\ndata: a\n\ndata: cut\n', ['a']],
    ['empty data', 'data:\ndata: a\n\n', ['\na']],
  ])('%s', (_, text, expected) => {
    expect(dataOf(text, bytes)).toEqual(expected);
  });
});

const USAGE = { prompt_tokens: 30_000, completion_tokens: 20_000, total_tokens: 50_000 };
const inLines = (value: object): string =>
  `${JSON.stringify(value, null, 1)
    .split('\n')
    .map((line) => `data: ${line}`)
    .join('\r\n')}\r\n\r\n`;

describe('JSON over several lines of data', () => {
  const text = inLines({ choices: [{ delta: { content: 'hi' } }] });
  const last = inLines({ choices: [], usage: USAGE });

  test('is metered, and comments count for nothing', () => {
    const meter = createUsageMeter('openai', 'text/event-stream', null);
    const comment = ': {"usage":{"prompt_tokens":9,"completion_tokens":90000}}\n\n';
    const bytes = encode(text + comment + last);
    for (let at = 0; at < bytes.length; at += 5) meter?.push(bytes.slice(at, at + 5));
    const seen = meter?.end();
    expect(seen?.usage).toMatchObject({ inputTokens: 30_000, outputTokens: 20_000 });
    expect(seen?.outputTokensSeen).toBe(20_000);
  });

  test('is taken out where it is only usage', () => {
    const drop = createUsageDrop();
    const decoder = new TextDecoder();
    const out = decoder.decode(drop.push(encode(text + last))) + decoder.decode(drop.end());
    expect(out).toBe(text);
  });
});
