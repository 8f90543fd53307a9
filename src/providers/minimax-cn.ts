import { minimax } from './minimax.ts';
import type { Provider } from './provider.ts';

export const minimaxCn = {
  id: 'minimax-cn',
  aliases: ['minimax-cn-coding-plan'],
  namedBy: { clawith: ['minimax'], picoclaw: ['minimax'], hermes: ['minimax-china', 'minimax_cn'] },
  baseUrl: 'https://api.minimaxi.com',
  anthropicAt: '/anthropic/v1',
  accountSelectors: minimax.accountSelectors,
  refusals: minimax.refusals,
  quirks: minimax.quirks,
} satisfies Provider;
