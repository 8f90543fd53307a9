import type { Config } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { autoGroupNamed, autoGroupsNamedBy } from '../../routing/auto-groups.ts';
import { quoteName, ticked, type FieldError } from '../field-error.ts';

/** Finds names of automatic groups that do not exist. */
export function autoGroupErrors(
  { auto_groups: all }: Pick<Config, 'auto_groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  return all.flatMap(({ name }, index) => {
    const why = noAutoGroup(name, upstreams);
    return why === null ? [] : [{ path: `auto_groups[${index}].name`, message: why }];
  });
}

/** Returns why there is no automatic group of that name. null if there is one. */
export function noAutoGroup(name: string, upstreams: ReadonlyMap<string, Upstream>): string | null {
  if (autoGroupNamed(name, upstreams) !== null) return null;
  const others = autoGroupsNamedBy(name, upstreams).map((group) => group.name);
  return others.length === 0
    ? `${quoteName(name)} names no enabled upstream`
    : `${quoteName(name)} is not an automatic group; that upstream has ${ticked(others)}`;
}
