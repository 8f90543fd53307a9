import {
  DAY_MS,
  MINUTE_MS,
  REQUESTS_PROBE,
  xRateLimit,
} from '../upstream/refusal/header-families.ts';
import type { Provider } from './provider.ts';

export const sambanova = {
  id: 'sambanova',
  baseUrl: 'https://api.sambanova.ai',
  limitHeaders: {
    refill: 'window',
    probes: [REQUESTS_PROBE, 'x-ratelimit-remaining-requests-day'],
    limits: [
      xRateLimit('requests', 'requests', MINUTE_MS),
      xRateLimit('requests-day', 'requests', DAY_MS),
    ],
    isReliable: false,
    source: 'Public clients that read them',
    date: '2026-11-20',
    note: 'Sources disagree about the format of the reset.',
  },
} satisfies Provider;
