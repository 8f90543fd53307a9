import { isSentence } from '../upstream/refusal/refusal-words.ts';
import type { Provider } from './provider.ts';

const LIMITS_PAGE = 'https://platform.moonshot.ai/docs/pricing/limits';

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

export const moonshotCn = {
  id: 'moonshot-cn',
  namedBy: {
    clawith: ['kimi'],
    picoclaw: ['moonshot', 'kimi'],
    hermes: ['kimi-coding-cn', 'kimi-cn'],
    portkey: ['moonshot'],
  },
  baseUrl: 'https://api.moonshot.cn',
  anthropicAt: '/anthropic/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-09-01',
      note: 'Assumed to have the same tiers as the international host.',
    },
  ],
  quirks: moonshot.quirks,
} satisfies Provider;

export const kimiCode = {
  id: 'kimi-code',
  aliases: ['kimi-for-coding'],
  baseUrl: 'https://api.kimi.com',
  openaiAt: '/coding/v1',
  anthropicAt: '/coding/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-11-20',
      note: 'Assumed to have the lowest tier of its vendor. Clients with built-in limits use 1.',
    },
  ],
  refusals: [
    {
      // With 403. As reported by clients, 2026-11.
      kind: 'long_window',
      scope: 'upstream',
      message: isSentence(
        /you've reached your usage limit for this (?:period|billing cycle)\. your quota will be refreshed in the next (?:period|cycle)\.?(?: upgrade to get more: https:\/\/[\w./-]{1,80})?/,
      ),
      onClientError: true,
    },
  ],
  quirks: moonshot.quirks,
} satisfies Provider;
