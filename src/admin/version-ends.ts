import { fieldAt, pathText, isSame } from '../config/document-changes.ts';
import type { Config } from '../contract/config/config.ts';
import type { TemporaryField, TemporaryOrder } from '../contract/rpc/temporary-rpc.ts';
import { settingsOf } from '../routing/auto-groups.ts';

/** The ends of temporary values that a rollback restores. */
interface Ends {
  readonly orders: readonly TemporaryOrder[];
  /** Sentences on values that revert automatically, and on values that no longer do. */
  readonly notes: readonly string[];
}

/**
 * Finds the fields that a rollback sets to a value that was temporary.
 *
 * @param temporary fields of the restored version
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
      ? `${field} reverts automatically at ${at}, as it did then.`
      : `${field} was temporary until ${at}. That time has passed, so the value is now permanent.`;
  });
  const orders = again
    .filter(({ until }) => until > now)
    .map(({ group, path, was, value, until }) => {
      return { group, until, fields: [{ path, was, value }], named: [] };
    });
  return { orders, notes };
}
