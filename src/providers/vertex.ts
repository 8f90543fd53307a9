import { gemini } from './gemini.ts';
import { TIERS } from './prices/tier-lists.ts';
import type { Provider } from './provider.ts';

export const vertex = {
  id: 'vertex',
  namedBy: { portkey: ['vertex-ai'] },
  baseUrl: 'https://aiplatform.googleapis.com',
  hosts: /(?:^|[.-])aiplatform\.(?:[a-z0-9-]+\.rep\.)?googleapis\.com$/,
  dialect: 'gemini',
  openaiAt: null, // The path contains project and location.
  keyNamesAccount: false,
  accountSelectors: gemini.accountSelectors,
  refusals: gemini.refusals,
  pricedAs: 'google-vertex',
  tiers: TIERS.vertex,
  steering: {
    headers: ['x-goog-request-params'],
    starts: ['vertex-ai-llm-'],
    source:
      'https://cloud.google.com/vertex-ai/generative-ai/docs/provisioned-throughput/use-provisioned-throughput',
    date: '2026-11-20',
  },
} satisfies Provider;
