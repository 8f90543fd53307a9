import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { isAutomatic, withImpliedWay } from '../../routing/configured-auto-groups.ts';
import type { FieldError } from '../field-error.ts';
import { noAutoGroup } from './auto-groups.ts';

/** Finds what an entry of an automatic group says of its calls and pools beside its name. */
export function sayingMore({ groups }: Pick<Config, 'groups'>): FieldError[] {
  return groups.flatMap((group, index) => {
    if (!isAutomatic(group)) return [];
    const { match, partition_by: by } = withImpliedWay(group);
    const isOther = (said: object, implied: object): boolean =>
      Object.values(said).flat().length > 0 && JSON.stringify(said) !== JSON.stringify(implied);
    return [
      // The name does not imply how references are treated.
      ...(isOther({ ...group.match, references: [] }, { ...match, references: [] })
        ? [errorAt(index, 'match', 'which calls it takes')]
        : []),
      ...(isOther(group.partition_by, by)
        ? [errorAt(index, 'partition_by', 'how it is split: each provider key has its own pool')]
        : []),
      ...(['members', 'affinity', 'jurisdiction', 'location'] as const).flatMap((field) =>
        isStated(group[field]) ? [errorAt(index, field, 'where its calls run')] : [],
      ),
    ];
  });
}

/** Finds entries of automatic groups that there are none of, and of those that have another one. */
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
    const message = `stands in groups[${index}] as well; say there what it shall do`;
    return [{ path: `auto_groups[${other}].name`, message }];
  });
}

function isStated(value: GroupConfig['members'] | string | object | null): boolean {
  return value !== null && (!Array.isArray(value) || value.length > 0);
}

function errorAt(index: number, field: string, what: string): FieldError {
  const message = `the name of an automatic group says ${what}; leave it out, or make a group under a name of your own`;
  return { path: `groups[${index}].${field}`, message };
}
