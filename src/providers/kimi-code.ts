import { LIMITS_PAGE, moonshot } from './moonshot.ts';
import type { Provider } from './provider.ts';

export const kimiCode = {
  id: 'kimi-code',
  baseUrl: 'https://api.kimi.com',
  openaiAt: '/coding/v1',
  anthropicAt: '/coding/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-11-20',
      note: 'Assumed to keep the lowest tier of its maker. Clients that know caps keep to 1.',
    },
  ],
  quirks: moonshot.quirks,
} satisfies Provider;
