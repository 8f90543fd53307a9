import {
  MINUTE_MS,
  MONTH_MS,
  withoutReset,
  xRateLimit,
} from '../upstream/refusal/header-families.ts';
import type { Provider } from './provider.ts';

export const mistral = {
  id: 'mistral',
  namedBy: { portkey: ['mistral-ai'] },
  baseUrl: 'https://api.mistral.ai',
  models: [
    'mistral-*',
    'codestral-*',
    'devstral-*',
    'labs-devstral-*',
    'magistral-*',
    'ministral-*',
    'pixtral-*',
    'voxtral-*',
    'open-mistral-*',
    'open-mixtral-*',
  ],
  plans: [
    {
      plan: 'Free',
      limits: { starts_per_s: 1, tpm: 500_000 },
      source: 'https://docs.mistral.ai/deployment/ai-studio/tier',
      date: '2026-11-20',
    },
  ],
  limitHeaders: {
    refill: 'continuous',
    probes: ['x-ratelimit-remaining-req-minute', 'x-ratelimit-remaining-tokens-minute'],
    limits: [
      withoutReset(xRateLimit('req-minute', 'requests', MINUTE_MS)),
      withoutReset(xRateLimit('tokens-minute', 'tokens', MINUTE_MS)),
      withoutReset(xRateLimit('tokens-month', 'tokens', MONTH_MS)),
    ],
    isReliable: true,
    source: 'Eight public clients that read them',
    date: '2026-11-20',
  },
  refusals: [
    {
      // The plan does not include the model. As seen 2026-11-20.
      kind: 'quota',
      scope: 'model',
      stage: 'plan',
      zeroHeader: 'x-ratelimit-limit-req-minute',
    },
    { kind: 'overload', scope: 'model', codes: ['3505'] },
  ],
  pricedAs: 'mistral',
} satisfies Provider;
