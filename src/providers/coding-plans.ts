import { isSentence } from '../upstream/refusal/refusal-words.ts';
import type { Provider } from './provider.ts';

/** Makers of models that sell coding plans at separate endpoints. Each export is a provider. */

export const dashscope = {
  id: 'dashscope',
  namedBy: { clawith: ['qwen'], picoclaw: ['qwen-portal', 'qwen'] },
  baseUrl: 'https://dashscope.aliyuncs.com',
  openaiAt: '/compatible-mode/v1',
  anthropicAt: '/apps/anthropic/v1',
  accountSelectors: {
    headers: ['x-dashscope-workspace'],
    source: 'https://help.aliyun.com/zh/model-studio/use-workspace',
    date: '2026-11-20',
  },
  refusals: [
    { kind: 'quota', scope: 'model', stage: 'plan', text: /free allocated quota exceeded/ },
    // The windows of a coding plan, which count all models.
    {
      kind: 'long_window',
      scope: 'credential',
      text: /\b(?:hour|day|week|month) allocated quota exceeded/,
    },
    {
      kind: 'tokens',
      scope: 'model',
      codes: ['throttling.allocationquota', 'insufficient_quota'],
      text: /allocated quota exceeded|exceeded your current quota/,
    },
  ],
  quirks: { quotaMeansTokens: true },
} satisfies Provider;

/** The hosted Qwen models. The open weights, which resellers also serve, have their size in the name. */
const QWEN_MODELS = [
  'qwen-max*',
  'qwen-plus*',
  'qwen-turbo*',
  'qwen-flash*',
  'qwen-long*',
  'qwen-vl-*',
  'qwen-mt-*',
  'qwen-omni-*',
  'qwen3-max*',
  'qwen3-coder-plus*',
  'qwen3-coder-flash*',
  'qwen3-vl-plus*',
  'qvq-max*',
  'qwq-plus*',
];

export const dashscopeIntl = {
  id: 'dashscope-intl',
  namedBy: {
    picoclaw: ['qwen-intl', 'qwen-international'],
    hermes: ['alibaba', 'dashscope', 'qwen'],
    portkey: ['dashscope'],
  },
  baseUrl: 'https://dashscope-intl.aliyuncs.com',
  openaiAt: '/compatible-mode/v1',
  anthropicAt: '/apps/anthropic/v1',
  accountSelectors: dashscope.accountSelectors,
  models: QWEN_MODELS,
  refusals: dashscope.refusals,
  quirks: dashscope.quirks,
  pricedAs: 'alibaba',
} satisfies Provider;

export const dashscopeCoding = {
  id: 'dashscope-coding',
  aliases: ['alibaba-coding-plan'],
  namedBy: {
    picoclaw: [
      'alibaba-coding',
      'coding-plan',
      'qwen-coding',
      'alibaba-coding-anthropic',
      'coding-plan-anthropic',
    ],
  },
  baseUrl: 'https://coding-intl.dashscope.aliyuncs.com',
  anthropicAt: '/apps/anthropic/v1',
  refusals: dashscope.refusals,
  quirks: dashscope.quirks,
} satisfies Provider;

const LIMITS_PAGE = 'https://platform.moonshot.ai/docs/pricing/limits';

export const moonshot = {
  id: 'moonshot',
  namedBy: { hermes: ['kimi-coding', 'kimi', 'moonshot'] },
  aliases: ['kimi', 'moonshotai'],
  baseUrl: 'https://api.moonshot.ai',
  anthropicAt: '/anthropic/v1',
  models: ['kimi-*', 'moonshot-*'],
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-09-01',
      note: 'Tier 0. Tiers 1 to 5 allow 50, 100, 200, 400 and 1000 per organization.',
    },
  ],
  plans: [
    {
      plan: 'Tier 0',
      limits: { max_concurrency: 1, rpm: 3, tpm: 500_000, tpd: 1_500_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 1',
      limits: { max_concurrency: 50, rpm: 200 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 2',
      limits: { max_concurrency: 100, rpm: 500 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 3',
      limits: { max_concurrency: 200, rpm: 5_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 4',
      limits: { max_concurrency: 400, rpm: 5_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
    {
      plan: 'Tier 5',
      limits: { max_concurrency: 1_000, rpm: 10_000 },
      source: LIMITS_PAGE,
      date: '2026-02-01',
    },
  ],
  // Counted by organization: platform.moonshot.ai/docs/pricing/limits, as of 2026-11-20.
  quirks: { countsByAccount: true },
  pricedAs: 'moonshotai',
} satisfies Provider;

export const moonshotCn = {
  id: 'moonshot-cn',
  namedBy: {
    clawith: ['kimi'],
    picoclaw: ['moonshot', 'kimi'],
    hermes: ['kimi-coding-cn', 'kimi-cn'],
    portkey: ['moonshot'],
  },
  baseUrl: 'https://api.moonshot.cn',
  anthropicAt: '/anthropic/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-09-01',
      note: 'Assumed to have the same tiers as the international host.',
    },
  ],
  quirks: moonshot.quirks,
} satisfies Provider;

export const kimiCode = {
  id: 'kimi-code',
  aliases: ['kimi-for-coding'],
  baseUrl: 'https://api.kimi.com',
  openaiAt: '/coding/v1',
  anthropicAt: '/coding/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-11-20',
      note: 'Assumed to have the lowest tier of its vendor. Clients with built-in limits use 1.',
    },
  ],
  refusals: [
    {
      // With 403. As reported by clients, 2026-11.
      kind: 'long_window',
      scope: 'upstream',
      message: isSentence(
        /you've reached your usage limit for this (?:period|billing cycle)\. your quota will be refreshed in the next (?:period|cycle)\.?(?: upgrade to get more: https:\/\/[\w./-]{1,80})?/,
      ),
      onClientError: true,
    },
  ],
  quirks: moonshot.quirks,
} satisfies Provider;

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
