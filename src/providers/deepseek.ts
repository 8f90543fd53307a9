import type { Provider } from './provider.ts';

const LIMITS_PAGE = 'https://api-docs.deepseek.com/quick_start/rate_limit';

export const deepseek = {
  id: 'deepseek',
  baseUrl: 'https://api.deepseek.com',
  anthropicAt: '/anthropic/v1',
  models: ['deepseek-*'],
  limits: [
    {
      modelPrefix: 'deepseek-v4-pro',
      maxConcurrency: 500,
      source: LIMITS_PAGE,
      date: '2026-11-20',
    },
    {
      modelPrefix: 'deepseek-flash',
      formerPrefixes: ['deepseek-v4-flash'],
      maxConcurrency: 2500,
      source: LIMITS_PAGE,
      date: '2026-11-20',
    },
  ],
  // Its only limit, according to api-docs.deepseek.com/quick_start/rate_limit, as of 2026-11-20.
  refusals: [{ kind: 'concurrency', scope: 'model', statuses: [429] }],
  pricedAs: 'deepseek',
} satisfies Provider;
