import { TIERS } from './prices/tiers.ts';
import type { Provider } from './provider.ts';

export const gemini = {
  id: 'gemini',
  aliases: ['google'],
  keyPrefixes: ['aiza'],
  baseUrl: 'https://generativelanguage.googleapis.com',
  dialect: 'gemini',
  models: ['gemini-*', 'text-embedding-0*', 'imagen-*', 'veo-*', 'learnlm-*'],
  accountSelectors: {
    headers: ['x-goog-user-project'],
    parameters: ['userproject', '$userproject'],
    source: 'https://docs.cloud.google.com/apis/docs/system-parameters',
    date: '2026-11-20',
  },
  refusals: [
    {
      // The plan does not include the model. As seen 2026-01-16.
      kind: 'quota',
      scope: 'model',
      stage: 'plan',
      text: /quota exceeded for metric: [^\s,]{1,200}, limit: 0\b(?!\.)/,
    },
    { kind: 'long_window', scope: 'model', codes: ['quota_exceeded'] },
    {
      kind: 'overload',
      scope: 'model',
      text: /resource (?:has been )?exhausted|exceeded the provisioned throughput/,
      unlessQuotaFailure: true,
    },
  ],
  counts: [
    {
      counts: { reserveOutput: 'none' },
      source: 'https://ai.google.dev/gemini-api/docs/rate-limits',
      date: '2026-11-20',
      note: 'Its limit of tokens per minute counts only input.',
    },
  ],
  pricedAs: 'google',
  tiers: TIERS.gemini,
} satisfies Provider;

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
