// Step 2, once it is converted: what is known of the models. check-config.ts lists all steps.

import type { Config } from '../contract/config/config.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { KNOWN_LIMITS, knownLimitFor, type KnownLimit } from '../providers/known-limits.ts';
import { compileGlobs } from '../routing/glob.ts';

/**
 * Completes groups of one model that came with rates alone. Without a group the model has the concurrency that it is
 * known to have; a group without one would lift that, so it is written into it.
 *
 * @returns the configuration, and what was written into it, for people
 */
export function keepKnownCaps(config: Config): {
  readonly config: Config;
  readonly notes: string[];
} {
  const notes: string[] = [];
  const groups = config.groups.map((group) => {
    const { models } = group.match;
    const [model] = models;
    if (group.limits.max_concurrency !== null || model === undefined || models.length > 1) {
      return group;
    }
    const known = knownCapsOf(model);
    if (known.length === 0) return group;
    const most = Math.min(...known.map(({ maxConcurrency }) => maxConcurrency));
    const providers = [...new Set(known.map(({ provider }) => provider))].join(' and ');
    notes.push(
      `The group "${group.name}" keeps the known concurrency of "${model}" at ${providers}: max_concurrency ${most}. Set limits.max_concurrency for another.`,
    );
    return { ...group, limits: { ...group.limits, max_concurrency: most } };
  });
  return { config: { ...config, groups }, notes };
}

/** Finds what is known of a model, at the provider that it names or at all that have it. A pattern is no model. */
function knownCapsOf(model: string): KnownLimit[] {
  const name = model.toLowerCase();
  if (name.includes('*')) return [];
  const [vendor = ''] = name.split('/');
  const named = BUILT_IN_UPSTREAMS.filter(({ id }) => name.startsWith(`${id}/`));
  if (named.length > 0) return limitsAt([vendor], name);
  const ofModels = KNOWN_LIMITS.filter(({ modelPrefix }) => modelPrefix !== '');
  const makers = BUILT_IN_UPSTREAMS.filter(({ models }) => compileGlobs(models)(name));
  const providers = [...ofModels.map(({ provider }) => provider), ...makers.map(({ id }) => id)];
  return limitsAt([...new Set(providers)], name);
}

function limitsAt(providers: readonly string[], model: string): KnownLimit[] {
  return providers.flatMap((provider) => knownLimitFor(provider, model) ?? []);
}
