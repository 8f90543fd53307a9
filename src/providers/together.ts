import { SECOND_MS } from '../upstream/refusal/header-families.ts';
import type { Provider } from './provider.ts';

export const together = {
  id: 'together',
  namedBy: { portkey: ['together-ai'] },
  baseUrl: 'https://api.together.xyz',
  limitHeaders: {
    refill: 'window',
    probes: ['x-ratelimit-remaining', 'x-tokenlimit-remaining'],
    limits: [
      {
        dimension: 'requests',
        windowMs: SECOND_MS,
        limit: 'x-ratelimit-limit',
        remaining: 'x-ratelimit-remaining',
        reset: 'x-ratelimit-reset',
      },
      {
        dimension: 'tokens',
        windowMs: SECOND_MS,
        limit: 'x-tokenlimit-limit',
        remaining: 'x-tokenlimit-remaining',
        reset: null,
      },
    ],
    isReliable: false,
    source: 'https://docs.together.ai/docs/rate-limits',
    date: '2026-11-20',
    note: 'Per second. The limits change with the usage.',
  },
  pricedAs: 'togetherai',
} satisfies Provider;
