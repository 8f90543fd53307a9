// Makers of models with one endpoint each. Each export is a provider.

import {
  MINUTE_MS,
  MONTH_MS,
  withoutReset,
  xRateLimit,
} from '../upstream/refusal/limit-headers.ts';
import { isSentence } from '../upstream/refusal/refusal-words.ts';
import type { Provider } from './provider.ts';

export const cohere = {
  id: 'cohere',
  baseUrl: 'https://api.cohere.com',
  openaiAt: '/compatibility/v1',
  models: ['command-*', 'c4ai-*', 'embed-english-*', 'embed-multilingual-*', 'embed-v4*'],
  plans: [
    {
      plan: 'Trial',
      limits: { rpm: 20 },
      source: 'https://docs.cohere.com/docs/rate-limits',
      date: '2026-11-20',
      note: 'Applies to each model separately.',
    },
    {
      plan: 'Production',
      limits: { rpm: 500 },
      source: 'https://docs.cohere.com/docs/rate-limits',
      date: '2026-11-20',
      note: 'Applies to each model separately.',
    },
  ],
  pricedAs: 'cohere',
} satisfies Provider;

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

export const minimax = {
  id: 'minimax',
  aliases: ['minimax-coding-plan'],
  baseUrl: 'https://api.minimax.io',
  anthropicAt: '/anthropic/v1',
  models: ['minimax-*', 'abab*'],
  accountSelectors: {
    headers: [],
    parameters: ['groupid'],
    source: 'https://platform.minimax.io/docs/api-reference',
    date: '2026-11-20',
  },
  refusals: [
    { kind: 'quota', scope: 'upstream', codes: ['1008'] },
    { kind: 'long_window', scope: 'upstream', codes: ['2056', '2062'] },
    { kind: 'concurrency', scope: 'model', codes: ['1041'] },
    { kind: 'ramp', scope: 'model', codes: ['2045'] },
    { kind: 'tokens', scope: 'model', codes: ['1039'] },
    { kind: 'requests', scope: 'model', codes: ['1002'] },
    // Unknown, timeout, internal, system. Reported inside a 200.
    { kind: 'error', scope: 'model', codes: ['1000', '1001', '1024', '1033'] },
  ],
  quirks: {
    codesFromMessage: /\((\d{4})\)$/m, // At the end of the message on OpenAI- and Anthropic-shaped routes.
  },
  pricedAs: 'minimax',
} satisfies Provider;

export const minimaxCn = {
  id: 'minimax-cn',
  aliases: ['minimax-cn-coding-plan'],
  namedBy: { clawith: ['minimax'], picoclaw: ['minimax'], hermes: ['minimax-china', 'minimax_cn'] },
  baseUrl: 'https://api.minimaxi.com',
  anthropicAt: '/anthropic/v1',
  accountSelectors: minimax.accountSelectors,
  refusals: minimax.refusals,
  quirks: minimax.quirks,
} satisfies Provider;

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

export const xai = {
  id: 'xai',
  namedBy: { hermes: ['grok'], portkey: ['x-ai'] },
  aliases: ['x.ai'],
  keyPrefixes: ['xai-'],
  baseUrl: 'https://api.x.ai',
  models: ['grok-*'],
  plans: [
    {
      plan: 'Tier 0',
      models: ['grok-4.5*', 'grok-4.6*', 'grok-4.7*'],
      limits: { starts_per_s: 150, tpm: 50_000_000 },
      source: 'https://www.developersdigest.tech/rate-limits/xai',
      date: '2026-10-17',
      note: 'Copied from docs.x.ai on that date. The limits apply to the whole team.',
    },
    {
      plan: 'Tier 4',
      models: ['grok-4.5*', 'grok-4.6*', 'grok-4.7*'],
      limits: { starts_per_s: 500, tpm: 100_000_000 },
      source: 'https://www.developersdigest.tech/rate-limits/xai',
      date: '2026-10-17',
      note: 'Copied from docs.x.ai on that date. The limits apply to the whole team.',
    },
  ],
  refusals: [
    {
      // With 403.
      kind: 'quota',
      scope: 'upstream',
      message: isSentence(
        /your (?:newly created )?team doesn't have any credits(?: or licenses)? yet\. you can purchase (?:those|credits) on https:\/\/console\.x\.ai[\w/-]{0,80}\.?/,
      ),
      onClientError: true,
    },
  ],
  counts: [
    {
      counts: { countsCacheReads: true },
      source: 'https://docs.x.ai/developers/rate-limits.md',
      date: '2026-10-05',
    },
  ],
  pricedAs: 'xai',
} satisfies Provider;
