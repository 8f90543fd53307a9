import { VENDOR_PRICES } from './prices/lists/vendors.ts';
import type { Provider } from './provider.ts';

export const LIMITS_PAGE = 'https://platform.moonshot.ai/docs/pricing/limits';

export const moonshot = {
  id: 'moonshot',
  aliases: ['kimi', 'moonshotai'],
  baseUrl: 'https://api.moonshot.ai',
  anthropicAt: '/anthropic/v1',
  models: ['kimi-*', 'moonshot-*'],
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-09-01',
      note: 'Tier 0. Tiers 1 to 5: 50, 100, 200, 400, 1000, for the organization.',
    },
  ],
  // By organization: platform.moonshot.ai/docs/pricing/limits, as of 2026-11-20.
  quirks: { countsByAccount: true },
  prices: VENDOR_PRICES.moonshot,
} satisfies Provider;
