import {
  DAY_MS,
  MINUTE_MS,
  REQUESTS_PROBE,
  xRateLimit,
} from '../upstream/refusal/header-families.ts';
import type { Provider } from './provider.ts';

export const digitalocean = {
  id: 'digitalocean',
  baseUrl: null,
  hosts: /\.do-ai\.run$/,
  limitHeaders: {
    refill: 'window',
    probes: [REQUESTS_PROBE, 'x-ratelimit-remaining-tokens-per-minute'],
    limits: [
      xRateLimit('requests', 'requests', MINUTE_MS),
      xRateLimit('tokens-per-minute', 'tokens', MINUTE_MS),
      xRateLimit('tokens-per-day', 'tokens', DAY_MS),
    ],
    isReliable: true,
    source: 'https://docs.digitalocean.com',
    date: '2026-07-13',
  },
} satisfies Provider;
