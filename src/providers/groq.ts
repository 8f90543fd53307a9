import {
  DAY_MS,
  MINUTE_MS,
  REQUESTS_PROBE,
  TOKENS_PROBE,
  xRateLimit,
} from '../upstream/refusal/header-families.ts';
import { TIERS } from './prices/tier-lists.ts';
import type { Provider } from './provider.ts';

export const groq = {
  id: 'groq',
  keyPrefixes: ['gsk_'],
  baseUrl: 'https://api.groq.com',
  openaiAt: '/openai/v1',
  plans: [
    {
      plan: 'Free',
      models: ['llama-3.3-70b-versatile'],
      limits: { rpm: 30, rpd: 1_000, tpm: 12_000, tpd: 100_000 },
      source: 'https://console.groq.com/docs/rate-limits',
      date: '2026-06-04',
    },
    {
      plan: 'Free',
      models: ['openai/gpt-oss-120b', 'openai/gpt-oss-20b'],
      limits: { rpm: 30, rpd: 1_000, tpm: 8_000, tpd: 200_000 },
      source: 'https://console.groq.com/docs/rate-limits',
      date: '2026-06-04',
    },
    {
      plan: 'Free',
      models: ['llama-3.1-8b-instant'],
      limits: { rpm: 30, rpd: 14_400, tpm: 6_000, tpd: 500_000 },
      source: 'https://console.groq.com/docs/rate-limits',
      date: '2026-06-04',
    },
  ],
  limitHeaders: {
    refill: 'continuous',
    probes: [REQUESTS_PROBE, TOKENS_PROBE],
    // Its `requests` headers count a day.
    limits: [xRateLimit('requests', 'requests', DAY_MS), xRateLimit('tokens', 'tokens', MINUTE_MS)],
    isReliable: true,
    source: 'https://console.groq.com/docs/rate-limits.md',
    date: '2026-11-20',
  },
  pricedAs: 'groq',
  tiers: TIERS.groq,
} satisfies Provider;
