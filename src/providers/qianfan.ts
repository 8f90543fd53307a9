import type { Provider } from './provider.ts';

export const qianfan = {
  id: 'qianfan',
  aliases: ['baidu'],
  baseUrl: 'https://qianfan.baidubce.com',
  openaiAt: '/v2',
  accountSelectors: {
    headers: ['appid'],
    source: 'https://cloud.baidu.com/doc/qianfan-api/s/3m7of64lb',
    date: '2026-11-20',
  },
} satisfies Provider;
