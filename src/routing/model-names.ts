import type { Upstream } from '../contract/config/upstream.ts';
import { DIALECT_DEFAULTS } from '../providers/dialects.ts';
import type { ModelNames } from './group-match.ts';

/** Compiles the mapping of an upstream's model names to their canonical names, in lower case. */
export function compileCanonical(upstream: Upstream): (model: string | null) => string | null {
  const aliases = new Map(
    Object.entries(upstream.aliases).map(([alias, model]) => [alias.toLowerCase(), model]),
  );
  const { modelPrefix } = DIALECT_DEFAULTS[upstream.dialect];
  return (model) => {
    if (model === null) return null;
    const sent = model.toLowerCase();
    const name = modelPrefix === undefined ? sent : sent.replace(modelPrefix, '');
    return (aliases.get(sent) ?? aliases.get(name) ?? name).toLowerCase();
  };
}

/** Returns the names by which a model may be matched: the name in the request, and its canonical name. */
export function modelNames(
  upstream: Upstream,
  sent: string | null,
  canonical: string | null,
): ModelNames {
  const names = [sent?.toLowerCase() ?? null, canonical].filter((name) => name !== null);
  return { upstream: upstream.id, names: [...new Set(names)] };
}
