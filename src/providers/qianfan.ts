import type { Provider } from './provider.ts';

export const qianfan = {
  id: 'qianfan',
  aliases: ['baidu'],
  baseUrl: 'https://qianfan.baidubce.com',
  openaiAt: '/v2',
} satisfies Provider;
