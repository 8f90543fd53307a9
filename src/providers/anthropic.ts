import { ANTHROPIC_HEADERS } from '../upstream/refusal/limit-headers.ts';
import { isSentence } from '../upstream/refusal/refusal-words.ts';
import { TIERS } from './prices/tiers.ts';
import type { Provider } from './provider.ts';

const LIMITS_PAGE = 'https://platform.claude.com/docs/en/api/rate-limits';

export const anthropic = {
  id: 'anthropic',
  namedBy: { picoclaw: ['anthropic-messages', 'claude'], hermes: ['claude', 'claude-code'] },
  baseUrl: 'https://api.anthropic.com',
  dialect: 'anthropic',
  openaiAt: '/v1', // Chat only: https://platform.claude.com/docs/en/api/openai-sdk
  models: ['claude-*'],
  account: {
    answers: { header: 'anthropic-organization-id', keyPrefix: 'sk-ant-oat' },
    source: 'https://platform.claude.com/docs/en/api/overview',
    date: '2026-11-20',
    note: 'OAuth tokens expire after a few hours, and each machine has its own. All seats of a team belong to one organization.',
  },
  accountSelectors: {
    headers: ['anthropic-workspace-id'],
    source: 'https://platform.claude.com/docs/en/api/overview',
    date: '2026-11-20',
  },
  plans: [
    {
      plan: 'Start',
      models: ['claude-fable-5*'],
      limits: { rpm: 1_000, itpm: 500_000, otpm: 100_000 },
      source: 'https://www.developersdigest.tech/rate-limits/anthropic',
      date: '2026-10-17',
      note: 'Copied from platform.claude.com on that date. The limits apply to the whole organization.',
    },
    {
      plan: 'Scale',
      models: ['claude-fable-5*'],
      limits: { rpm: 4_000, itpm: 4_000_000, otpm: 800_000 },
      source: 'https://www.developersdigest.tech/rate-limits/anthropic',
      date: '2026-10-17',
      note: 'Copied from platform.claude.com on that date. The limits apply to the whole organization.',
    },
  ],
  limitHeaders: {
    ...ANTHROPIC_HEADERS,
    isReliable: true,
    source: LIMITS_PAGE,
    date: '2026-10-04',
    note: 'The remaining tokens are rounded to thousands. The limits of the priority tier and of fast mode are not read, because calls that exceed them continue at the standard tier.',
  },
  refusals: [
    {
      kind: 'quota',
      scope: 'upstream',
      message: isSentence(
        /your credit balance is too low(?: to access the (?:anthropic |claude )?api)?\.?(?: please go to plans & billing to upgrade or purchase credits\.?)?/,
      ),
      onClientError: true,
    },
    {
      // A limit that the account's operator has set.
      kind: 'long_window',
      scope: 'credential',
      message: isSentence(
        /you have reached your specified (?:workspace )?api usage limits\. you will regain access on \d{4}-\d\d-\d\d at \d\d:\d\d utc\.?/,
      ),
      onClientError: true,
    },
    {
      // A plan without the extra usage that some calls need.
      kind: 'never_fits',
      scope: 'call',
      message: isSentence(
        /extra usage is required for (?:long context requests|1m context)\.?/,
        /the long context beta is not (?:yet )?available for this subscription\.?/,
        /(?:third-party apps now draw from your extra usage, not your plan limits|you're out of extra usage)\. add more at claude\.ai\/settings\/usage and keep going\.?/,
      ),
      onClientError: true,
    },
  ],
  counts: [
    {
      counts: { reserveOutput: 'mean', countsCacheReads: false, refundsUnused: true },
      source: LIMITS_PAGE,
      date: '2026-10-04',
      note: 'Output counts as it is written. In the past, `max_tokens` counted instead.',
    },
    {
      models: ['claude-3-5-haiku'],
      counts: { countsCacheReads: true },
      source: LIMITS_PAGE,
      date: '2026-10-04',
    },
  ],
  pricedAs: 'anthropic',
  tiers: TIERS.anthropic,
} satisfies Provider;
