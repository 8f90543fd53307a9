import { zai } from './zai.ts';
import type { Provider } from './provider.ts';

/** Concurrent calls that users of the plan measured, for all models. */
const MEASURED_MAX = 3;

export const zaiCoding = {
  id: 'zai-coding',
  // From models.dev, and the agents that use it.
  aliases: ['zai-coding-plan', 'z.ai-coding-plan'],
  namedBy: { picoclaw: ['zai', 'z-ai', 'z.ai'] },
  baseUrl: 'https://api.z.ai',
  openaiAt: '/api/coding/paas/v4',
  anthropicAt: '/api/anthropic/v1',
  account: zai.account,
  limits: zai.limits.map((limit) => ({
    ...limit,
    maxConcurrency: Math.min(limit.maxConcurrency, MEASURED_MAX),
    source: 'https://docs.z.ai/devpack/usage-policy',
    date: '2026-11-20',
    note: 'The plan publishes no number. Users measured 1 to 3 concurrent calls.',
  })),
  refusals: zai.refusals,
  quirks: zai.quirks,
} satisfies Provider;
