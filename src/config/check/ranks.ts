import type { Config } from '../../contract/config/config.ts';
import { rankOf } from '../../routing/group-match.ts';
import type { FieldError } from '../field-error.ts';

/**
 * Finds groups whose rank a change would change. The rank decides when calls take a group's slots. Were it to
 * change, calls under way would hold slots in one order and new ones in another, and could wait for each other
 * for ever.
 */
export function rankErrors(before: Config, next: Config): FieldError[] {
  const ranks = new Map(before.groups.map((group) => [group.name, rankOf(group)]));
  return next.groups.flatMap((group, index) => {
    const [was, is] = [ranks.get(group.name), rankOf(group)];
    if (was === undefined || was === is) return [];
    const message =
      `would make "${group.name}" a group of rank ${is}; its rank, ${was}, is fixed when it is made. ` +
      'Make a new group under another name, and delete this one';
    return [{ path: `groups[${index}].match`, message }];
  });
}
