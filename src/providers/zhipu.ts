import { zai } from './zai.ts';
import { VENDOR_PRICES } from './prices/lists/vendors.ts';
import type { Provider } from './provider.ts';

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
  prices: VENDOR_PRICES.zhipu,
} satisfies Provider;
