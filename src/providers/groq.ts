import {
  DAY_MS,
  MINUTE_MS,
  REQUESTS_PROBE,
  TOKENS_PROBE,
  xRateLimit,
} from '../upstream/refusal/header-families.ts';
import { HOST_PRICES } from './prices/lists/hosts.ts';
import type { Provider } from './provider.ts';

export const groq = {
  id: 'groq',
  keyPrefixes: ['gsk_'],
  baseUrl: 'https://api.groq.com',
  openaiAt: '/openai/v1',
  limitHeaders: {
    refill: 'continuous',
    probes: [REQUESTS_PROBE, TOKENS_PROBE],
    // Its requests are those of a day.
    limits: [xRateLimit('requests', 'requests', DAY_MS), xRateLimit('tokens', 'tokens', MINUTE_MS)],
    isReliable: true,
    source: 'https://console.groq.com/docs/rate-limits.md',
    date: '2026-11-20',
  },
  prices: HOST_PRICES.groq,
} satisfies Provider;
