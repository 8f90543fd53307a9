import type { Dialect } from '../contract/dialect.ts';
import { providerOfUpstream } from './provider-of.ts';

/** How a provider counts calls and tokens against its limits per minute and day. */
export interface LimitProfile {
  /**
   * What of the output counts before it is written.
   * - `max_tokens`: the most that the call may write, as the provider does it.
   * - `mean`: nothing; it counts as it is written, so what calls write on the average is set aside.
   * - `none`: output never counts.
   */
  readonly reserveOutput: 'max_tokens' | 'mean' | 'none';
  /** Whether input that was read from a cache counts. */
  readonly countsCacheReads: boolean;
  /** What a token of output counts once it is written. What is reserved before counts once. */
  readonly outputWeight: number;
  /** Whether a call that the provider refused counts as a request. */
  readonly failedCount: boolean;
  /** Whether what was reserved and not used is given back when the call ends. */
  readonly refundsUnused: boolean;
}

/** The tokens of a call, as the upstream told them. */
interface Usage {
  /** All of the input, what was read from a cache included. */
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly outputTokens: number;
}

/** What one provider is known to do otherwise than the default. */
interface ProfileRow {
  /** An upstream of the catalog, or a dialect whose upstreams have any id. */
  readonly of: string;
  /** Beginnings of model names, in lower case and without vendor or region; none: all models. */
  readonly models?: readonly string[];
  readonly counts: Partial<LimitProfile>;
  readonly source: string;
  /** When it was last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/**
 * What is assumed of a provider of which nothing is known: wherever it may count or not, it counts, since
 * that costs a wait where the contrary costs a refusal. Output is the exception: with `max_tokens` set
 * aside most of a limit would stay unused.
 */
export const DEFAULT_PROFILE: LimitProfile = {
  reserveOutput: 'mean',
  countsCacheReads: true,
  outputWeight: 1,
  failedCount: true,
  refundsUnused: true,
};

const ANTHROPIC_PAGE = 'https://platform.claude.com/docs/en/api/rate-limits';
const BEDROCK_PAGE =
  'https://docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html';

/** The built-in table: the rows of an upstream lie on each other, the later on the earlier. */
export const LIMIT_PROFILES: readonly ProfileRow[] = [
  {
    of: 'anthropic',
    counts: { reserveOutput: 'mean', countsCacheReads: false, refundsUnused: true },
    source: ANTHROPIC_PAGE,
    date: '2026-10-04',
    note: 'Output counts as it is written. max_tokens counted once, and does no more.',
  },
  {
    of: 'anthropic',
    models: ['claude-3-5-haiku'],
    counts: { countsCacheReads: true },
    source: ANTHROPIC_PAGE,
    date: '2026-10-04',
  },
  {
    of: 'azure',
    counts: { reserveOutput: 'max_tokens', refundsUnused: true },
    source:
      'https://learn.microsoft.com/en-us/answers/questions/1381398/question-about-max-tokens-per-minute-in-azure-open',
    date: '2026-11-20',
    note: 'As Microsoft answers there. Without max_tokens it reserves the most that the model can write.',
  },
  {
    of: 'bedrock',
    counts: { reserveOutput: 'max_tokens', countsCacheReads: false, refundsUnused: true },
    source: BEDROCK_PAGE,
    date: '2026-11-20',
    note: 'Cache reads are reserved too, and given back when the call ends.',
  },
  {
    of: 'bedrock',
    models: ['claude-opus-', 'claude-sonnet-', 'claude-haiku-', 'claude-fable-'],
    counts: { outputWeight: 5 },
    source: BEDROCK_PAGE,
    date: '2026-11-20',
    note: 'Known of Claude 4 and assumed of its successors. Before it the number stood in front.',
  },
  {
    of: 'cerebras',
    counts: { reserveOutput: 'max_tokens', refundsUnused: false },
    source: 'https://inference-docs.cerebras.ai/support/rate-limits',
    date: '2026-11-20',
    note: 'Whether it gives back what was not used is not known.',
  },
  {
    of: 'gemini',
    counts: { reserveOutput: 'none' },
    source: 'https://ai.google.dev/gemini-api/docs/rate-limits',
    date: '2026-11-20',
    note: 'Its limit of tokens per minute is one of input.',
  },
  {
    of: 'openai',
    counts: { reserveOutput: 'max_tokens', failedCount: true, refundsUnused: false },
    source: 'https://platform.openai.com/docs/guides/rate-limits',
    date: '2026-10-04',
    note: 'Its cookbook says that refused requests count. Of a refund nothing is documented.',
  },
  {
    of: 'xai',
    counts: { countsCacheReads: true },
    source: 'https://docs.x.ai/developers/rate-limits.md',
    date: '2026-10-05',
  },
];

/**
 * How the provider of an upstream counts calls of a model. A provider is known by its host, and behind one
 * that nobody knows by the upstream's id; Azure and Bedrock by their dialect too.
 */
export function limitProfileFor(
  upstream: { readonly id: string; readonly baseUrl: string; readonly dialect: Dialect },
  model: string | null,
): LimitProfile {
  const { dialect } = upstream;
  const provider = providerOfUpstream(upstream);
  const isOf = (row: ProfileRow) =>
    row.of === provider || (row.of === dialect && (dialect === 'azure' || dialect === 'bedrock'));
  // As in `models/…`, `vendor/…` and Bedrock's `eu.anthropic.…`, of which the end is the name.
  const path = `.${(model ?? '').toLowerCase().replaceAll('/', '.')}`;
  const isFor = ({ models }: ProfileRow) =>
    models === undefined || models.some((prefix) => path.includes(`.${prefix}`));
  let profile = DEFAULT_PROFILE;
  for (const row of LIMIT_PROFILES) {
    if (isOf(row) && isFor(row)) profile = { ...profile, ...row.counts };
  }
  return profile;
}

/** What the provider counted of a call that ended, in tokens of its limits. */
export function countedTokens(
  profile: LimitProfile,
  usage: Usage,
): { readonly inputTokens: number; readonly outputTokens: number } {
  const { inputTokens, cacheReadTokens, outputTokens } = usage;
  const uncachedTokens = Math.max(0, inputTokens - cacheReadTokens);
  return {
    inputTokens: profile.countsCacheReads ? inputTokens : uncachedTokens,
    outputTokens: profile.reserveOutput === 'none' ? 0 : outputTokens * profile.outputWeight,
  };
}
