import { isSentence } from '../upstream/refusal/refusal-words.ts';
import type { Provider } from './provider.ts';

export const openrouter = {
  id: 'openrouter',
  namedBy: { hermes: ['or', 'open-router'] },
  baseUrl: 'https://openrouter.ai',
  openaiAt: '/api/v1',
  anthropicAt: '/api/v1',
  plans: [
    {
      plan: 'Less than 10 credits bought',
      models: ['*:free'],
      limits: { rpm: 20, rpd: 50 },
      source: 'https://openrouter.ai/docs/api_reference/limits',
      date: '2026-11-20',
    },
    {
      plan: '10 credits bought',
      models: ['*:free'],
      limits: { rpm: 20, rpd: 1_000 },
      source: 'https://openrouter.ai/docs/api_reference/limits',
      date: '2026-11-20',
    },
  ],
  limitHeaders: {
    refill: 'window',
    probes: ['x-ratelimit-remaining'],
    limits: [
      {
        dimension: 'requests',
        windowMs: null, // A minute or a day. The headers do not name it.
        limit: 'x-ratelimit-limit',
        remaining: 'x-ratelimit-remaining',
        reset: 'x-ratelimit-reset',
      },
    ],
    isReliable: true,
    source: 'https://openrouter.ai/docs/api_reference/limits',
    date: '2026-11-20',
    note: 'Sent only with refusals.',
  },
  refusals: [
    {
      kind: 'quota',
      scope: 'upstream',
      message: isSentence(
        /key limit exceeded \((?:daily|weekly|monthly|total) limit\)\. manage it using https:\/\/openrouter\.ai\/[\w/-]{1,80}/,
      ),
      onClientError: true,
    },
    {
      // The price of `max_tokens` is reserved, so a shorter call may still succeed. Seen 2026-08-24.
      kind: 'never_fits',
      scope: 'call',
      stage: 'price',
      text: /fewer max_tokens.{0,80}can only afford [1-9]|prompt tokens limit exceeded/,
    },
  ],
  steering: {
    starts: ['openrouter-'],
    source: 'https://openrouter.ai/docs/api-reference/overview',
    date: '2026-11-20',
  },
} satisfies Provider;

export const vercel = {
  id: 'vercel',
  namedBy: { hermes: ['ai-gateway'] },
  baseUrl: 'https://ai-gateway.vercel.sh',
  anthropicAt: '/v1',
  steering: {
    starts: ['vercel-', 'ai-gateway-'],
    source: 'https://vercel.com/docs/ai-gateway',
    date: '2026-11-20',
  },
} satisfies Provider;
