import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { isAutomatic, withImpliedMatch } from '../../routing/configured-auto-groups.ts';
import type { FieldError } from '../field-error.ts';
import { noAutoGroup } from './auto-groups.ts';

/** Finds fields in the entry of an automatic group that contradict its name. */
export function contradictedNames({ groups }: Pick<Config, 'groups'>): FieldError[] {
  return groups.flatMap((group, index) => {
    if (!isAutomatic(group)) return [];
    const { match, partition_by: by } = withImpliedMatch(group);
    const isOther = (written: object, implied: object): boolean =>
      Object.values(written).flat().length > 0 &&
      JSON.stringify(written) !== JSON.stringify(implied);
    return [
      // The name does not imply how references are treated.
      ...(isOther({ ...group.match, references: [] }, { ...match, references: [] })
        ? [errorAt(index, 'match', 'already decides which calls it takes')]
        : []),
      ...(isOther(group.partition_by, by)
        ? [errorAt(index, 'partition_by', 'already splits it: each provider key has its own pool')]
        : []),
      ...(['members', 'affinity', 'jurisdiction', 'location'] as const).flatMap((field) =>
        isStated(group[field])
          ? [errorAt(index, field, 'already decides where its calls run')]
          : [],
      ),
    ];
  });
}

/** Finds entries of automatic groups that do not exist, or that have a second entry in `auto_groups`. */
export function configuredAutoErrors(
  { groups, auto_groups: switched }: Pick<Config, 'groups' | 'auto_groups'>,
  upstreams: ReadonlyMap<string, Upstream>,
): FieldError[] {
  return groups.flatMap((group, index) => {
    if (!isAutomatic(group)) return [];
    const why = noAutoGroup(group.name, upstreams);
    if (why !== null) return [{ path: `groups[${index}].name`, message: why }];
    const other = switched.findIndex(({ name }) => name === group.name);
    if (other === -1) return [];
    const message = `has an entry in groups[${index}] too; move these settings there`;
    return [{ path: `auto_groups[${other}].name`, message }];
  });
}

function isStated(value: GroupConfig['members'] | string | object | null): boolean {
  return value !== null && (!Array.isArray(value) || value.length > 0);
}

function errorAt(index: number, field: string, what: string): FieldError {
  const message = `the name of an automatic group ${what}; remove this field, or create a group with another name`;
  return { path: `groups[${index}].${field}`, message };
}
