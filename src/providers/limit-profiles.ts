import type { Dialect } from '../contract/dialect.ts';
import { providerOf, PROVIDERS } from './index.ts';
import type { CountingRow, LimitProfile } from './provider.ts';

interface ProfileUsage {
  /** All of the input, including tokens that were read from a cache. */
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly outputTokens: number;
}

/**
 * The profile of an unknown provider. Everything that may count does count, because that costs a wait, while the
 * opposite costs a refusal. Output is the exception: reserving `max_tokens` would leave most of a limit unused.
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
 * Returns how the provider of an upstream counts calls of a model, from the provider's rows and those of a provider
 * that is known by its dialect.
 */
export function limitProfileFor(
  upstream: { readonly id: string; readonly baseUrl: string; readonly dialect: Dialect },
  model: string | null,
): LimitProfile {
  const provider = providerOf(upstream);
  // The name is the end of `models/…`, `vendor/…` and Bedrock's `eu.anthropic.…`.
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

/** Counts a finished call as its provider does, in tokens of the provider's limits. */
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
