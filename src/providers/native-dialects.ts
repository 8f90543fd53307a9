import {
  COMMON_HEADERS,
  MINUTE_MS,
  REQUESTS_PROBE,
  TOKENS_PROBE,
  xRateLimit,
  ANTHROPIC_HEADERS,
} from '../upstream/refusal/limit-headers.ts';
import { isSentence } from '../upstream/refusal/refusal-words.ts';
import { TIERS } from './prices/tiers.ts';
import type { AccountSigns, Provider } from './provider.ts';

/** Makers whose own API is a dialect. Each export is a provider. */

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

const ANTHROPIC_LIMITS_PAGE = 'https://platform.claude.com/docs/en/api/rate-limits';

export const anthropic = {
  id: 'anthropic',
  namedBy: { picoclaw: ['anthropic-messages', 'claude'], hermes: ['claude', 'claude-code'] },
  baseUrl: 'https://api.anthropic.com',
  dialect: 'anthropic',
  openaiAt: '/v1', // Chat only: https://platform.claude.com/docs/en/api/openai-sdk
  models: ['claude-*'],
  account: {
    answers: { header: 'anthropic-organization-id', keyPrefix: 'sk-ant-oat' },
    source: 'https://platform.claude.com/docs/en/api/overview',
    date: '2026-11-20',
    note: 'OAuth tokens expire after a few hours, and each machine has its own. All seats of a team belong to one organization.',
  },
  accountSelectors: {
    headers: ['anthropic-workspace-id'],
    source: 'https://platform.claude.com/docs/en/api/overview',
    date: '2026-11-20',
  },
  plans: [
    {
      plan: 'Start',
      models: ['claude-fable-5*'],
      limits: { rpm: 1_000, itpm: 500_000, otpm: 100_000 },
      source: 'https://www.developersdigest.tech/rate-limits/anthropic',
      date: '2026-10-17',
      note: 'Copied from platform.claude.com on that date. The limits apply to the whole organization.',
    },
    {
      plan: 'Scale',
      models: ['claude-fable-5*'],
      limits: { rpm: 4_000, itpm: 4_000_000, otpm: 800_000 },
      source: 'https://www.developersdigest.tech/rate-limits/anthropic',
      date: '2026-10-17',
      note: 'Copied from platform.claude.com on that date. The limits apply to the whole organization.',
    },
  ],
  limitHeaders: {
    ...ANTHROPIC_HEADERS,
    isReliable: true,
    source: ANTHROPIC_LIMITS_PAGE,
    date: '2026-10-04',
    note: 'The remaining tokens are rounded to thousands. The limits of the priority tier and of fast mode are not read, because calls that exceed them continue at the standard tier.',
  },
  refusals: [
    {
      kind: 'quota',
      scope: 'upstream',
      message: isSentence(
        /your credit balance is too low(?: to access the (?:anthropic |claude )?api)?\.?(?: please go to plans & billing to upgrade or purchase credits\.?)?/,
      ),
      onClientError: true,
    },
    {
      // A limit that the account's operator has set.
      kind: 'long_window',
      scope: 'credential',
      message: isSentence(
        /you have reached your specified (?:workspace )?api usage limits\. you will regain access on \d{4}-\d\d-\d\d at \d\d:\d\d utc\.?/,
      ),
      onClientError: true,
    },
    {
      // A plan without the extra usage that some calls need.
      kind: 'never_fits',
      scope: 'call',
      message: isSentence(
        /extra usage is required for (?:long context requests|1m context)\.?/,
        /the long context beta is not (?:yet )?available for this subscription\.?/,
        /(?:third-party apps now draw from your extra usage, not your plan limits|you're out of extra usage)\. add more at claude\.ai\/settings\/usage and keep going\.?/,
      ),
      onClientError: true,
    },
  ],
  counts: [
    {
      counts: { reserveOutput: 'mean', countsCacheReads: false, refundsUnused: true },
      source: ANTHROPIC_LIMITS_PAGE,
      date: '2026-10-04',
      note: 'Output counts as it is written. In the past, `max_tokens` counted instead.',
    },
    {
      models: ['claude-3-5-haiku'],
      counts: { countsCacheReads: true },
      source: ANTHROPIC_LIMITS_PAGE,
      date: '2026-10-04',
    },
  ],
  pricedAs: 'anthropic',
  tiers: TIERS.anthropic,
} satisfies Provider;

export const gemini = {
  id: 'gemini',
  aliases: ['google'],
  keyPrefixes: ['aiza'],
  baseUrl: 'https://generativelanguage.googleapis.com',
  dialect: 'gemini',
  models: ['gemini-*', 'text-embedding-0*', 'imagen-*', 'veo-*', 'learnlm-*'],
  accountSelectors: {
    headers: ['x-goog-user-project'],
    parameters: ['userproject', '$userproject'],
    source: 'https://docs.cloud.google.com/apis/docs/system-parameters',
    date: '2026-11-20',
  },
  refusals: [
    {
      // The plan does not include the model. As seen 2026-01-16.
      kind: 'quota',
      scope: 'model',
      stage: 'plan',
      text: /quota exceeded for metric: [^\s,]{1,200}, limit: 0\b(?!\.)/,
    },
    { kind: 'long_window', scope: 'model', codes: ['quota_exceeded'] },
    {
      kind: 'overload',
      scope: 'model',
      text: /resource (?:has been )?exhausted|exceeded the provisioned throughput/,
      unlessQuotaFailure: true,
    },
  ],
  counts: [
    {
      counts: { reserveOutput: 'none' },
      source: 'https://ai.google.dev/gemini-api/docs/rate-limits',
      date: '2026-11-20',
      note: 'Its limit of tokens per minute counts only input.',
    },
  ],
  pricedAs: 'google',
  tiers: TIERS.gemini,
} satisfies Provider;

export const vertex = {
  id: 'vertex',
  namedBy: { portkey: ['vertex-ai'] },
  baseUrl: 'https://aiplatform.googleapis.com',
  hosts: /(?:^|[.-])aiplatform\.(?:[a-z0-9-]+\.rep\.)?googleapis\.com$/,
  dialect: 'gemini',
  openaiAt: null, // The path contains project and location.
  keyNamesAccount: false,
  accountSelectors: gemini.accountSelectors,
  refusals: gemini.refusals,
  pricedAs: 'google-vertex',
  tiers: TIERS.vertex,
  steering: {
    headers: ['x-goog-request-params'],
    starts: ['vertex-ai-llm-'],
    source:
      'https://cloud.google.com/vertex-ai/generative-ai/docs/provisioned-throughput/use-provisioned-throughput',
    date: '2026-11-20',
  },
} satisfies Provider;
