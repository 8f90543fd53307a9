import type { Provider } from './provider.ts';

export const ollama = {
  id: 'ollama',
  namedBy: { hermes: ['ollama-cloud'] },
  baseUrl: 'https://ollama.com',
  dialect: 'ollama',
  anthropicAt: '/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: 'https://github.com/RedBeret/awesome-ollama-models',
      date: '2026-07-12',
      note: 'Free plan. Pro allows 3, Max 10. From a community-maintained list.',
    },
  ],
  quirks: { countsByAccount: true }, // The cloud limits by plan, as of 2026-11-20.
} satisfies Provider;
