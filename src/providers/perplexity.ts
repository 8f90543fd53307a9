import type { Provider } from './provider.ts';

export const perplexity = {
  id: 'perplexity',
  baseUrl: 'https://api.perplexity.ai',
  openaiAt: '',
  models: ['sonar', 'sonar-*'],
} satisfies Provider;
