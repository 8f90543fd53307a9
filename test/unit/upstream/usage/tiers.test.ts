// Tiers of service that a body asks for, in any spelling, and that an answer reports.
import { describe, expect, test } from 'vitest';
import { estimateCall } from '../../../../src/upstream/usage/estimate.ts';
import type { RequestedTiers } from '../../../../src/upstream/usage/tiers.ts';
import { createUsageMeter } from '../../../../src/upstream/usage/usage-meter.ts';
import type { Dialect } from '../../../../src/contract/http.ts';
import { encode } from './frames.ts';

function tiersOf(
  text: string,
  more: { contentEncoding?: string; contentType?: string } = {},
): RequestedTiers {
  const chunks = [encode(text)];
  const facts = { contentLength: null, contentType: 'application/json', contentEncoding: null };
  return estimateCall({ chunks, ...facts, ...more }).tiers;
}

const escaped = (text: string): string =>
  text.replaceAll(/./g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);

describe('a body asks for', () => {
  test.each([
    ['{"service_tier":"priority","messages":[]}', { service_tier: 'priority' }],
    ['{"messages":[{"content":"x"}],"service_tier":"FLEX"}', { service_tier: 'flex' }],
    ['{"serviceTier":"priority"}', { service_tier: 'priority' }],
    ['{"serviceTier":{"type":"priority"}}', { service_tier: 'priority' }],
    ['{"performanceConfig":{"latency":"optimized"}}', { latency: 'optimized' }],
    ['{"speed":"fast"}', { speed: 'fast' }],
    ['{"type":"response.create","response":{"service_tier":"fast"}}', { service_tier: 'fast' }],
    ['{"generationConfig":{"serviceTier":"priority"}}', { service_tier: 'priority' }],
    [`{"${escaped('service_tier')}":"${escaped('priority')}"}`, { service_tier: 'priority' }],
    [
      `{"${escaped('performanceConfig')}":{"${escaped('latency')}":"optimized"}}`,
      { latency: 'optimized' },
    ],
    // No tier is requested.
    ['{"service_tier":null,"serviceTier":null}', {}],
    ['{"speed":1.5}', {}],
    ['{"messages":[{"service_tier":"priority"}]}', {}],
    ['{"tools":{"service_tier":"priority"}}', {}],
    ['{"input":"service_tier","metadata":{"speed":"fast"}}', {}],
  ])('%s', (text, asked) => {
    expect(tiersOf(text)).toMatchObject({ asked, odd: null, isUnread: false });
  });

  test.each([
    ['{"service_tier":"default","service_tier":"priority"}', 'service_tier', 'occurs twice'],
    ['{"service_tier":"default","serviceTier":"priority"}', 'serviceTier', 'occurs twice'],
    ['{"service_tier":"default"}{"service_tier":"priority"}', 'service_tier', 'occurs twice'],
    [
      '{"service_tier":"flex","response":{"service_tier":"fast"}}',
      'response.service_tier',
      'occurs twice',
    ],
    ['{"Service_Tier":"priority"}', 'Service_Tier', 'is spelled differently'],
    ['{"ſervice_tier":"priority"}', 'ſervice_tier', 'is spelled differently'],
    ['{"servicetier":{"type":"priority"}}', 'servicetier', 'is spelled differently'],
    ['{"performanceconfig":{"latency":"x"}}', 'performanceconfig', 'is spelled differently'],
    ['{"service_tier":["priority"]}', 'service_tier', 'is not a string'],
    ['{"service_tier":7}', 'service_tier', 'is not a string'],
    [`{"service_tier":"${'x'.repeat(65)}"}`, 'service_tier', 'is too long or not a valid string'],
  ])('nothing certain if parsers read it differently: %s', (text, field, why) => {
    expect(tiersOf(text).odd).toEqual({ field, why });
  });

  test('any tier if it is compressed, and none in a form', () => {
    expect(tiersOf('…', { contentEncoding: 'gzip' }).isUnread).toBe(true);
    const unread = { chunks: [], contentLength: 9, contentType: null, contentEncoding: null };
    expect(estimateCall(unread).tiers.isUnread).toBe(true);
    expect(tiersOf('…', { contentType: 'multipart/form-data; boundary=b' }).isUnread).toBe(false);
  });

  test('the same, wherever its chunks are cut', () => {
    const bytes = encode('{"n":1,"service\\u005ftier":"priority","z":[1]}');
    for (let at = 1; at < bytes.length; at += 1) {
      const chunks = [bytes.subarray(0, at), bytes.subarray(at)];
      const facts = { contentLength: null, contentType: null, contentEncoding: null };
      expect(estimateCall({ chunks, ...facts }).tiers.asked).toEqual({ service_tier: 'priority' });
    }
  });
});

describe('an answer reports', () => {
  const reported = (shape: Dialect, type: string, text: string) => {
    const meter = createUsageMeter(shape, type, null);
    meter?.push(encode(text));
    return meter?.end().tiers;
  };
  const json = 'application/json';
  const sse = 'text/event-stream';
  test.each<[string, Dialect, string, string, object | undefined]>([
    [
      'OpenAI chat',
      'openai',
      json,
      '{"service_tier":"priority","usage":{"prompt_tokens":1}}',
      { service_tier: 'priority' },
    ],
    [
      'OpenAI chat, streamed',
      'openai',
      sse,
      'data: {"service_tier":"auto","choices":[]}\n\ndata: {"service_tier":"default","choices":[]}\n\n',
      { service_tier: 'default' },
    ],
    [
      'OpenAI responses, streamed',
      'openai',
      sse,
      'data: {"type":"response.created","response":{"service_tier":"auto"}}\n\ndata: {"type":"response.completed","response":{"service_tier":"priority"}}\n\n',
      { service_tier: 'priority' },
    ],
    [
      'Anthropic',
      'anthropic',
      json,
      '{"type":"message","usage":{"input_tokens":1,"output_tokens":1,"service_tier":"standard","speed":"fast"}}',
      { service_tier: 'standard', speed: 'fast' },
    ],
    [
      'Anthropic, streamed',
      'anthropic',
      sse,
      'data: {"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1,"speed":"fast"}}}\n\ndata: {"type":"message_delta","usage":{"output_tokens":3}}\n\n',
      { speed: 'fast' },
    ],
    [
      'Vertex',
      'gemini',
      json,
      '{"usageMetadata":{"promptTokenCount":1,"trafficType":"ON_DEMAND_PRIORITY"}}',
      { service_tier: 'priority' },
    ],
    [
      'Vertex, paid in advance',
      'gemini',
      json,
      '{"usageMetadata":{"promptTokenCount":1,"trafficType":"PROVISIONED_THROUGHPUT"}}',
      { service_tier: 'standard' },
    ],
    [
      'Bedrock',
      'bedrock',
      json,
      '{"usage":{"inputTokens":1,"outputTokens":1},"serviceTier":{"type":"priority"},"performanceConfig":{"latency":"standard"}}',
      { service_tier: 'priority', latency: 'standard' },
    ],
    // Text of a model or a caller reports no tier.
    [
      'the model',
      'openai',
      json,
      '{"choices":[{"message":{"service_tier":"flex"}}],"metadata":{"service_tier":"flex"}}',
      undefined,
    ],
    ['no tier', 'openai', json, '{"usage":{"prompt_tokens":1}}', undefined],
  ])('%s', (_, shape, type, text, tiers) => {
    expect(reported(shape, type, text)).toEqual(tiers);
  });
});
