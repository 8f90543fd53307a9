import type { Provider } from './provider.ts';

export const baseten = {
  id: 'baseten',
  baseUrl: 'https://inference.baseten.co',
} satisfies Provider;
