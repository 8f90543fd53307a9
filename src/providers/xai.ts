import { isSentence } from '../upstream/refusal/own-words.ts';
import type { Provider } from './provider.ts';

export const xai = {
  id: 'xai',
  namedBy: { hermes: ['grok'], portkey: ['x-ai'] },
  aliases: ['x.ai'],
  keyPrefixes: ['xai-'],
  baseUrl: 'https://api.x.ai',
  models: ['grok-*'],
  plans: [
    {
      plan: 'Tier 0',
      models: ['grok-4.5*', 'grok-4.6*', 'grok-4.7*'],
      limits: { starts_per_s: 150, tpm: 50_000_000 },
      source: 'https://www.developersdigest.tech/rate-limits/xai',
      date: '2026-10-17',
      note: 'Copied from docs.x.ai on that date. The limits apply to the whole team.',
    },
    {
      plan: 'Tier 4',
      models: ['grok-4.5*', 'grok-4.6*', 'grok-4.7*'],
      limits: { starts_per_s: 500, tpm: 100_000_000 },
      source: 'https://www.developersdigest.tech/rate-limits/xai',
      date: '2026-10-17',
      note: 'Copied from docs.x.ai on that date. The limits apply to the whole team.',
    },
  ],
  refusals: [
    {
      // With 403.
      kind: 'quota',
      scope: 'upstream',
      message: isSentence(
        /your (?:newly created )?team doesn't have any credits(?: or licenses)? yet\. you can purchase (?:those|credits) on https:\/\/console\.x\.ai[\w/-]{0,80}\.?/,
      ),
      onClientError: true,
    },
  ],
  counts: [
    {
      counts: { countsCacheReads: true },
      source: 'https://docs.x.ai/developers/rate-limits.md',
      date: '2026-10-05',
    },
  ],
  pricedAs: 'xai',
} satisfies Provider;
