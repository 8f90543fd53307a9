import { zaiCoding } from './zai-coding.ts';
import type { Provider } from './provider.ts';

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
