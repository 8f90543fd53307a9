import type { Provider } from './provider.ts';

export const novita = {
  id: 'novita',
  baseUrl: 'https://api.novita.ai',
  openaiAt: '/openai',
} satisfies Provider;
