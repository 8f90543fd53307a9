import { VENDOR_PRICES } from './prices/lists/vendors.ts';
import type { Provider } from './provider.ts';

export const cohere = {
  id: 'cohere',
  baseUrl: 'https://api.cohere.com',
  openaiAt: '/compatibility/v1',
  models: ['command-*', 'c4ai-*', 'embed-english-*', 'embed-multilingual-*', 'embed-v4*'],
  prices: VENDOR_PRICES.cohere,
} satisfies Provider;
