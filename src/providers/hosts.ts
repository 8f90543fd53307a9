// Hosts without refusals of their own, by name. Each export is a provider.

import {
  DAY_MS,
  MINUTE_MS,
  REQUESTS_PROBE,
  xRateLimit,
  COMMON_HEADERS,
  SECOND_MS,
} from '../upstream/refusal/limit-headers.ts';
import type { Provider } from './provider.ts';

export const baseten = {
  id: 'baseten',
  baseUrl: 'https://inference.baseten.co',
} satisfies Provider;

export const chutes = {
  id: 'chutes',
  baseUrl: 'https://llm.chutes.ai',
} satisfies Provider;

export const deepinfra = {
  id: 'deepinfra',
  baseUrl: 'https://api.deepinfra.com',
  openaiAt: '/v1/openai',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 200,
      source: 'https://deepinfra.com/docs/advanced/rate-limits',
      date: '2026-11-20',
      note: 'The provider allows 200 per model. Here all models share one pool of 200, which never exceeds the limit.',
    },
  ],
  pricedAs: 'deepinfra',
} satisfies Provider;

export const digitalocean = {
  id: 'digitalocean',
  baseUrl: null,
  hosts: /\.do-ai\.run$/,
  limitHeaders: {
    refill: 'window',
    probes: [REQUESTS_PROBE, 'x-ratelimit-remaining-tokens-per-minute'],
    limits: [
      xRateLimit('requests', 'requests', MINUTE_MS),
      xRateLimit('tokens-per-minute', 'tokens', MINUTE_MS),
      xRateLimit('tokens-per-day', 'tokens', DAY_MS),
    ],
    isReliable: true,
    source: 'https://docs.digitalocean.com',
    date: '2026-07-13',
  },
} satisfies Provider;

export const githubModels = {
  id: 'github-models',
  namedBy: { portkey: ['github'] },
  baseUrl: 'https://models.github.ai',
  openaiAt: '/inference',
} satisfies Provider;

export const huggingface = {
  id: 'huggingface',
  namedBy: { hermes: ['hf', 'hugging-face'] },
  baseUrl: 'https://router.huggingface.co',
  accountSelectors: {
    headers: ['x-hf-bill-to'],
    source: 'https://huggingface.co/docs/inference-providers/pricing',
    date: '2026-11-20',
  },
} satisfies Provider;

export const hyperbolic = {
  id: 'hyperbolic',
  baseUrl: 'https://api.hyperbolic.xyz',
} satisfies Provider;

export const nebius = {
  id: 'nebius',
  namedBy: { hermes: ['nebius-token-factory'] },
  baseUrl: 'https://api.tokenfactory.nebius.com',
  limitHeaders: {
    ...COMMON_HEADERS,
    isReliable: false,
    source: 'Public clients that read them',
    date: '2026-11-20',
    note: 'Its limits are dynamic.',
  },
} satisfies Provider;

export const novita = {
  id: 'novita',
  namedBy: { portkey: ['novita-ai'] },
  baseUrl: 'https://api.novita.ai',
  openaiAt: '/openai',
} satisfies Provider;

/** Without `pricedAs`, because the list has a price of 0 for most models. */
export const nvidia = {
  id: 'nvidia',
  keyPrefixes: ['nvapi-'],
  baseUrl: 'https://integrate.api.nvidia.com',
} satisfies Provider;

/** Without `pricedAs`, because requests are charged as well. */
export const perplexity = {
  id: 'perplexity',
  namedBy: { portkey: ['perplexity-ai'] },
  baseUrl: 'https://api.perplexity.ai',
  openaiAt: '',
  models: ['sonar', 'sonar-*'],
  plans: [
    {
      plan: 'Lowest tier',
      models: ['sonar'],
      limits: { rpm: 50 },
      source: 'https://docs.perplexity.ai/docs/admin/rate-limits-usage-tiers',
      date: '2026-11-20',
    },
    {
      plan: 'Lowest tier',
      models: ['sonar-deep-research'],
      limits: { rpm: 5 },
      source: 'https://docs.perplexity.ai/docs/admin/rate-limits-usage-tiers',
      date: '2026-11-20',
    },
  ],
} satisfies Provider;

export const qianfan = {
  id: 'qianfan',
  aliases: ['baidu'],
  baseUrl: 'https://qianfan.baidubce.com',
  openaiAt: '/v2',
  accountSelectors: {
    headers: ['appid'],
    source: 'https://cloud.baidu.com/doc/qianfan-api/s/3m7of64lb',
    date: '2026-11-20',
  },
} satisfies Provider;

export const sambanova = {
  id: 'sambanova',
  baseUrl: 'https://api.sambanova.ai',
  limitHeaders: {
    refill: 'window',
    probes: [REQUESTS_PROBE, 'x-ratelimit-remaining-requests-day'],
    limits: [
      xRateLimit('requests', 'requests', MINUTE_MS),
      xRateLimit('requests-day', 'requests', DAY_MS),
    ],
    isReliable: false,
    source: 'Public clients that read them',
    date: '2026-11-20',
    note: 'Sources disagree about the format of the reset.',
  },
} satisfies Provider;

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

export const together = {
  id: 'together',
  namedBy: { portkey: ['together-ai'] },
  baseUrl: 'https://api.together.xyz',
  limitHeaders: {
    refill: 'window',
    probes: ['x-ratelimit-remaining', 'x-tokenlimit-remaining'],
    limits: [
      {
        dimension: 'requests',
        windowMs: SECOND_MS,
        limit: 'x-ratelimit-limit',
        remaining: 'x-ratelimit-remaining',
        reset: 'x-ratelimit-reset',
      },
      {
        dimension: 'tokens',
        windowMs: SECOND_MS,
        limit: 'x-tokenlimit-limit',
        remaining: 'x-tokenlimit-remaining',
        reset: null,
      },
    ],
    isReliable: false,
    source: 'https://docs.together.ai/docs/rate-limits',
    date: '2026-11-20',
    note: 'Per second. The limits change with the usage.',
  },
  pricedAs: 'togetherai',
} satisfies Provider;

export const wandb = {
  id: 'wandb',
  baseUrl: 'https://api.inference.wandb.ai',
} satisfies Provider;
