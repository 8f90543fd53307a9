import type { Config } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { autoGroupNamed, autoGroupsNamedBy } from '../../routing/auto-groups.ts';
import { quoteName, type FieldError } from '../field-error.ts';

/** Finds names of automatic groups that there are none of. */
export function autoGroupErrors(
  { auto_groups: all }: Pick<Config, 'auto_groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  return all.flatMap(({ name }, index) => {
    if (autoGroupNamed(name, upstreams) !== null) return [];
    const others = autoGroupsNamedBy(name, upstreams).map((group) => group.name);
    const why =
      others.length === 0
        ? `${quoteName(name)} names no enabled upstream`
        : `${quoteName(name)} is no automatic group; that upstream has ${others.join(', ')}`;
    return [{ path: `auto_groups[${index}].name`, message: why }];
  });
}
