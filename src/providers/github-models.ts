import type { Provider } from './provider.ts';

export const githubModels = {
  id: 'github-models',
  namedBy: { portkey: ['github'] },
  baseUrl: 'https://models.github.ai',
  openaiAt: '/inference',
} satisfies Provider;
