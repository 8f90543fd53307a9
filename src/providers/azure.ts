import {
  MINUTE_MS,
  REQUESTS_PROBE,
  TOKENS_PROBE,
  xRateLimit,
} from '../upstream/refusal/header-families.ts';
import { TIERS } from './prices/tier-lists.ts';
import type { Provider } from './provider.ts';

export const azure = {
  id: 'azure',
  namedBy: {
    picoclaw: ['azure-openai'],
    hermes: ['azure-foundry'],
    portkey: ['azure-openai', 'azure-ai'],
  },
  baseUrl: null,
  hostGlobs: [
    'https://*.openai.azure.com',
    'https://*.services.ai.azure.com',
    'https://*.cognitiveservices.azure.com',
  ],
  hosts: /\.(?:openai|services\.ai|cognitiveservices)\.azure\.(?:com|us|cn)$/,
  dialect: 'azure',
  isKnownByDialect: true,
  limitHeaders: {
    refill: 'window',
    probes: [REQUESTS_PROBE, TOKENS_PROBE],
    limits: [
      xRateLimit('requests', 'requests', MINUTE_MS),
      xRateLimit('tokens', 'tokens', MINUTE_MS),
    ],
    isReliable: true,
    source: 'https://learn.microsoft.com/answers/5625878',
    date: '2025-11-17',
    note: 'The Responses API has sent -1 for unknown values.',
  },
  counts: [
    {
      counts: { reserveOutput: 'max_tokens', refundsUnused: true },
      source:
        'https://learn.microsoft.com/en-us/answers/questions/1381398/question-about-max-tokens-per-minute-in-azure-open',
      date: '2026-11-20',
      note: 'From an answer by Microsoft. Without `max_tokens`, the maximum output of the model is reserved.',
    },
  ],
  requestId: {
    header: 'apim-request-id',
    source: 'https://github.com/BerriAI/litellm/issues/38090',
    date: '2026-08-24',
  },
  pricedAs: 'azure',
  tiers: TIERS.azure,
} satisfies Provider;
