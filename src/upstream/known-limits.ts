/** A concurrency limit that a provider is known to keep, before anybody configured one. */
export interface KnownLimit {
  readonly upstream: string;
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
const MOONSHOT_PAGE = 'https://platform.moonshot.ai/docs/pricing/limits';

/**
 * The built-in table. Where a figure differs by plan, the row has the smallest: it is a starting point
 * that an operator overrides with a group, and too low costs a wait where too high costs refusals.
 * A request rate is no concurrency, so providers that publish only rates have no row.
 */
export const KNOWN_LIMITS: readonly KnownLimit[] = [
  {
    upstream: 'deepinfra',
    modelPrefix: '',
    maxConcurrency: 200,
    source: 'https://deepinfra.com/docs/advanced/rate-limits',
    date: '2026-11-20',
    note: 'The provider counts 200 per model; here all models share one pool of 200, which is never too many.',
  },
  {
    upstream: 'deepseek',
    modelPrefix: 'deepseek-v4-pro',
    maxConcurrency: 500,
    source: DEEPSEEK_PAGE,
    date: '2026-11-20',
  },
  {
    upstream: 'deepseek',
    modelPrefix: 'deepseek-flash',
    formerPrefixes: ['deepseek-v4-flash'],
    maxConcurrency: 2500,
    source: DEEPSEEK_PAGE,
    date: '2026-11-20',
  },
  {
    upstream: 'moonshot',
    modelPrefix: '',
    maxConcurrency: 1,
    source: MOONSHOT_PAGE,
    date: '2026-09-01',
    note: 'Tier 0. Tiers 1 to 5: 50, 100, 200, 400, 1000, for the organization.',
  },
  {
    upstream: 'moonshot-cn',
    modelPrefix: '',
    maxConcurrency: 1,
    source: MOONSHOT_PAGE,
    date: '2026-09-01',
    note: 'Assumed to keep the tiers of the international host.',
  },
  {
    upstream: 'ollama',
    modelPrefix: '',
    maxConcurrency: 1,
    source: 'https://github.com/RedBeret/awesome-ollama-models',
    date: '2026-07-12',
    note: 'Free plan. Pro 3, Max 10. A list that the community keeps.',
  },
  {
    upstream: 'scaleway',
    modelPrefix: '',
    maxConcurrency: 25,
    source: 'https://github.com/scaleway/docs-content/pull/4789',
    date: '2025-01-01',
    note: 'Sessions over all models of the organization; published in 2025.',
  },
  {
    upstream: 'zai',
    modelPrefix: 'glm-4.',
    maxConcurrency: 10,
    source: ZAI_TABLE,
    date: '2026-11-20',
    note: ZAI_NOTE,
  },
  {
    upstream: 'zai',
    modelPrefix: 'glm-5',
    maxConcurrency: 2,
    source: ZAI_TABLE,
    date: '2026-11-20',
    note: ZAI_NOTE,
  },
  {
    upstream: 'zai',
    modelPrefix: 'glm-5.1',
    maxConcurrency: 1,
    source: ZAI_TABLE,
    date: '2026-11-20',
    note: ZAI_NOTE,
  },
  {
    upstream: 'zai',
    modelPrefix: 'glm-5.2',
    maxConcurrency: 10,
    source: 'https://github.com/zai-org/GLM-5/issues/83',
    date: '2026-06-23',
    note: 'As one account saw it on its dashboard.',
  },
];

/**
 * The row that holds for a call, or null. The longest prefix wins. A model is compared in lower case
 * and without any path before it (`models/…`, `vendor/…`); a null model meets only rows that hold for
 * the whole upstream.
 */
export function knownLimitFor(upstreamId: string, model: string | null): KnownLimit | null {
  const name = (model ?? '').toLowerCase().split('/').at(-1) ?? '';
  let best: KnownLimit | null = null;
  let longest = -1;
  for (const row of KNOWN_LIMITS) {
    if (row.upstream !== upstreamId) continue;
    for (const prefix of [row.modelPrefix, ...(row.formerPrefixes ?? [])]) {
      if (!name.startsWith(prefix) || prefix.length <= longest) continue;
      best = row;
      longest = prefix.length;
    }
  }
  return best;
}

/** Whether the limit of an upstream depends on the model, so that a call's model must be known. */
export function hasModelRows(upstreamId: string): boolean {
  return KNOWN_LIMITS.some((row) => row.upstream === upstreamId && row.modelPrefix !== '');
}
