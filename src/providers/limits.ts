import type { Dialect } from '../contract/http.ts';
import { providerOf, PROVIDERS } from './index.ts';
import type { CountingRow, LimitProfile, PublishedLimit, Provider } from './provider.ts';

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

export const UNKNOWN_LIMIT = 64;

/**
 * Finds the limit that applies to a call at a provider, or null. The longest prefix wins. A model is compared in lower
 * case and without a path before it (`models/…`, `vendor/…`). If the model is null, only limits of the whole upstream
 * apply.
 */
export function knownLimitFor(
  provider: Provider | null,
  model: string | null,
): PublishedLimit | null {
  const name = (model ?? '').toLowerCase().split('/').at(-1) ?? '';
  let best: PublishedLimit | null = null;
  let longest = -1;
  for (const limit of provider?.limits ?? []) {
    for (const prefix of [limit.modelPrefix, ...(limit.formerPrefixes ?? [])]) {
      if (!name.startsWith(prefix) || prefix.length <= longest) continue;
      best = limit;
      longest = prefix.length;
    }
  }
  return best;
}

/** Lists the limits of a provider that apply to certain models. If there are any, a call's model must be known. */
export function limitsOfModels(provider: Provider | null): readonly PublishedLimit[] {
  return provider?.limits?.filter(({ modelPrefix }) => modelPrefix !== '') ?? [];
}
