import type { AuditEntry } from '../../../src/contract/history.ts';

/** Body of `POST /config/rollback`. */
export interface RollbackTarget {
  readonly version?: number;
  readonly undo?: number;
  readonly conflicts?: 'keep' | 'overwrite';
}

/** Rollbacks that an audit entry offers. null if that kind is not possible. */
export interface RollbackTargets {
  readonly undo: RollbackTarget | null;
  readonly restore: RollbackTarget | null;
}

/**
 * Rollbacks of an entry. Its change can be undone while its version and the previous one are stored. Its version can
 * be restored while it is stored and not in force.
 */
export function rollbackTargets(
  entry: Pick<AuditEntry, 'version' | 'changes' | 'changes_omitted'>,
  kept: ReadonlySet<number>,
  inForce: number,
): RollbackTargets {
  const { version, changes, changes_omitted: omitted } = entry;
  const isChange = changes.length + omitted > 0;
  const isUndoable = isChange && kept.has(version) && kept.has(version - 1);
  return {
    undo: isUndoable ? { undo: version } : null,
    restore: kept.has(version) && version !== inForce ? { version } : null,
  };
}
