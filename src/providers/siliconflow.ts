import type { Provider } from './provider.ts';

export const siliconflow = {
  id: 'siliconflow',
  baseUrl: 'https://api.siliconflow.com',
} satisfies Provider;
