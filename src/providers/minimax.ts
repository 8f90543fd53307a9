import type { Provider } from './provider.ts';

export const minimax = {
  id: 'minimax',
  aliases: ['minimax-coding-plan'],
  baseUrl: 'https://api.minimax.io',
  anthropicAt: '/anthropic/v1',
  models: ['minimax-*', 'abab*'],
  accountSelectors: {
    headers: [],
    parameters: ['groupid'],
    source: 'https://platform.minimax.io/docs/api-reference',
    date: '2026-11-20',
  },
  refusals: [
    { kind: 'quota', scope: 'upstream', codes: ['1008'] },
    { kind: 'long_window', scope: 'upstream', codes: ['2056', '2062'] },
    { kind: 'concurrency', scope: 'model', codes: ['1041'] },
    { kind: 'ramp', scope: 'model', codes: ['2045'] },
    { kind: 'tokens', scope: 'model', codes: ['1039'] },
    { kind: 'requests', scope: 'model', codes: ['1002'] },
    // Unknown, timeout, internal, system. Reported inside a 200.
    { kind: 'error', scope: 'model', codes: ['1000', '1001', '1024', '1033'] },
  ],
  quirks: {
    codesFromMessage: /\((\d{4})\)$/m, // At the end of the message on OpenAI- and Anthropic-shaped routes.
  },
  pricedAs: 'minimax',
} satisfies Provider;
