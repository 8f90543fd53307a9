import type { Provider } from './provider.ts';

export const LIMITS_PAGE = 'https://platform.moonshot.ai/docs/pricing/limits';

export const moonshot = {
  id: 'moonshot',
  namedBy: { hermes: ['kimi-coding', 'kimi', 'moonshot'] },
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
      note: 'Tier 0. Tiers 1 to 5 allow 50, 100, 200, 400 and 1000 per organization.',
    },
  ],
  plans: [
    {
      plan: 'Tier 0',
      limits: { max_concurrency: 1, rpm: 3, tpm: 500_000, tpd: 1_500_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 1',
      limits: { max_concurrency: 50, rpm: 200 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 2',
      limits: { max_concurrency: 100, rpm: 500 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 3',
      limits: { max_concurrency: 200, rpm: 5_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 4',
      limits: { max_concurrency: 400, rpm: 5_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 5',
      limits: { max_concurrency: 1_000, rpm: 10_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
  ],
  // Counted by organization: platform.moonshot.ai/docs/pricing/limits, as of 2026-11-20.
  quirks: { countsByAccount: true },
  pricedAs: 'moonshotai',
} satisfies Provider;
