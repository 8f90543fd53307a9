import { DAY_MS, HOUR_MS, MINUTE_MS, xRateLimit } from '../upstream/refusal/header-families.ts';
import type { Provider } from './provider.ts';

export const cerebras = {
  id: 'cerebras',
  baseUrl: 'https://api.cerebras.ai',
  plans: [
    {
      plan: 'Free Trial',
      models: ['gpt-oss-120b'],
      limits: { rpm: 5, tpm: 30_000, tpd: 1_000_000 },
      source: 'https://inference-docs.cerebras.ai/support/rate-limits',
      date: '2026-07-18',
    },
    {
      plan: 'Developer',
      models: ['gpt-oss-120b'],
      limits: { rpm: 1_000, tpm: 1_000_000 },
      source: 'https://inference-docs.cerebras.ai/support/rate-limits',
      date: '2026-07-18',
    },
  ],
  limitHeaders: {
    refill: 'window',
    probes: ['x-ratelimit-remaining-requests-minute', 'x-ratelimit-remaining-tokens-minute'],
    limits: [
      xRateLimit('requests-minute', 'requests', MINUTE_MS),
      xRateLimit('requests-hour', 'requests', HOUR_MS),
      xRateLimit('requests-day', 'requests', DAY_MS),
      xRateLimit('tokens-minute', 'tokens', MINUTE_MS),
      xRateLimit('tokens-hour', 'tokens', HOUR_MS),
      xRateLimit('tokens-day', 'tokens', DAY_MS),
    ],
    isReliable: true,
    source: 'https://inference-docs.cerebras.ai/support/rate-limits.md',
    date: '2026-11-20',
  },
  counts: [
    {
      counts: { reserveOutput: 'max_tokens', refundsUnused: false },
      source: 'https://inference-docs.cerebras.ai/support/rate-limits',
      date: '2026-11-20',
      note: 'It is unknown whether unused tokens are refunded.',
    },
  ],
  pricedAs: 'cerebras',
} satisfies Provider;
