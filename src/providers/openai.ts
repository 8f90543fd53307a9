import {
  COMMON_HEADERS,
  MINUTE_MS,
  REQUESTS_PROBE,
  TOKENS_PROBE,
  xRateLimit,
} from '../upstream/refusal/limit-headers.ts';
import type { AccountSigns, Provider } from './provider.ts';
import { TIERS } from './prices/tiers.ts';

/** The account of a ChatGPT token: the workspace, and the user of the seat. */
const CHATGPT_ACCOUNT = {
  claims: [
    ['https://api.openai.com/auth', 'chatgpt_account_id'],
    ['https://api.openai.com/auth', 'chatgpt_user_id'],
  ],
  source: 'https://github.com/openai/codex',
  date: '2026-11-20',
  note: 'Codex refreshes its token automatically. Each user of a workspace has separate limits.',
} satisfies AccountSigns;

export const chatgpt = {
  id: 'chatgpt',
  baseUrl: null,
  hosts: /^chatgpt\.com$/,
  // Codex connects to it over WebSocket first.
  speaksTurns: true,
  account: CHATGPT_ACCOUNT,
  accountSelectors: {
    headers: ['chatgpt-account-id'],
    source: 'https://github.com/openai/codex',
    date: '2026-11-20',
  },
} satisfies Provider;

export const openai = {
  id: 'openai',
  namedBy: {
    clawith: ['openai-response', 'openai_response', 'openairesponses'],
    picoclaw: ['gpt'],
    hermes: ['openai-api'],
  },
  baseUrl: 'https://api.openai.com',
  models: [
    'gpt-*',
    'o1*',
    'o3*',
    'o4*',
    'chatgpt-*',
    'codex-mini-*',
    'computer-use-preview*',
    'text-embedding-3-*',
    'text-embedding-ada-*',
    'omni-moderation-*',
    'text-moderation-*',
    'dall-e-*',
    'sora-*',
    'tts-1*',
    'whisper-1', // The other Whisper models are open weights that resellers serve.
  ],
  // https://developers.openai.com/api/docs/guides/websocket-mode
  speaksTurns: true,
  account: CHATGPT_ACCOUNT,
  accountSelectors: {
    headers: ['openai-organization', 'openai-project'],
    source: 'https://platform.openai.com/docs/api-reference/authentication',
    date: '2026-11-20',
  },
  plans: [
    {
      plan: 'Tier 1',
      models: ['gpt-5.4*', 'gpt-5.5*'],
      limits: { rpm: 1_000, tpm: 500_000 },
      source: 'https://llmcapplanner.vercel.app/v1/rate-limits.json',
      date: '2026-05-15',
      note: 'Copied from platform.openai.com on that date, which lists them by model. The limits apply to the whole organization.',
    },
  ],
  limitHeaders: {
    ...COMMON_HEADERS,
    isReliable: true,
    source: 'https://developers.openai.com/api/docs/guides/rate-limits',
    date: '2026-10-04',
  },
  counts: [
    {
      counts: { reserveOutput: 'max_tokens', failedCount: true, refundsUnused: false },
      source: 'https://platform.openai.com/docs/guides/rate-limits',
      date: '2026-10-04',
      note: 'According to its cookbook, refused requests count. Refunds are not documented.',
    },
  ],
  pricedAs: 'openai',
  tiers: TIERS.openai,
} satisfies Provider;

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
