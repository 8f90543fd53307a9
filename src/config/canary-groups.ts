import type { Config, GroupConfig } from '../contract/config/config.ts';
import { isSame } from './rebase.ts';

/** Beginning of the names of all groups that a canary makes. */
export const CANARY_GROUP_PREFIX = 'canary-';

/** Beginning of the models by which these groups match. No other call names such a model. */
export const CANARY_MODEL_PREFIX = 'headgate-canary-';

/** Whether a canary made a group: by its name and by what it matches. */
export function isCanaryGroup({
  name,
  match,
}: {
  readonly name: string;
  readonly match: { readonly models: readonly string[] };
}): boolean {
  return (
    name.startsWith(CANARY_GROUP_PREFIX) &&
    match.models.some((model) => model.startsWith(CANARY_MODEL_PREFIX))
  );
}

/** Whether a change touches groups of a canary and nothing else, so that it is no version to go back to. */
export function isOfCanaryAlone(before: Config, next: Config): boolean {
  if (isSame(before.groups.filter(isCanaryGroup), next.groups.filter(isCanaryGroup))) return false;
  const others = (config: Config): Config => ({ ...config, groups: othersOf(config.groups) });
  return isSame(others(before), others(next));
}

function othersOf(groups: readonly GroupConfig[]): GroupConfig[] {
  return groups.filter((group) => !isCanaryGroup(group));
}
