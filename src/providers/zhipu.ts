import type { Provider } from './provider.ts';

const LIMITS_TABLE = 'https://github.com/NousResearch/hermes-agent/pull/7479';
const REPORTED = 'As reported by users. The provider shows its limits only to the account.';

export const zai = {
  id: 'zai',
  namedBy: { hermes: ['glm', 'z-ai', 'z.ai', 'zhipu'], portkey: ['z-ai'] },
  aliases: ['z.ai'],
  baseUrl: 'https://api.z.ai',
  openaiAt: '/api/paas/v4',
  anthropicAt: '/api/anthropic/v1',
  models: ['glm-*', 'cogview-*', 'cogvideox-*'],
  account: {
    claims: [['api_key']],
    source: 'https://github.com/zeroclaw-labs/zeroclaw/pull/4911',
    date: '2026-03-28',
    note: 'Clients sign a new token with their key every few minutes. The token contains the first half of the key.',
  },
  // By model, for one account.
  limits: [
    {
      modelPrefix: 'glm-4.',
      maxConcurrency: 10,
      source: LIMITS_TABLE,
      date: '2026-11-20',
      note: REPORTED,
    },
    {
      modelPrefix: 'glm-5',
      maxConcurrency: 2,
      source: LIMITS_TABLE,
      date: '2026-11-20',
      note: REPORTED,
    },
    {
      modelPrefix: 'glm-5.1',
      maxConcurrency: 1,
      source: LIMITS_TABLE,
      date: '2026-11-20',
      note: REPORTED,
    },
    {
      modelPrefix: 'glm-5.2',
      maxConcurrency: 10,
      source: 'https://github.com/zai-org/GLM-5/issues/83',
      date: '2026-06-23',
      note: 'As shown on the dashboard of one account.',
    },
  ],
  refusals: [
    // In arrears, account locked, plan expired.
    { kind: 'quota', scope: 'upstream', codes: ['1113', '1112', '1121', '1309'] },
    { kind: 'quota', scope: 'model', codes: ['1311'] }, // Not in the plan.
    {
      // Windows of hours, weeks and months of a plan. 1313 lasts until the user applies for its removal.
      kind: 'long_window',
      scope: 'upstream',
      codes: ['1308', '1310', '1313', '1316', '1317', '1318', '1319', '1320', '1321'],
    },
    { kind: 'long_window', scope: 'model', codes: ['1304'] },
    { kind: 'concurrency', scope: 'model', codes: ['1302'] },
    { kind: 'overload', scope: 'model', codes: ['1305', '1312'] },
    { kind: 'requests', scope: 'model', codes: ['1303'] },
    // A failed call, a network error.
    { kind: 'error', scope: 'model', codes: ['1230', '1234'] },
  ],
  quirks: {
    resetTimesAre: '+08:00',
  },
  pricedAs: 'zai',
} satisfies Provider;

/** Concurrent calls that users of the plan measured, for all models. */
const MEASURED_MAX = 3;

export const zaiCoding = {
  id: 'zai-coding',
  // From models.dev, and the agents that use it.
  aliases: ['zai-coding-plan', 'z.ai-coding-plan'],
  namedBy: { picoclaw: ['zai', 'z-ai', 'z.ai'] },
  baseUrl: 'https://api.z.ai',
  openaiAt: '/api/coding/paas/v4',
  anthropicAt: '/api/anthropic/v1',
  account: zai.account,
  limits: zai.limits.map((limit) => ({
    ...limit,
    maxConcurrency: Math.min(limit.maxConcurrency, MEASURED_MAX),
    source: 'https://docs.z.ai/devpack/usage-policy',
    date: '2026-11-20',
    note: 'The plan publishes no number. Users measured 1 to 3 concurrent calls.',
  })),
  refusals: zai.refusals,
  quirks: zai.quirks,
} satisfies Provider;

export const zhipu = {
  id: 'zhipu',
  aliases: ['zhipuai', 'bigmodel'],
  namedBy: { picoclaw: ['glm'] },
  baseUrl: 'https://open.bigmodel.cn',
  openaiAt: '/api/paas/v4',
  anthropicAt: '/api/anthropic/v1',
  account: zai.account,
  limits: zai.limits.map((limit) => ({
    ...limit,
    note: 'Assumed to have the same limits as the international host.',
  })),
  refusals: zai.refusals,
  quirks: zai.quirks,
  pricedAs: 'zhipuai',
} satisfies Provider;

export const zhipuCoding = {
  id: 'zhipu-coding',
  aliases: ['zhipuai-coding-plan', 'zhipu-coding-plan'],
  baseUrl: 'https://open.bigmodel.cn',
  openaiAt: '/api/coding/paas/v4',
  anthropicAt: '/api/anthropic/v1',
  account: zaiCoding.account,
  limits: zaiCoding.limits.map((limit) => ({
    ...limit,
    note: 'Assumed to have the same limits as the international host.',
  })),
  refusals: zaiCoding.refusals,
  quirks: zaiCoding.quirks,
} satisfies Provider;
