import type { Provider } from './provider.ts';

/** Without `pricedAs`, because requests are charged as well. */
export const perplexity = {
  id: 'perplexity',
  namedBy: { portkey: ['perplexity-ai'] },
  baseUrl: 'https://api.perplexity.ai',
  openaiAt: '',
  models: ['sonar', 'sonar-*'],
  plans: [
    {
      plan: 'Lowest tier',
      models: ['sonar'],
      limits: { rpm: 50 },
      source: 'https://docs.perplexity.ai/docs/admin/rate-limits-usage-tiers',
      date: '2026-11-20',
    },
    {
      plan: 'Lowest tier',
      models: ['sonar-deep-research'],
      limits: { rpm: 5 },
      source: 'https://docs.perplexity.ai/docs/admin/rate-limits-usage-tiers',
      date: '2026-11-20',
    },
  ],
} satisfies Provider;
