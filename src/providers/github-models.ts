import type { Provider } from './provider.ts';

export const githubModels = {
  id: 'github-models',
  baseUrl: 'https://models.github.ai',
  openaiAt: '/inference',
} satisfies Provider;
