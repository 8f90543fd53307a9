import { dashscope } from './dashscope.ts';
import type { Provider } from './provider.ts';

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
