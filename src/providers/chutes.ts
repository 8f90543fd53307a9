import type { Provider } from './provider.ts';

export const chutes = {
  id: 'chutes',
  baseUrl: 'https://llm.chutes.ai',
} satisfies Provider;
