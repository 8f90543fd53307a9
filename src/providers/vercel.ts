import type { Provider } from './provider.ts';

export const vercel = {
  id: 'vercel',
  baseUrl: 'https://ai-gateway.vercel.sh',
  anthropicAt: '/v1',
} satisfies Provider;
