import { isSentence } from '../upstream/refusal/own-words.ts';
import { LIMITS_PAGE, moonshot } from './moonshot.ts';
import type { Provider } from './provider.ts';

export const kimiCode = {
  id: 'kimi-code',
  aliases: ['kimi-for-coding'],
  baseUrl: 'https://api.kimi.com',
  openaiAt: '/coding/v1',
  anthropicAt: '/coding/v1',
  limits: [
    {
      modelPrefix: '',
      maxConcurrency: 1,
      source: LIMITS_PAGE,
      date: '2026-11-20',
      note: 'Assumed to have the lowest tier of its vendor. Clients with built-in limits use 1.',
    },
  ],
  refusals: [
    {
      // With 403. As reported by clients, 2026-11.
      kind: 'long_window',
      scope: 'upstream',
      message: isSentence(
        /you've reached your usage limit for this (?:period|billing cycle)\. your quota will be refreshed in the next (?:period|cycle)\.?(?: upgrade to get more: https:\/\/[\w./-]{1,80})?/,
      ),
      onClientError: true,
    },
  ],
  quirks: moonshot.quirks,
} satisfies Provider;
