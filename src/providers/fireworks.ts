import {
  MINUTE_MS,
  REQUESTS_PROBE,
  withoutReset,
  xRateLimit,
} from '../upstream/refusal/header-families.ts';
import { isSentence } from '../upstream/refusal/own-words.ts';
import type { Provider } from './provider.ts';

export const fireworks = {
  id: 'fireworks',
  namedBy: { portkey: ['fireworks-ai'] },
  baseUrl: 'https://api.fireworks.ai',
  openaiAt: '/inference/v1',
  anthropicAt: '/inference/v1',
  limitHeaders: {
    refill: 'continuous',
    probes: ['x-ratelimit-remaining-tokens-prompt', REQUESTS_PROBE],
    limits: [
      withoutReset(xRateLimit('requests', 'requests', MINUTE_MS)),
      withoutReset(xRateLimit('tokens-prompt', 'input_tokens', MINUTE_MS)),
      withoutReset(xRateLimit('tokens-cache-adjusted-prompt', 'input_tokens', MINUTE_MS)),
      withoutReset(xRateLimit('tokens-generated', 'output_tokens', MINUTE_MS)),
    ],
    isReliable: false,
    source: 'https://docs.fireworks.ai/serverless/rate-limits',
    date: '2026-11-20',
    note: 'The limits change with the load, and calls near them succeed.',
  },
  refusals: [
    {
      // With 412. As reported by users of gateways, 2026-07.
      kind: 'quota',
      scope: 'upstream',
      message: isSentence(
        /account [\w.-]{1,64} is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices\.(?: please go to https:\/\/[\w./-]{1,80} for more information\.?)?/,
      ),
      onClientError: true,
    },
  ],
  pricedAs: 'fireworks-ai',
} satisfies Provider;
