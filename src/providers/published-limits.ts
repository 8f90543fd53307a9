import type { PublishedLimit, Provider } from './provider.ts';

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
