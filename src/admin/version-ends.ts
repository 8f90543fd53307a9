import { fieldAt, pathText } from '../config/field-paths.ts';
import { isSame } from '../config/rebase.ts';
import type { Config } from '../contract/config/config.ts';
import type { TemporaryField, TemporaryOrder } from '../contract/rpc/temporary-rpc.ts';
import { settingsOf } from '../routing/group-settings.ts';

/** Ends that a way back brings back with the values that they are of. */
interface Ends {
  readonly orders: readonly TemporaryOrder[];
  /** Sentences on what goes back by itself, and on what does not any more. */
  readonly notes: readonly string[];
}

/**
 * Finds the fields that get a value again which was meant for a while.
 *
 * @param temporary fields of the version that is gone back to
 */
export function endsOf(
  temporary: readonly TemporaryField[],
  before: Config,
  next: Config,
  now: number,
): Ends {
  const again = temporary.filter(({ group, path, value }) => {
    const [present, then] = [before, next].map((config) => settingsOf(config, group));
    return isSame(fieldAt(then, path), value) && !isSame(fieldAt(present, path), value);
  });
  const notes = again.map(({ group, path, until }) => {
    const at = new Date(until).toISOString();
    const field = `${group}: ${pathText(settingsOf(next, group), path)}`;
    return until > now
      ? `${field} goes back by itself at ${at}, as it did then.`
      : `${field} was so until ${at} only. That is over: it stays so now.`;
  });
  const orders = again
    .filter(({ until }) => until > now)
    .map(({ group, path, was, value, until }) => {
      return { group, until, fields: [{ path, was, value }], named: [] };
    });
  return { orders, notes };
}
