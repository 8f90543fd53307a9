import { describe, expect, test } from 'vitest';
import { injectUsage } from '../../../../src/upstream/usage/inject-usage.ts';
import { encode } from './frames.ts';

function injected(text: string): string | null {
  const bytes = injectUsage(encode(text));
  return bytes === null ? null : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

describe('a body that asks for a stream', () => {
  test.each([
    ['{"stream":true}', '{"stream_options":{"include_usage":true},"stream":true}'],
    [
      ' {\r\n "model": "m",  "x": "\\u00e9 é", "n": 1.0,\t"stream" : true }\n',
      ' {"stream_options":{"include_usage":true},\r\n "model": "m",  "x": "\\u00e9 é", "n": 1.0,\t"stream" : true }\n',
    ],
    ['\ufeff{"stream":true}', '\ufeff{"stream_options":{"include_usage":true},"stream":true}'],
    [
      '{"stream":true,"stream_options":{}}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"stream":true,"stream_options": { } }',
      '{"stream":true,"stream_options": {"include_usage":true } }',
    ],
    [
      '{"stream_options":{"include_obfuscation":false},"stream":true}',
      '{"stream_options":{"include_usage":true,"include_obfuscation":false},"stream":true}',
    ],
    [
      '{"stream_options":{"include_usage": false },"stream":true}',
      '{"stream_options":{"include_usage": true },"stream":true}',
    ],
    [
      '{"stream_options":{"include_usage":null},"stream":true}',
      '{"stream_options":{"include_usage":true},"stream":true}',
    ],
    [
      '{"stream":true,"stream_options":null}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"stream":true,"strea\\u006d_options":{"include_usage":false}}',
      '{"stream":true,"strea\\u006d_options":{"include_usage":true}}',
    ],
    [
      '{"messages":[{"stream_options":{"include_usage":true},"content":"\\"stream_options\\":{}"}],"stream":true}',
      '{"stream_options":{"include_usage":true},"messages":[{"stream_options":{"include_usage":true},"content":"\\"stream_options\\":{}"}],"stream":true}',
    ],
  ])('%j asks for its usage as well', (text, wanted) => {
    const result = injected(text);
    expect(result).toBe(wanted);
    const { stream_options: options } = JSON.parse((result ?? '').replace('\ufeff', '')) as {
      stream_options: { include_usage: unknown };
    };
    expect(options.include_usage).toBe(true);
  });
});

test.each([
  ['asks already', '{"stream":true,"stream_options":{"include_usage":true}}'],
  ['asks for no stream', '{"model":"m"}'],
  ['says that it wants none', '{"stream":false}'],
  ['says what nobody understands', '{"stream":true,"stream_options":[]}'],
  ['says so in other words', '{"stream":true,"stream_options":{"include_usage":"yes"}}'],
  ['says so in numbers', '{"stream":true,"stream_options":{"include_usage":1}}'],
  ['says it twice', '{"stream_options":{},"stream":true,"stream_options":{"include_usage":true}}'],
  [
    'says half of it twice',
    '{"stream":true,"stream_options":{"include_usage":false,"include_usage":true}}',
  ],
  [
    'says half of it twice, the other way round',
    '{"stream":true,"stream_options":{"include_usage":true,"include_usage":false}}',
  ],
  ['says twice that it streams', '{"stream":false,"stream":true}'],
  ['streams inside only', '{"options":{"stream":true}}'],
  ['is cut', '{"stream":true,"model":"m"'],
  ['is a list', '[{"stream":true}]'],
  ['is two', '{"stream":true}{"stream":true}'],
  ['is none', ''],
])('a body that %s is left alone', (_, text) => {
  expect(injected(text)).toBeNull();
});
