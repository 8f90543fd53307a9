import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createUsageDrop } from '../../../../src/upstream/usage/usage-drop.ts';
import { encode } from './frames.ts';
import { cutAt, cutsOf } from './cuts.ts';

/** Collects what comes out, piece by piece. */
function passed(pieces: readonly Uint8Array[]): string[] {
  const drop = createUsageDrop();
  const decoder = new TextDecoder('latin1');
  const out = pieces.map((piece) => decoder.decode(drop.push(piece)));
  return [...out, decoder.decode(drop.end())];
}

/** As `passed` has it: every byte a character. */
function latin1(text: string): string {
  return new TextDecoder('latin1').decode(encode(text));
}

const USAGE =
  '{"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}';
const LOOSE = '{"id": "c", "choices": [ ], "usage": {"prompt_tokens": 1}}';

/** Events without their end, that go on. */
const OTHERS = [
  'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Grüße 😀"}}]}',
  'data: {"choices":[]}',
  'data: {"choices":[{"delta":{"content":"usage"},"usage":null}]}',
  'data: {"choices":[{"delta":{"content":", \\"usage\\": null"}}],"x":"usage"}',
  'data: {"choices":[1],"usage":null}}',
  'data: {"choices":[1],"usage":null]',
  'data: {"choices":[1],"usage":null} x',
  'data: {"choices":[1],"usage":[null]}',
  'data: [{"choices":[1],"usage":null}]',
  'data: {"choices":[1],\ndata: "usage":null}',
  'data: {"choices":[1],"usage":null',
  'data: {"error":{"message":"x"},"usage":null}',
  'note: {"choices":[1],"usage":null}',
  'data: {"choices":[],"usage":7}',
  'data: {"choices":[],"usage":{',
  'data: {"usage":{"note":"[]"},"object":"response"}',
  `data: {"choices":[{"delta":{"content":${JSON.stringify(USAGE)}}}]}`,
  `note: ${USAGE}`,
  ': OPENROUTER PROCESSING',
  ': []',
  '',
  'data: [DONE]',
];

/** Events with usage and other members, and the bytes that reach the caller. */
const CUT: readonly (readonly [event: string, rest: string])[] = [
  [
    'data: {"choices":[{"index":0,"delta":{"content":"Grüße 😀"}}],"usage":null}',
    'data: {"choices":[{"index":0,"delta":{"content":"Grüße 😀"}}]}',
  ],
  [
    'data: {"choices":[1],"usage":null,"obfuscation":"x"}',
    'data: {"choices":[1],"obfuscation":"x"}',
  ],
  ['data: {"choices": [1], "usage": null, "x": 1}', 'data: {"choices": [1], "x": 1}'],
  ['data: {"choices": [1] , "usage" : null }', 'data: {"choices": [1]  }'],
  ['data: {"usage": null, "choices": [1]}', 'data: {"choices": [1]}'],
  ['data:{"usage":null , "choices":[1]}', 'data:{"choices":[1]}'],
  [
    'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}],"usage":null}',
    'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}',
  ],
  [
    'data: {"choices":[{"delta":{"tool_calls":[]},"usage":null}],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"note":"}"}},"x":1}',
    'data: {"choices":[{"delta":{"tool_calls":[]},"usage":null}],"x":1}',
  ],
  ['event: chunk\ndata: {"choices":[1],"usage":null}', 'event: chunk\ndata: {"choices":[1]}'],
  [
    'data: {"choices":[1],"usage":null,"x_groq":{"usage":{"prompt_tokens":1}}}',
    'data: {"choices":[1],"x_groq":{"usage":{"prompt_tokens":1}}}',
  ],
  [
    'data: {"usage":null,"choices":[{"delta":{"content":"usage"}}]}',
    'data: {"choices":[{"delta":{"content":"usage"}}]}',
  ],
  ['data: {"usage":null,"choices":[1],"\\"usage":null}', 'data: {"choices":[1],"\\"usage":null}'],
];

/** Events that do not. */
const DROPPED = [
  `data: ${USAGE}`,
  `data:${LOOSE}`,
  `event: chunk\ndata: ${USAGE}`,
  'data: {"choices":[],\ndata: "usage":{}}',
];

const LINE_ENDS = ['\n', '\r\n', '\r'];

describe.each(LINE_ENDS)('with lines that end in %j', (lineEnd) => {
  const written = (events: readonly string[]): string =>
    events
      .map((event) => `${event.replaceAll('\n', lineEnd)}${lineEnd}${event === '' ? '' : lineEnd}`)
      .join('');

  test.each(OTHERS)('%j goes on', (event) => {
    const text = written([event, 'data: next']);
    expect(passed([encode(text)]).join('')).toBe(latin1(text));
  });

  test.each(CUT)('%j goes on as %j', (event, rest) => {
    const text = (one: string): string => written([one, 'data: next', one]);
    expect(passed([encode(text(event))]).join('')).toBe(latin1(text(rest)));
  });

  test.each(DROPPED)('%j is taken out, and nothing else', (event) => {
    const before = written([OTHERS[0] ?? '']);
    const after = written(['data: [DONE]']);
    const pieces = [encode(before + written([event]) + after)];
    expect(passed(pieces).join('')).toBe(latin1(before + after));
  });

  test('what goes on is the same wherever the bytes are cut', () => {
    const all = [...OTHERS.map((event) => [event, event] as const), ...CUT];
    const events = fc.array(
      fc.constantFrom(...all, ...DROPPED.map((event) => [event, null] as const)),
      { maxLength: 6 },
    );
    const end = fc.constantFrom('', 'data: cut', `data: ${USAGE}`, `data: ${USAGE}${lineEnd}`);
    const runs = fc.tuple(events, end).chain(([list, rest]) => {
      const text = written(list.map(([event]) => event)) + rest;
      return fc.tuple(fc.constant(list), fc.constant(rest), cutsOf(encode(text).length));
    });
    fc.assert(
      fc.property(runs, ([list, rest, cuts]) => {
        const text = written(list.map(([event]) => event)) + rest;
        const kept = list.flatMap(([, left]) => left ?? []);
        const out = passed(cutAt(encode(text), cuts)).join('');
        expect(out).toBe(latin1(written(kept) + (rest.includes(USAGE) ? '' : rest)));
      }),
      { numRuns: 500 },
    );
  });

  test('a stream that ends before the empty line behind the usage passes without it', () => {
    const before = written([OTHERS[0] ?? '']);
    const event = `data: ${USAGE}`;
    const ends = [event, event + lineEnd, event + lineEnd + lineEnd];
    expect(ends.map((end) => passed([encode(before + end)]).join(''))).toEqual(
      ends.map(() => latin1(before)),
    );
    const cut = before + event.slice(0, -1);
    expect(passed([encode(cut)]).join('')).toBe(latin1(cut));
  });

  test('each event goes on as soon as it is whole', () => {
    const pieces = OTHERS.map((event) => written([event]));
    expect(passed(pieces.map(encode))).toEqual([...pieces.map(latin1), '']);
    const [first = ''] = pieces;
    const half = encode(first).length / 2;
    expect(passed(cutAt(encode(first), [half]))).toEqual(['', latin1(first), '']);
  });

  test('an event that is too long for what is looked for goes on as it comes', () => {
    const long = `data: {"choices":[],"usage":{"x":"${'y'.repeat(20_000)}"}}`;
    const text = written([long, `data: ${USAGE}`, 'data: [DONE]']);
    const cuts = [10_000, 18_000];
    const [held, second] = passed(cutAt(encode(text), cuts));
    expect([held, second?.length]).toEqual(['', 18_000]);
    expect(passed(cutAt(encode(text), cuts)).join('')).toBe(written([long, 'data: [DONE]']));
  });
});

test('a chunk without anything to take out is passed on without a copy', () => {
  const chunk = encode('data: {"choices":[1]}\n\ndata: {"choices":[2]}\n\n');
  expect(createUsageDrop().push(chunk).buffer).toBe(chunk.buffer);
});

test('lines of one stream may end in different ways', () => {
  const text = (dropped: string): string => `data: {"a":1}\r\n\n${dropped}data: [DONE]\n\r\n`;
  const pieces = [encode(text(`data: ${USAGE}\r\n\n`))];
  expect(passed(pieces).join('')).toBe(text(''));
  expect(passed([encode('data: 1\r\n\n')])).toEqual(['data: 1\r\n\n', '']);
});

test('the end of an event that was too long is not taken for one of its own', () => {
  const text = `data: "${'y'.repeat(20_000)}"\ndata: ${USAGE}\n\n`;
  const cuts = [text.lastIndexOf('data: ')];
  expect(passed(cutAt(encode(text), cuts)).join('')).toBe(text);
});
