import { VENDOR_PRICES } from './prices/lists/vendors.ts';
import type { Provider } from './provider.ts';

export const xai = {
  id: 'xai',
  aliases: ['x.ai'],
  keyPrefixes: ['xai-'],
  baseUrl: 'https://api.x.ai',
  models: ['grok-*'],
  counts: [
    {
      counts: { countsCacheReads: true },
      source: 'https://docs.x.ai/developers/rate-limits.md',
      date: '2026-10-05',
    },
  ],
  prices: VENDOR_PRICES.xai,
} satisfies Provider;
