import type { Config, GroupConfig } from '../../../src/contract/config/config.ts';
import { memberIdOf } from '../../../src/contract/config/members.ts';
import { PROVIDERS } from '../../../src/providers/catalog.ts';
import { knownLimitFor, limitsOfModels } from '../../../src/providers/limits.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { compileGlobs, globsMayOverlap } from '../../../src/routing/glob.ts';

const listed = new Intl.ListFormat('en');

/**
 * Adds the known concurrency to groups of one model that were imported with rates only. Without a group, the model has
 * its known concurrency, and a group without a limit would remove it.
 *
 * @returns the configuration, and notes about the changes
 */
export function keepKnownCaps(config: Config): {
  readonly config: Config;
  readonly notes: string[];
} {
  const notes: string[] = [];
  const groups = config.groups.map((group) => {
    const { models } = group.match;
    const [model] = models;
    if (group.members.length > 0) return withMembersCapped(group, model ?? '', notes);
    if (group.limits.max_concurrency !== null || model === undefined || models.length > 1) {
      return group;
    }
    const known = knownCapsOf(model);
    if (known.length === 0) return group;
    const most = Math.min(...known.map(({ maxConcurrency }) => maxConcurrency));
    const providers = listed.format(new Set(known.map(({ provider }) => provider)));
    notes.push(
      `Group \`${group.name}\` keeps the known concurrency of \`${model}\` at ${providers}: \`max_concurrency\` ${most}. Set \`limits.max_concurrency\` to change it.`,
    );
    return { ...group, limits: { ...group.limits, max_concurrency: most } };
  });
  return { config: { ...config, groups }, notes };
}

/** Adds the known concurrency to the members of such a group, each at its upstream. */
function withMembersCapped(group: GroupConfig, model: string, notes: string[]): GroupConfig {
  const members = group.members.map((member) => {
    if (member.limits.max_concurrency !== null) return member;
    const there = member.models[model] ?? model;
    const [known] = knownCapsOf(`${member.upstream}/${there}`);
    if (known === undefined || known.provider !== member.upstream) return member;
    notes.push(
      `Member \`${memberIdOf(member)}\` of \`${group.name}\` keeps the known concurrency of \`${there}\`: \`max_concurrency\` ${known.maxConcurrency}.`,
    );
    return { ...member, limits: { ...member.limits, max_concurrency: known.maxConcurrency } };
  });
  return { ...group, members };
}

interface PublishedCap {
  readonly provider: string;
  readonly maxConcurrency: number;
}

/**
 * Returns the limits of a model, at the provider in its name or at all providers that have it. A pattern covers models
 * of the provider whose patterns include it.
 */
function knownCapsOf(model: string): PublishedCap[] {
  const name = model.toLowerCase();
  const named = PROVIDERS.filter(
    ({ id, baseUrl }) => baseUrl !== null && name.startsWith(`${id}/`),
  );
  if (name.includes('*')) {
    const isMaker = ({ models = [] }: Provider): boolean => compileGlobs(models)(name);
    return patternCapsAt(named.length > 0 ? named : PROVIDERS.filter(isMaker), name);
  }
  if (named.length > 0) return capsAt(named, name);
  const withModels = PROVIDERS.filter((provider) => limitsOfModels(provider).length > 0);
  const makers = PROVIDERS.filter(({ models = [] }) => compileGlobs(models)(name));
  return capsAt([...new Set([...withModels, ...makers])], name);
}

/** Returns the limits of all models that a pattern may match, and those of a whole upstream. */
function patternCapsAt(providers: readonly Provider[], pattern: string): PublishedCap[] {
  return providers.flatMap((provider) => {
    const models = pattern.replace(`${provider.id}/`, '');
    return (provider.limits ?? [])
      .filter(
        ({ modelPrefix, formerPrefixes = [] }) =>
          modelPrefix === '' ||
          [modelPrefix, ...formerPrefixes].some((each) => globsMayOverlap(models, `${each}*`)),
      )
      .map(({ maxConcurrency }) => ({ provider: provider.id, maxConcurrency }));
  });
}

function capsAt(providers: readonly Provider[], model: string): PublishedCap[] {
  return providers.flatMap((provider) => {
    const limit = knownLimitFor(provider, model);
    return limit === null ? [] : [{ provider: provider.id, maxConcurrency: limit.maxConcurrency }];
  });
}
