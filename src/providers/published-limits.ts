import type { PublishedLimit, Provider } from './provider.ts';

/** The limit assumed where nothing is known. */
export const UNKNOWN_LIMIT = 64;

/**
 * Finds the limit that holds for a call at a provider, or null. The longest prefix wins. A model is compared
 * in lower case and without any path before it (`models/…`, `vendor/…`); a null model meets only limits of the
 * whole upstream.
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

/** Lists the limits of a provider that are of some models. Where there are any, a call's model must be known. */
export function limitsOfModels(provider: Provider | null): readonly PublishedLimit[] {
  return provider?.limits?.filter(({ modelPrefix }) => modelPrefix !== '') ?? [];
}
