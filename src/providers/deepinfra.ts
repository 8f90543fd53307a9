import type { Provider } from './provider.ts';

export const deepinfra = {
  id: 'deepinfra',
  baseUrl: 'https://api.deepinfra.com',
  openaiAt: '/v1/openai',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 200,
      source: 'https://deepinfra.com/docs/advanced/rate-limits',
      date: '2026-11-20',
      note: 'The provider allows 200 per model. Here all models share one pool of 200, which never exceeds the limit.',
    },
  ],
  pricedAs: 'deepinfra',
} satisfies Provider;
