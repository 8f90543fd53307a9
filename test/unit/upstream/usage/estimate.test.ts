import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  estimateCall,
  FILE_TOKENS,
  type BodyFacts,
  type BodyCallEstimate,
} from '../../../../src/upstream/usage/estimate.ts';
import { encode } from './frames.ts';
import { cutAt, cutsOf } from './cuts.ts';

function facts(text: string, more: Partial<BodyFacts> = {}): BodyFacts {
  const chunks = text === '' ? [] : [encode(text)];
  return {
    chunks,
    contentLength: null,
    contentType: 'application/json',
    contentEncoding: null,
    ...more,
  };
}

function estimate(body: unknown): BodyCallEstimate {
  return estimateCall(facts(JSON.stringify(body)));
}

const IMAGE = Buffer.alloc(90_000, 'image bytes').toString('base64');

describe('the input', () => {
  test('is a quarter of the bytes', () => {
    const text = JSON.stringify({
      model: 'm',
      messages: [{ role: 'user', content: 'x'.repeat(4_000) }],
    });
    expect(estimateCall(facts(text)).inputTokens).toBe(Math.ceil(text.length / 4));
  });

  test('counts escapes for what they stand for', () => {
    const plain = '{"input":"中文\\n"}';
    const escaped = '{"input":"\\u4e2d\\u6587\\n"}';
    expect(estimateCall(facts(escaped))).toEqual(estimateCall(facts(plain)));
  });

  test.each<[string, unknown]>([
    ['OpenAI chat', { type: 'image_url', image_url: { url: `data:image/png;base64,${IMAGE}` } }],
    [
      'OpenAI chat, elsewhere',
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    ],
    ['OpenAI audio', { type: 'input_audio', input_audio: { data: IMAGE, format: 'wav' } }],
    [
      'OpenAI file',
      {
        type: 'file',
        file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${IMAGE}` },
      },
    ],
    ['OpenAI responses', { type: 'input_image', image_url: `data:image/png;base64,${IMAGE}` }],
    ['OpenAI responses, stored', { type: 'input_file', file_id: 'file-6F2ksmvXxt4VdoqmHRw6kL' }],
    [
      'Anthropic',
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: IMAGE } },
    ],
    [
      'Anthropic, elsewhere',
      { type: 'image', source: { type: 'url', url: 'https://example.com/a' } },
    ],
    ['Gemini', { inlineData: { mimeType: 'image/png', data: IMAGE } }],
    ['Gemini, stored', { fileData: { fileUri: 'https://example.com/v1beta/files/abc' } }],
    ['Bedrock', { image: { format: 'png', source: { bytes: IMAGE } } }],
    ['Ollama', { role: 'user', content: '', images: [IMAGE] }],
    ['Mistral OCR', { document: { document_url: `data:application/pdf;base64,${IMAGE}` } }],
    ['a data URL under any key', { whatever: [`data:audio/x;base64,${IMAGE}`] }],
    ['a name with spaces', { x: `data:application/pdf;name=my file.pdf;base64,${IMAGE}` }],
    ['a name in quotes', { x: `  data:application/pdf;name="a b.pdf";base64,${IMAGE}` }],
    ['a long type', { x: `data:application/vnd.ms-${'a'.repeat(60)};base64,${IMAGE}` }],
    ['base64 under any key', { bytesBase64Encoded: IMAGE }],
    ['base64 in the arguments of a tool', { input: { data: IMAGE } }],
    ['with escaped slashes', { inlineData: { data: 'AB+/'.repeat(2_000) } }],
  ])('has a flat cost for a file: %s', (_, part) => {
    const body = JSON.stringify({ messages: [part] }).replaceAll('AB+/', 'AB+\\/');
    const { inputTokens } = estimateCall(facts(body));
    expect(inputTokens).toBeGreaterThan(FILE_TOKENS);
    expect(inputTokens).toBeLessThan(FILE_TOKENS + 60);
  });

  test('has it for each of several', () => {
    const { inputTokens } = estimate({
      messages: [{ content: 'hi', images: [IMAGE, IMAGE, IMAGE] }],
    });
    expect(Math.floor(inputTokens / FILE_TOKENS)).toBe(3);
  });

  test('has it for a file of which only the beginning was read', () => {
    const whole = JSON.stringify({ messages: [{ inlineData: { data: IMAGE } }] });
    const read = facts(whole.slice(0, 5_000), { contentLength: whole.length });
    expect(estimateCall(read).inputTokens).toBeLessThan(FILE_TOKENS + 60);
  });

  test.each<[string, unknown]>([
    ['a document that is text', { source: { type: 'text', data: 'plain words '.repeat(1_000) } }],
    ['a document of one word', { source: { type: 'text', data: 'Hello' } }],
    ['base64 in a text', { type: 'text', text: IMAGE }],
    ['a list of words', { images: Array.from({ length: 2_000 }, () => 'a cat') }],
  ])('is text all the same: %s', (_, part) => {
    const text = JSON.stringify({ messages: [part] });
    expect(estimateCall(facts(text)).inputTokens).toBe(Math.ceil(text.length / 4));
  });

  test.each<[string, BodyFacts, number]>([
    ['a body that was not read', facts('', { contentLength: 4_000 }), 1_000],
    ['a body that was read in part', facts('{"input":"abc', { contentLength: 4_000 }), 1_000],
    ['a body that is no JSON', facts('x'.repeat(400)), 100],
    [
      'a form',
      facts('', { contentLength: 9_000_000, contentType: 'multipart/form-data; boundary=x' }),
      FILE_TOKENS,
    ],
    ['a compressed body', facts('', { contentLength: 4_000, contentEncoding: 'gzip' }), 3_000],
    ['no body', facts(''), 1],
  ])('of %s', (_, given, tokens) => {
    expect(estimateCall(given).inputTokens).toBe(tokens);
  });
});

test.each<[string, unknown, number]>([
  ['words', { messages: [{ content: 'one two  three\n\tfour ' }, { content: 'five' }] }, 5],
  ['no words in a file', { messages: [{ image_url: `data:image/png;base64,${IMAGE}` }] }, 0],
  ['one word without blanks', { input: '漢字仮名交じり文' }, 1],
  ['no words in numbers and keys', { input: [1, 2, 3], 'two words': true }, 0],
])('the least of the input: %s', (_, body, least) => {
  expect(estimate(body).leastInputTokens).toBe(least);
});

describe('the bound of the output', () => {
  test.each<[unknown, number | null]>([
    [{ max_tokens: 100 }, 100],
    [{ max_completion_tokens: 100 }, 100],
    [{ max_output_tokens: 100 }, 100],
    [{ max_tokens: 50, max_completion_tokens: 100 }, 100],
    [{ max_tokens: 100, n: 3 }, 300],
    [{ max_tokens: 100, n: 2, best_of: 5 }, 500],
    [{ generationConfig: { maxOutputTokens: 100, candidateCount: 2 } }, 200],
    [{ generation_config: { max_output_tokens: 100 } }, 100],
    [{ options: { num_predict: 100 } }, 100],
    [{ options: { num_predict: -1 } }, null],
    [{ inferenceConfig: { maxTokens: 100 } }, 100],
    [{ textGenerationConfig: { maxTokenCount: 100 } }, 100],
    [{ max_gen_len: 100 }, 100],
    [{ max_tokens: null }, null],
    [{ max_tokens: '100' }, null],
    [{ max_tokens: 1.5 }, null],
    [{ n: 3 }, null],
    [
      { messages: [{ max_tokens: 9 }], metadata: { max_tokens: 9, nested: { max_tokens: 9 } } },
      null,
    ],
    [{ messages: [{ content: '"max_tokens": 9' }], max_tokens: 7 }, 7],
  ])('of %j is %j', (body, bound) => {
    expect(estimate(body).maxOutputTokens).toBe(bound);
  });

  test('counts a key that is written with escapes', () => {
    expect(estimateCall(facts('{"max\\u005ftokens":7}')).maxOutputTokens).toBe(7);
  });
});

describe('what is asked for', () => {
  test.each<[unknown, boolean, boolean]>([
    [{ stream: true }, true, false],
    [{ stream: false }, false, false],
    [{ stream: 'true' }, false, false],
    [{ stream: true, stream_options: { include_usage: true } }, true, true],
    [{ stream: true, stream_options: { include_usage: false } }, true, false],
    [{ stream: true, include_usage: true }, true, false],
    [{ messages: [{ stream: true }] }, false, false],
  ])('%j: a stream %j, its usage %j', (body, isStream, wantsUsage) => {
    expect(estimate(body)).toMatchObject({ isStream, wantsUsage });
  });
});

test('the estimate is the same wherever the bytes are cut', () => {
  const text = JSON.stringify({
    model: 'm',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Grüße \\ "中文" 😀\n' },
          { source: { data: IMAGE.slice(0, 200) } },
        ],
      },
    ],
    max_tokens: 100,
    n: 2,
    stream: true,
    stream_options: { include_usage: true },
  }).replace('中', '\\u4e2d');
  const whole = estimateCall(facts(text));
  expect(whole).toMatchObject({ maxOutputTokens: 200, isStream: true, wantsUsage: true });
  fc.assert(
    fc.property(cutsOf(encode(text).length), (cuts) => {
      expect(estimateCall(facts('', { chunks: cutAt(encode(text), cuts) }))).toEqual(whole);
    }),
  );
});
