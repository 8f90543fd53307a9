import type { Provider } from './provider.ts';

export const workersAi = {
  id: 'workers-ai',
  baseUrl: 'https://api.cloudflare.com',
  openaiAt: null, // The path contains the account.
  plans: [
    {
      plan: 'Workers AI',
      limits: { rpm: 300 },
      source: 'https://developers.cloudflare.com/workers-ai/platform/limits/',
      date: '2026-09-17',
      note: 'For text generation. Some models have other limits.',
    },
  ],
  refusals: [
    { kind: 'long_window', scope: 'upstream', codes: ['3036', '4006'] },
    { kind: 'overload', scope: 'model', codes: ['3040'] },
  ],
  pricedAs: 'cloudflare-workers-ai',
} satisfies Provider;
