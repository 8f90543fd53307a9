import { mayBeOld, sureTable } from '../config/snapshots.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { AuthenticatedCall } from './call.ts';
import { rejected, type Moved, type Rejected } from './result.ts';

/** The reply to a call for which nobody says which configuration is in force. */
export const UNCONFIRMED: ErrorReply = {
  reason: 'limiter_unavailable',
  message: 'The configuration cannot be reached yet. Try again in a moment.',
};

/**
 * Finds out whether a configuration is still the one in force, for what no pool is asked about: a pool would know. Null: it
 * is, as far as the directory answers. A rejection: it has never answered here.
 */
export async function changedSince({
  table,
  env,
  ctx,
}: Pick<AuthenticatedCall, 'table' | 'env' | 'ctx'>): Promise<Moved | Rejected | null> {
  if (!mayBeOld(table)) return null;
  const sure = await sureTable(env, ctx);
  if (sure === null) return rejected(UNCONFIRMED);
  return sure === table ? null : { kind: 'moved', configVersion: sure.snapshot.version };
}
