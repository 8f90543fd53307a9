import { dashscope } from './dashscope.ts';
import type { Provider } from './provider.ts';

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
