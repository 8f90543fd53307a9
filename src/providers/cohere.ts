import type { Provider } from './provider.ts';

export const cohere = {
  id: 'cohere',
  baseUrl: 'https://api.cohere.com',
  openaiAt: '/compatibility/v1',
  models: ['command-*', 'c4ai-*', 'embed-english-*', 'embed-multilingual-*', 'embed-v4*'],
  plans: [
    {
      plan: 'Trial',
      limits: { rpm: 20 },
      source: 'https://docs.cohere.com/docs/rate-limits',
      date: '2026-11-20',
      note: 'Applies to each model separately.',
    },
    {
      plan: 'Production',
      limits: { rpm: 500 },
      source: 'https://docs.cohere.com/docs/rate-limits',
      date: '2026-11-20',
      note: 'Applies to each model separately.',
    },
  ],
  pricedAs: 'cohere',
} satisfies Provider;
