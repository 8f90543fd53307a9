import { TIERS } from './prices/tier-lists.ts';
import type { Provider } from './provider.ts';

const BURNDOWN_PAGE =
  'https://docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html';

export const bedrock = {
  id: 'bedrock',
  baseUrl: null,
  hosts: /^bedrock-(?:runtime|mantle)[a-z0-9.-]*\.(?:amazonaws\.com|api\.aws)$/,
  dialect: 'bedrock',
  isKnownByDialect: true,
  refusals: [
    // With 503: anthropics/claude-code#562.
    { kind: 'concurrency', scope: 'model', text: /too many connections/ },
    { kind: 'requests', scope: 'model', text: /too many requests/ },
    // Some gateways send it with status 400 and the code in a header.
    { kind: 'requests', scope: 'model', codes: ['throttlingexception'], onClientError: true },
  ],
  counts: [
    {
      counts: { reserveOutput: 'max_tokens', countsCacheReads: false, refundsUnused: true },
      source: BURNDOWN_PAGE,
      date: '2026-11-20',
      note: 'Cache reads are reserved as well, and released when the call ends.',
    },
    {
      models: ['claude-opus-', 'claude-sonnet-', 'claude-haiku-', 'claude-fable-'],
      counts: { outputWeight: 5 },
      source: BURNDOWN_PAGE,
      date: '2026-11-20',
      note: 'Documented for Claude 4 and assumed for its successors. Older models have the version number before the name.',
    },
  ],
  requestId: {
    header: 'x-amzn-requestid',
    source: 'https://github.com/BerriAI/litellm/issues/38357',
    date: '2026-08-26',
  },
  pricedAs: 'amazon-bedrock',
  tiers: TIERS.bedrock,
} satisfies Provider;
