import type { Provider } from './provider.ts';

export const novita = {
  id: 'novita',
  namedBy: { portkey: ['novita-ai'] },
  baseUrl: 'https://api.novita.ai',
  openaiAt: '/openai',
} satisfies Provider;
