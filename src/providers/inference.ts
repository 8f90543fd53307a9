import {
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  xRateLimit,
  REQUESTS_PROBE,
  withoutReset,
  TOKENS_PROBE,
} from '../upstream/refusal/limit-headers.ts';
import { isSentence } from '../upstream/refusal/refusal-words.ts';
import { TIERS } from './prices/tiers.ts';
import type { Provider } from './provider.ts';

/** Gateways, and hosts of models with rules of their own. Each export is a provider. */

const BURNDOWN_PAGE =
  'https://docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html';

export const bedrock = {
  id: 'bedrock',
  baseUrl: null,
  hosts: /^bedrock-(?:runtime|mantle)[a-z0-9.-]*\.(?:amazonaws\.com|api\.aws)$/,
  dialect: 'bedrock',
  isKnownByDialect: true,
  refusals: [
    // With 503: anthropics/claude-code#562.
    { kind: 'concurrency', scope: 'model', text: /too many connections/ },
    { kind: 'requests', scope: 'model', text: /too many requests/ },
    // Some gateways send it with status 400 and the code in a header.
    { kind: 'requests', scope: 'model', codes: ['throttlingexception'], onClientError: true },
  ],
  counts: [
    {
      counts: { reserveOutput: 'max_tokens', countsCacheReads: false, refundsUnused: true },
      source: BURNDOWN_PAGE,
      date: '2026-11-20',
      note: 'Cache reads are reserved as well, and released when the call ends.',
    },
    {
      models: ['claude-opus-', 'claude-sonnet-', 'claude-haiku-', 'claude-fable-'],
      counts: { outputWeight: 5 },
      source: BURNDOWN_PAGE,
      date: '2026-11-20',
      note: 'Documented for Claude 4 and assumed for its successors. Older models have the version number before the name.',
    },
  ],
  requestId: {
    header: 'x-amzn-requestid',
    source: 'https://github.com/BerriAI/litellm/issues/38357',
    date: '2026-08-26',
  },
  pricedAs: 'amazon-bedrock',
  tiers: TIERS.bedrock,
} satisfies Provider;

export const cerebras = {
  id: 'cerebras',
  baseUrl: 'https://api.cerebras.ai',
  plans: [
    {
      plan: 'Free Trial',
      models: ['gpt-oss-120b'],
      limits: { rpm: 5, tpm: 30_000, tpd: 1_000_000 },
      source: 'https://inference-docs.cerebras.ai/support/rate-limits',
      date: '2026-07-18',
    },
    {
      plan: 'Developer',
      models: ['gpt-oss-120b'],
      limits: { rpm: 1_000, tpm: 1_000_000 },
      source: 'https://inference-docs.cerebras.ai/support/rate-limits',
      date: '2026-07-18',
    },
  ],
  limitHeaders: {
    refill: 'window',
    probes: ['x-ratelimit-remaining-requests-minute', 'x-ratelimit-remaining-tokens-minute'],
    limits: [
      xRateLimit('requests-minute', 'requests', MINUTE_MS),
      xRateLimit('requests-hour', 'requests', HOUR_MS),
      xRateLimit('requests-day', 'requests', DAY_MS),
      xRateLimit('tokens-minute', 'tokens', MINUTE_MS),
      xRateLimit('tokens-hour', 'tokens', HOUR_MS),
      xRateLimit('tokens-day', 'tokens', DAY_MS),
    ],
    isReliable: true,
    source: 'https://inference-docs.cerebras.ai/support/rate-limits.md',
    date: '2026-11-20',
  },
  counts: [
    {
      counts: { reserveOutput: 'max_tokens', refundsUnused: false },
      source: 'https://inference-docs.cerebras.ai/support/rate-limits',
      date: '2026-11-20',
      note: 'It is unknown whether unused tokens are refunded.',
    },
  ],
  pricedAs: 'cerebras',
} satisfies Provider;

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

export const groq = {
  id: 'groq',
  keyPrefixes: ['gsk_'],
  baseUrl: 'https://api.groq.com',
  openaiAt: '/openai/v1',
  plans: [
    {
      plan: 'Free',
      models: ['llama-3.3-70b-versatile'],
      limits: { rpm: 30, rpd: 1_000, tpm: 12_000, tpd: 100_000 },
      source: 'https://console.groq.com/docs/rate-limits',
      date: '2026-06-04',
    },
    {
      plan: 'Free',
      models: ['openai/gpt-oss-120b', 'openai/gpt-oss-20b'],
      limits: { rpm: 30, rpd: 1_000, tpm: 8_000, tpd: 200_000 },
      source: 'https://console.groq.com/docs/rate-limits',
      date: '2026-06-04',
    },
    {
      plan: 'Free',
      models: ['llama-3.1-8b-instant'],
      limits: { rpm: 30, rpd: 14_400, tpm: 6_000, tpd: 500_000 },
      source: 'https://console.groq.com/docs/rate-limits',
      date: '2026-06-04',
    },
  ],
  limitHeaders: {
    refill: 'continuous',
    probes: [REQUESTS_PROBE, TOKENS_PROBE],
    // Its `requests` headers count a day.
    limits: [xRateLimit('requests', 'requests', DAY_MS), xRateLimit('tokens', 'tokens', MINUTE_MS)],
    isReliable: true,
    source: 'https://console.groq.com/docs/rate-limits.md',
    date: '2026-11-20',
  },
  pricedAs: 'groq',
  tiers: TIERS.groq,
} satisfies Provider;

export const ollama = {
  id: 'ollama',
  namedBy: { hermes: ['ollama-cloud'] },
  baseUrl: 'https://ollama.com',
  dialect: 'ollama',
  anthropicAt: '/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: 'https://github.com/RedBeret/awesome-ollama-models',
      date: '2026-07-12',
      note: 'Free plan. Pro allows 3, Max 10. From a community-maintained list.',
    },
  ],
  quirks: { countsByAccount: true }, // The cloud limits by plan, as of 2026-11-20.
} satisfies Provider;

export const siliconflow = {
  id: 'siliconflow',
  baseUrl: 'https://api.siliconflow.com',
  // With 403: the balance is exhausted. https://docs.siliconflow.com, 2026-11-27.
  refusals: [{ kind: 'quota', scope: 'upstream', codes: ['30001'], onClientError: true }],
} satisfies Provider;

export const siliconflowCn = {
  id: 'siliconflow-cn',
  namedBy: { picoclaw: ['siliconflow'], portkey: ['siliconflow'] },
  baseUrl: 'https://api.siliconflow.cn',
  refusals: siliconflow.refusals,
} satisfies Provider;

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

export const openrouter = {
  id: 'openrouter',
  namedBy: { hermes: ['or', 'open-router'] },
  baseUrl: 'https://openrouter.ai',
  openaiAt: '/api/v1',
  anthropicAt: '/api/v1',
  plans: [
    {
      plan: 'Less than 10 credits bought',
      models: ['*:free'],
      limits: { rpm: 20, rpd: 50 },
      source: 'https://openrouter.ai/docs/api_reference/limits',
      date: '2026-11-20',
    },
    {
      plan: '10 credits bought',
      models: ['*:free'],
      limits: { rpm: 20, rpd: 1_000 },
      source: 'https://openrouter.ai/docs/api_reference/limits',
      date: '2026-11-20',
    },
  ],
  limitHeaders: {
    refill: 'window',
    probes: ['x-ratelimit-remaining'],
    limits: [
      {
        dimension: 'requests',
        windowMs: null, // A minute or a day. The headers do not name it.
        limit: 'x-ratelimit-limit',
        remaining: 'x-ratelimit-remaining',
        reset: 'x-ratelimit-reset',
      },
    ],
    isReliable: true,
    source: 'https://openrouter.ai/docs/api_reference/limits',
    date: '2026-11-20',
    note: 'Sent only with refusals.',
  },
  refusals: [
    {
      kind: 'quota',
      scope: 'upstream',
      message: isSentence(
        /key limit exceeded \((?:daily|weekly|monthly|total) limit\)\. manage it using https:\/\/openrouter\.ai\/[\w/-]{1,80}/,
      ),
      onClientError: true,
    },
    {
      // The price of `max_tokens` is reserved, so a shorter call may still succeed. Seen 2026-08-24.
      kind: 'never_fits',
      scope: 'call',
      stage: 'price',
      text: /fewer max_tokens.{0,80}can only afford [1-9]|prompt tokens limit exceeded/,
    },
  ],
  steering: {
    starts: ['openrouter-'],
    source: 'https://openrouter.ai/docs/api-reference/overview',
    date: '2026-11-20',
  },
} satisfies Provider;

export const vercel = {
  id: 'vercel',
  namedBy: { hermes: ['ai-gateway'] },
  baseUrl: 'https://ai-gateway.vercel.sh',
  anthropicAt: '/v1',
  steering: {
    starts: ['vercel-', 'ai-gateway-'],
    source: 'https://vercel.com/docs/ai-gateway',
    date: '2026-11-20',
  },
} satisfies Provider;
