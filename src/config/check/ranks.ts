import type { Config } from '../../contract/config/config.ts';
import { rankOf } from '../../routing/group-match.ts';
import type { FieldError } from '../field-error.ts';

/**
 * Finds groups whose rank a change would change. The rank decides in which order calls acquire slots. If it changed,
 * running calls would hold slots in one order and new calls in another, so that they could deadlock.
 */
export function rankErrors(before: Config, next: Config): FieldError[] {
  const ranks = new Map(before.groups.map((group) => [group.name, rankOf(group)]));
  return next.groups.flatMap((group, index) => {
    const [was, is] = [ranks.get(group.name), rankOf(group)];
    if (was === undefined || was === is) return [];
    const message =
      `would change the rank of \`${group.name}\` from ${was} to ${is}, and the rank of a group is fixed. ` +
      'Create a group with another name, and delete this one';
    return [{ path: `groups[${index}].match`, message }];
  });
}
