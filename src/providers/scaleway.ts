import type { Provider } from './provider.ts';

export const scaleway = {
  id: 'scaleway',
  baseUrl: 'https://api.scaleway.ai',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 25,
      source: 'https://github.com/scaleway/docs-content/pull/4789',
      date: '2025-01-01',
      note: 'Sessions over all models of the organization. Published in 2025.',
    },
  ],
} satisfies Provider;
