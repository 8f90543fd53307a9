import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../../../src/contract/http.ts';
import { createReportMeter, createUsageMeter } from '../../../../src/upstream/usage/usage-meter.ts';
import { STREAMS } from './answers.ts';
import { cutAt, cutsOf } from './cuts.ts';
import { dataFrames, encode, SSE } from './frames.ts';

const EVENTS = STREAMS.filter(({ contentType }) => contentType.startsWith(SSE));

function reported(shape: Dialect, pieces: readonly Uint8Array[]) {
  const meter = createReportMeter(shape, SSE, null);
  for (const piece of pieces) meter?.push(piece);
  return meter?.end();
}

describe.each(EVENTS)('the reports of a stream of $name', ({ shape, body, usage }) => {
  const full = createUsageMeter(shape, SSE, null);
  full?.push(body);
  const { tiers, model } = full?.end() ?? {};

  test('are those that a walk through all of it finds', () => {
    const seen = reported(shape, [body]);
    expect([seen?.usage, seen?.tiers, seen?.model]).toEqual([usage, tiers, model]);
    expect(seen?.outputTokensSeen).toBe(usage?.outputTokens ?? 0);
  });

  test('are the same wherever the bytes are cut, and with each kind of line end', () => {
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      const text = new TextDecoder().decode(body).replaceAll(/\r\n|\r|\n/g, lineEnd);
      const bytes = encode(text);
      fc.assert(
        fc.property(cutsOf(bytes.length), (cuts) => {
          expect(reported(shape, cutAt(bytes, cuts))?.usage).toEqual(usage);
        }),
        { numRuns: 30 },
      );
    }
  });
});

const CHUNK = '{"model":"gpt-4o","choices":[{"delta":{"content":"x"}}],"usage":null}';
const USAGE = '{"choices":[],"usage": {"prompt_tokens":7,"completion_tokens":3}}';

test('text of a model that looks like a report is none', () => {
  const text = JSON.stringify('"usage": {"prompt_tokens":900,"completion_tokens":900}');
  const quoting = `{"choices":[{"delta":{"content":${text}}}]}`;
  const seen = reported('openai', [encode(dataFrames([CHUNK, quoting, USAGE, quoting]))]);
  expect(seen?.usage).toMatchObject({ inputTokens: 7, outputTokens: 3 });
  expect(reported('openai', [encode(dataFrames([CHUNK, quoting]))])?.usage).toBeNull();
});

test('a report in an event of a megabyte is read, and the events after it are read as before', () => {
  const long = `{"type":"response.completed","response":{"output":"${'y'.repeat(1_000_000)}","usage":{"input_tokens":7,"output_tokens":3}}}`;
  const body = encode(dataFrames([CHUNK, long, CHUNK]));
  const pieces = cutAt(body, [10_000, 400_000, 900_000]);
  expect(reported('openai', pieces)?.usage).toMatchObject({ inputTokens: 7, outputTokens: 3 });
  const after = encode(dataFrames([CHUNK, `{"x":"${'y'.repeat(100_000)}"}`, CHUNK, USAGE]));
  expect(reported('openai', cutAt(after, [90_000, 100_050]))?.usage).toMatchObject({
    inputTokens: 7,
  });
});

test('of many reports in one piece the first and the last ones count', () => {
  const growing = Array.from(
    { length: 200 },
    (_none, at) => `{"usage":{"prompt_tokens":${at === 0 ? 9 : 7},"completion_tokens":${at}}}`,
  );
  const seen = reported('openai', [encode(dataFrames(growing))]);
  expect(seen?.usage).toMatchObject({ inputTokens: 9, outputTokens: 199 });
});

test('a stream that mixes ends of events loses no report', () => {
  const text = `: ping\r\n\r\ndata: ${CHUNK}\n\ndata: ${USAGE}\n\n`;
  expect(reported('openai', [encode(text)])?.usage).toMatchObject({ inputTokens: 7 });
});

test('a stream without a report has none', () => {
  expect(reported('openai', [encode(dataFrames([CHUNK, CHUNK]))])).toEqual({
    usage: null,
    outputTokensSeen: 0,
    model: 'gpt-4o',
  });
});
