/** A concurrency limit that a provider is known to keep, before anybody configured one. */
export interface KnownLimit {
  /** As `providerOf` names it: the id of an upstream of the catalog, whose host decides. */
  readonly provider: string;
  /** In lower case. Empty: the limit holds for the whole upstream. */
  readonly modelPrefix: string;
  /** Former names of the same models, which count against the same limit. In lower case. */
  readonly formerPrefixes?: readonly string[];
  readonly maxConcurrency: number;
  /** Where the figure was published or seen. */
  readonly source: string;
  /** When it was last known to hold, as `YYYY-MM-DD`; the first of a month or year where no day is known. */
  readonly date: string;
  readonly note?: string;
}

/** The limit assumed where nothing is known. */
export const UNKNOWN_LIMIT = 64;

const DEEPSEEK_PAGE = 'https://api-docs.deepseek.com/quick_start/rate_limit';
const ZAI_TABLE = 'https://github.com/NousResearch/hermes-agent/pull/7479';
const ZAI_NOTE = 'As users reported it; the provider shows its figures to the account alone.';
const ZHIPU_NOTE = 'Assumed to keep the limits of the international host.';
const MOONSHOT_PAGE = 'https://platform.moonshot.ai/docs/pricing/limits';

/** By model, for one account. */
const ZAI_LIMITS: readonly KnownLimit[] = [
  {
    provider: 'zai',
    modelPrefix: 'glm-4.',
    maxConcurrency: 10,
    source: ZAI_TABLE,
    date: '2026-11-20',
    note: ZAI_NOTE,
  },
  {
    provider: 'zai',
    modelPrefix: 'glm-5',
    maxConcurrency: 2,
    source: ZAI_TABLE,
    date: '2026-11-20',
    note: ZAI_NOTE,
  },
  {
    provider: 'zai',
    modelPrefix: 'glm-5.1',
    maxConcurrency: 1,
    source: ZAI_TABLE,
    date: '2026-11-20',
    note: ZAI_NOTE,
  },
  {
    provider: 'zai',
    modelPrefix: 'glm-5.2',
    maxConcurrency: 10,
    source: 'https://github.com/zai-org/GLM-5/issues/83',
    date: '2026-06-23',
    note: 'As one account saw it on its dashboard.',
  },
];

/**
 * The built-in table. Where a figure differs by plan, the row has the smallest: it is a starting point
 * that an operator overrides with a group, and too low costs a wait where too high costs refusals.
 * A request rate is no concurrency, so providers that publish only rates have no row.
 */
export const KNOWN_LIMITS: readonly KnownLimit[] = [
  {
    provider: 'deepinfra',
    modelPrefix: '',
    maxConcurrency: 200,
    source: 'https://deepinfra.com/docs/advanced/rate-limits',
    date: '2026-11-20',
    note: 'The provider counts 200 per model; here all models share one pool of 200, which is never too many.',
  },
  {
    provider: 'deepseek',
    modelPrefix: 'deepseek-v4-pro',
    maxConcurrency: 500,
    source: DEEPSEEK_PAGE,
    date: '2026-11-20',
  },
  {
    provider: 'deepseek',
    modelPrefix: 'deepseek-flash',
    formerPrefixes: ['deepseek-v4-flash'],
    maxConcurrency: 2500,
    source: DEEPSEEK_PAGE,
    date: '2026-11-20',
  },
  {
    provider: 'kimi-code',
    modelPrefix: '',
    maxConcurrency: 1,
    source: MOONSHOT_PAGE,
    date: '2026-11-20',
    note: 'Assumed to keep the lowest tier of its maker. Clients that know caps keep to 1.',
  },
  {
    provider: 'moonshot',
    modelPrefix: '',
    maxConcurrency: 1,
    source: MOONSHOT_PAGE,
    date: '2026-09-01',
    note: 'Tier 0. Tiers 1 to 5: 50, 100, 200, 400, 1000, for the organization.',
  },
  {
    provider: 'moonshot-cn',
    modelPrefix: '',
    maxConcurrency: 1,
    source: MOONSHOT_PAGE,
    date: '2026-09-01',
    note: 'Assumed to keep the tiers of the international host.',
  },
  {
    provider: 'ollama',
    modelPrefix: '',
    maxConcurrency: 1,
    source: 'https://github.com/RedBeret/awesome-ollama-models',
    date: '2026-07-12',
    note: 'Free plan. Pro 3, Max 10. A list that the community keeps.',
  },
  {
    provider: 'scaleway',
    modelPrefix: '',
    maxConcurrency: 25,
    source: 'https://github.com/scaleway/docs-content/pull/4789',
    date: '2025-01-01',
    note: 'Sessions over all models of the organization; published in 2025.',
  },
  ...ZAI_LIMITS,
  ...ZAI_LIMITS.map((row) => ({ ...row, provider: 'zhipu', note: ZHIPU_NOTE })),
];

/**
 * The row that holds for a call, or null. The longest prefix wins. A model is compared in lower case
 * and without any path before it (`models/…`, `vendor/…`); a null model meets only rows that hold for
 * the whole upstream.
 */
export function knownLimitFor(provider: string, model: string | null): KnownLimit | null {
  const name = (model ?? '').toLowerCase().split('/').at(-1) ?? '';
  let best: KnownLimit | null = null;
  let longest = -1;
  for (const row of KNOWN_LIMITS) {
    if (row.provider !== provider) continue;
    for (const prefix of [row.modelPrefix, ...(row.formerPrefixes ?? [])]) {
      if (!name.startsWith(prefix) || prefix.length <= longest) continue;
      best = row;
      longest = prefix.length;
    }
  }
  return best;
}

/** All rows of a provider. */
export function knownLimitsOf(provider: string): KnownLimit[] {
  return KNOWN_LIMITS.filter((row) => row.provider === provider);
}

/** Whether the limit at a provider depends on the model, so that a call's model must be known. */
export function hasModelRows(provider: string): boolean {
  return KNOWN_LIMITS.some((row) => row.provider === provider && row.modelPrefix !== '');
}
