import type { Dialect } from '../contract/dialect.ts';
import { providerOf, PROVIDERS } from './index.ts';
import type { CountingRow, LimitProfile } from './provider.ts';

/** The tokens of a call, as the upstream told them. */
interface ProfileUsage {
  /** All of the input, what was read from a cache included. */
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly outputTokens: number;
}

/**
 * The profile assumed of a provider of which nothing is known: wherever it may count or not, it counts, since
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

const COUNTING = PROVIDERS.filter(({ counts }) => counts !== undefined);

/**
 * Tells how the provider of an upstream counts calls of a model: by the provider's rows, and those of a
 * provider that is known by its dialect.
 */
export function limitProfileFor(
  upstream: { readonly id: string; readonly baseUrl: string; readonly dialect: Dialect },
  model: string | null,
): LimitProfile {
  const provider = providerOf(upstream);
  // As in `models/…`, `vendor/…` and Bedrock's `eu.anthropic.…`, of which the end is the name.
  const path = `.${(model ?? '').toLowerCase().replaceAll('/', '.')}`;
  const isFor = ({ models }: CountingRow) =>
    models === undefined || models.some((prefix) => path.includes(`.${prefix}`));
  let profile = DEFAULT_PROFILE;
  for (const each of COUNTING) {
    const isOfDialect = each.isKnownByDialect === true && each.id === upstream.dialect;
    if (each !== provider && !isOfDialect) continue;
    for (const row of each.counts ?? []) {
      if (isFor(row)) profile = { ...profile, ...row.counts };
    }
  }
  return profile;
}

/** Counts a call that ended as its provider does, in tokens of the provider's limits. */
export function countedTokens(
  profile: LimitProfile,
  usage: ProfileUsage,
): { readonly inputTokens: number; readonly outputTokens: number } {
  const { inputTokens, cacheReadTokens, outputTokens } = usage;
  const uncachedTokens = Math.max(0, inputTokens - cacheReadTokens);
  return {
    inputTokens: profile.countsCacheReads ? inputTokens : uncachedTokens,
    outputTokens: profile.reserveOutput === 'none' ? 0 : outputTokens * profile.outputWeight,
  };
}
