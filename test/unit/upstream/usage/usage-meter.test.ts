import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../../../src/contract/http.ts';
import { createUsageMeter, type MeteredUsage } from '../../../../src/upstream/usage/usage-meter.ts';
import { ANTHROPIC_EVENTS, STREAMS, WHOLE } from './answers.ts';
import { cutAt, cutsOf } from './cuts.ts';
import { dataFrames, encode, JSON_TYPE, SSE } from './frames.ts';

function metered(
  shape: Dialect,
  contentType: string,
  pieces: readonly Uint8Array[],
): MeteredUsage | undefined {
  const meter = createUsageMeter(shape, contentType, null);
  for (const piece of pieces) meter?.push(piece);
  return meter?.end();
}

function meteredText(shape: Dialect, contentType: string, text: string): MeteredUsage | undefined {
  return metered(shape, contentType, [encode(text)]);
}

describe.each([
  ...STREAMS.map((answer) => ({ ...answer, form: 'stream' })),
  ...WHOLE.map((answer) => ({ ...answer, form: 'answer' })),
])('the usage of a whole $form of $name', ({ shape, contentType, body, usage }) => {
  test('is what the upstream reported', () => {
    const seen = metered(shape, contentType, [body]);
    expect(seen?.usage).toEqual(usage);
    expect(seen?.outputTokensSeen).toBe(usage?.outputTokens ?? 0);
  });

  test('is the same wherever the bytes are cut', () => {
    const whole = metered(shape, contentType, [body]);
    const single = [...body].map((byte) => Uint8Array.of(byte));
    expect(metered(shape, contentType, single)).toEqual(whole);
    fc.assert(
      fc.property(cutsOf(body.length), (cuts) => {
        expect(metered(shape, contentType, cutAt(body, cuts))).toEqual(whole);
      }),
    );
  });
});

describe('of a stream that is cut', () => {
  /** Real prose of known length in tokens: o200k makes 66 of it. */
  const PROSE =
    'A concurrency limit says how many calls may run at the same time. When all of the slots are taken, ' +
    'the next call waits in a queue until one of the others has ended. Providers count the calls of one ' +
    'key, whoever makes them, so a limit in each client is of no use: they have to share it.';
  const PROSE_TOKENS = 66;
  const words = PROSE.split(/(?<= )/);
  const quoted = (word: string): string => JSON.stringify(word);

  test.each<[string, Dialect, string, string]>([
    [
      'OpenAI chat',
      'openai',
      SSE,
      dataFrames(
        words.map(
          (word) =>
            `{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":${quoted(word)}},"logprobs":null,"finish_reason":null}],"usage":null}`,
        ),
      ),
    ],
    [
      'a model that thinks, under both names',
      'openai',
      SSE,
      dataFrames(
        words.map(
          (word) =>
            `{"choices":[{"delta":{"reasoning":${quoted(word)},"reasoning_content":${quoted(word)}}}]}`,
        ),
      ),
    ],
    [
      'OpenRouter, which says everything twice',
      'openai',
      SSE,
      dataFrames(
        words.map(
          (word) =>
            `{"choices":[{"delta":{"reasoning":${quoted(word)},"reasoning_details":[{"type":"reasoning.text","text":${quoted(word)}}]}}]}`,
        ),
      ),
    ],
    [
      'arguments of a tool',
      'openai',
      SSE,
      dataFrames(
        words.map(
          (word) =>
            `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":${quoted(word)}}}]}}]}`,
        ),
      ),
    ],
    [
      'OpenAI responses',
      'openai',
      SSE,
      dataFrames([
        ...words.map(
          (word) =>
            `{"type":"response.output_text.delta","item_id":"msg_1","delta":${quoted(word)},"obfuscation":"abcdefgh"}`,
        ),
        `{"type":"response.output_text.done","item_id":"msg_1","text":${quoted(PROSE)}}`,
        `{"type":"response.content_part.done","part":{"type":"output_text","text":${quoted(PROSE)}}}`,
      ]),
    ],
    [
      'Anthropic',
      'anthropic',
      SSE,
      dataFrames([
        ANTHROPIC_EVENTS[0] ?? '',
        ...words.map(
          (word) =>
            `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${quoted(word)}}}`,
        ),
      ]),
    ],
    [
      'Gemini, before it counts',
      'gemini',
      SSE,
      dataFrames(
        words.map(
          (word) =>
            `{"candidates":[{"content":{"parts":[{"text":${quoted(word)}}],"role":"model"}}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}`,
        ),
      ),
    ],
    [
      'Ollama',
      'ollama',
      'application/x-ndjson',
      words.map((word) => `{"model":"m","response":${quoted(word)},"done":false}\n`).join(''),
    ],
    [
      'an answer in one piece',
      'openai',
      JSON_TYPE,
      `{"choices":[{"message":{"content":${quoted(PROSE)}`,
    ],
  ])('%s: the output seen is estimated within 20 %%', (_, shape, contentType, text) => {
    const seen = meteredText(shape, contentType, text)?.outputTokensSeen ?? 0;
    expect(seen / PROSE_TOKENS).toBeGreaterThan(0.8);
    expect(seen / PROSE_TOKENS).toBeLessThan(1.2);
  });

  test('what was reported before the cut counts, and only text after it is estimated', () => {
    const chunk = (tokens: number, text: string): string =>
      `{"choices":[{"delta":{"content":"${text}"}}],"usage":{"prompt_tokens":5,"completion_tokens":${tokens}}}`;
    const late = '{"choices":[{"delta":{"content":"12345678"}}],"usage":null}';
    expect(
      meteredText('openai', SSE, dataFrames([chunk(40, 'abcdefgh'), chunk(90, 'ab'), late])),
    ).toMatchObject({ usage: { inputTokens: 5, outputTokens: 90 }, outputTokensSeen: 92 });
  });

  test('the input of Anthropic is known from the first event on', () => {
    expect(meteredText('anthropic', SSE, dataFrames(ANTHROPIC_EVENTS.slice(0, 4)))).toEqual({
      usage: { inputTokens: 2_257, cacheReadTokens: 2_048, cacheWriteTokens: 188, outputTokens: 1 },
      outputTokensSeen: 4,
      tiers: { service_tier: 'standard' },
      model: 'claude-sonnet-4-5',
    });
  });

  test.each([
    ['as it is', '中文字符'],
    ['escaped', String.raw`\u4e2d\u6587\u5b57\u7b26`],
    ['escaped, beyond the first plane', String.raw`\ud83d\ude00\ud83d\ude00\ud83d\ude00`],
  ])('text counts for what it says, %s', (_, text) => {
    const line = `{"choices":[{"delta":{"content":"${text}"}}]}`;
    expect(meteredText('openai', SSE, dataFrames([line]))?.outputTokensSeen).toBe(3);
  });
});

describe('a meter', () => {
  test('finds usage in an answer of any length, at its end and at its start', () => {
    const text = 'lorem "ipsum" \\ '.repeat(100_000);
    const usage = { prompt_tokens: 3, completion_tokens: 4 };
    for (const answer of [
      { choices: [{ message: { content: text } }], usage },
      { usage, choices: [{ message: { content: text } }] },
    ]) {
      const seen = meteredText('openai', JSON_TYPE, JSON.stringify(answer));
      expect(seen).toMatchObject({
        usage: { inputTokens: 3, outputTokens: 4 },
        outputTokensSeen: 4,
      });
    }
  });

  test.each([
    '{"a":"open',
    `{"a":"${'far open '.repeat(20)}`,
    `{"usage":{"a":"${'far open '.repeat(20)}`,
    '{"a',
    '{"a":{"b":[1',
    '{,}',
    '{"usage":{"prompt_tokens":',
    '{"a" 1}',
  ])('goes on behind the broken frame %s', (broken) => {
    const good = '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}';
    const seen = ['\n', '\r\n', '\r'].map((lineEnd) =>
      meteredText('openai', SSE, dataFrames([broken, good], lineEnd)),
    );
    expect(seen.map((one) => one?.usage?.inputTokens)).toEqual([3, 3, 3]);
  });

  test('takes a usage that nothing but a list of texts could hold for none', () => {
    const endless = `{"usage":{"notes":"${'x'.repeat(20_000)}","prompt_tokens":3}}`;
    expect(meteredText('openai', JSON_TYPE, endless)?.usage).toBeNull();
  });

  test.each(['-1', '1.5', '"7"', '1e400', 'null', '[]'])(
    'takes a count of %s for none',
    (count) => {
      const text = `{"usage":{"prompt_tokens":${count},"completion_tokens":4}}`;
      expect(meteredText('openai', JSON_TYPE, text)?.usage).toBeNull();
    },
  );

  test('takes an event stream that is none for nothing', () => {
    const text = '{"usage":{"inputTokens":3,"outputTokens":4}}'.repeat(9);
    const type = 'application/vnd.amazon.eventstream';
    expect(meteredText('bedrock', type, text)).toEqual({ usage: null, outputTokensSeen: 0 });
  });

  test('takes a message that is longer than any for nothing', () => {
    const prelude = Uint8Array.of(0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const payload = encode('{"usage":{"inputTokens":3,"outputTokens":4}}');
    const seen = metered('bedrock', 'application/vnd.amazon.eventstream', [prelude, payload]);
    expect(seen?.usage).toBeNull();
  });

  test('says nothing of an answer without a body', () => {
    expect(metered('openai', SSE, [])).toEqual({ usage: null, outputTokensSeen: 0 });
  });

  test.each<[string, Dialect, string | null, string | null]>([
    ['an answer in an unknown packing', 'openai', JSON_TYPE, 'compress'],
    ['audio', 'openai', 'audio/mpeg', null],
    ['an answer without a type', 'openai', null, null],
    ['an answer of an opaque upstream', 'opaque', JSON_TYPE, null],
    ['a type named in a parameter', 'openai', 'text/html; x="application/json"', null],
    ['a type that another begins with', 'openai', 'application/json-seq', null],
  ])('does not exist for %s', (_, shape, contentType, contentEncoding) => {
    expect(createUsageMeter(shape, contentType, contentEncoding)).toBeNull();
  });

  test('exists for an answer that says it is not compressed', () => {
    expect(createUsageMeter('openai', 'Application/JSON', ' Identity')).not.toBeNull();
  });

  test.each([
    ['Text/Event-Stream ; charset="utf-8"', 'data: {"choices":[],"usage":{"prompt_tokens":7}}\n\n'],
    ['text/event-stream;x="application/json"', 'data: {"usage":{"prompt_tokens":7}}\n\n'],
    ['application/json; x=text/event-stream', '{"usage":{"prompt_tokens":7}}'],
    ['APPLICATION/X-NDJSON;charset=utf-8', '{"usage":{"prompt_tokens":7}}\n'],
  ])('reads an answer by its media type alone: %s', (type, text) => {
    expect(meteredText('openai', type, text)?.usage).toMatchObject({ inputTokens: 7 });
  });
});
