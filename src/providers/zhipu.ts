import { zai } from './zai.ts';
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
  pricedAs: 'zhipuai',
} satisfies Provider;
