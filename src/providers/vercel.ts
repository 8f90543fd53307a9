import type { Provider } from './provider.ts';

export const vercel = {
  id: 'vercel',
  namedBy: { hermes: ['ai-gateway'] },
  baseUrl: 'https://ai-gateway.vercel.sh',
  anthropicAt: '/v1',
  steering: {
    starts: ['vercel-', 'ai-gateway-'],
    source: 'https://vercel.com/docs/ai-gateway',
    date: '2026-11-20',
  },
} satisfies Provider;
