import { mayBeOld, sureTable } from '../config/snapshots.ts';
import type { KnownCall } from './call.ts';
import type { Moved } from './result.ts';

/**
 * Finds out whether a configuration is still the one in force, for what no pool is asked about: a pool would know. Null: it
 * is, as far as the directory answers.
 */
export async function changedSince({
  table,
  env,
  ctx,
}: Pick<KnownCall, 'table' | 'env' | 'ctx'>): Promise<Moved | null> {
  if (!mayBeOld(table)) return null;
  const sure = await sureTable(env, ctx);
  if (sure === null || sure === table) return null;
  return { kind: 'moved', configVersion: sure.snapshot.version };
}
