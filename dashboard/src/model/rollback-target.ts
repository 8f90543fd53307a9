import type { AuditEntry } from '../../../src/contract/audit.ts';

/** A way back, as `POST /config/rollback` takes it. */
export interface RollbackTarget {
  readonly version?: number;
  readonly undo?: number;
  readonly conflicts?: 'keep' | 'overwrite';
}

/** Ways back that an entry of the audit log offers; null: none of that kind. */
export interface RollbackTargets {
  readonly undo: RollbackTarget | null;
  readonly restore: RollbackTarget | null;
}

/**
 * Finds the ways back from an entry. Its change can be undone while its version and the one before are kept, and its
 * version restored while that is kept and not in force.
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
