import type { Config, GroupConfig } from '../contract/config/config.ts';
import { isSame } from './document-changes.ts';

export const CANARY_GROUP_PREFIX = 'canary-';

/** Prefix of the models that these groups match. No other call requests such a model. */
export const CANARY_MODEL_PREFIX = 'headgate-canary-';

/** Whether a canary created a group, by its name and its match. */
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

/** Whether a change affects groups of a canary only, so that it is not a version to roll back to. */
export function isOfCanaryAlone(before: Config, next: Config): boolean {
  if (isSame(before.groups.filter(isCanaryGroup), next.groups.filter(isCanaryGroup))) return false;
  const others = (config: Config): Config => ({ ...config, groups: othersOf(config.groups) });
  return isSame(others(before), others(next));
}

function othersOf(groups: readonly GroupConfig[]): GroupConfig[] {
  return groups.filter((group) => !isCanaryGroup(group));
}
