import { CHATGPT_ACCOUNT } from './chatgpt.ts';
import { COMMON_HEADERS } from '../upstream/refusal/header-families.ts';
import { TIERS } from './prices/tier-lists.ts';
import type { Provider } from './provider.ts';

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
