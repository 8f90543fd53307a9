import type { Provider } from './provider.ts';

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
