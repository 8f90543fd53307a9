import { LIMITS_PAGE, moonshot } from './moonshot.ts';
import type { Provider } from './provider.ts';

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
