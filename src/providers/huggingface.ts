import type { Provider } from './provider.ts';

export const huggingface = {
  id: 'huggingface',
  baseUrl: 'https://router.huggingface.co',
} satisfies Provider;
