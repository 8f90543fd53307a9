import { isolateConfig } from '../config/isolate-config.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { AuthenticatedCall } from './call.ts';
import { rejected, type Moved, type Rejected } from './result.ts';

/** The reply to a call if the version in force is unknown. */
export const UNCONFIRMED: ErrorReply = {
  reason: 'limiter_unavailable',
  message: 'The configuration is not available yet. Try again in a moment.',
};

/**
 * Checks whether a configuration is still in force, for calls that ask no pool. A pool would notice. Returns null if it
 * is, as far as the directory answers, and a rejection if the directory has never answered here.
 */
export async function changedSince({
  table,
  env,
  ctx,
}: Pick<AuthenticatedCall, 'table' | 'env' | 'ctx'>): Promise<Moved | Rejected | null> {
  if (!isolateConfig.mayBeOld(table)) return null;
  const sure = await isolateConfig.confirmed(env, ctx);
  if (sure === null) return rejected(UNCONFIRMED);
  return sure === table ? null : { kind: 'moved', configVersion: sure.snapshot.version };
}
