import type { Reason } from '../../contract/reasons.ts';
import type { RefusalKind } from '../../core/words/signal.ts';
import type { Schedule } from '../../runtime/clock.ts';
import { bytesWithin } from '../../upstream/body/bytes.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';

const BYTES_MAX = 32_768;

/** Timeout for the remainder of a refusal whose beginning was read. */
const READ_WAIT_MS = 1_000;

/**
 * Keeps the answer of a member that refused a call. If no other member accepts the call, the caller receives this
 * answer. null if it is too long or too slow.
 */
export async function keptAnswer(answer: Response, after: Schedule): Promise<Response | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const callOff = after(READ_WAIT_MS, () => resolve(null));
  const bytes = await Promise.race([bytesWithin(answer, BYTES_MAX).catch(() => null), late]);
  callOff();
  if (bytes === null) return null;
  const { status, statusText, headers } = answer;
  const kept = new Response(bytes, { status, statusText, headers, encodeBody: 'manual' });
  callerResponseHeaders(kept.headers);
  return kept;
}

/**
 * Refusals that waiting does not help. For others the rejection by the group is more useful, because it has a retry
 * delay.
 */
const LASTING: ReadonlySet<RefusalKind> = new Set([
  'overload',
  'error',
  'unauthorized',
  'quota',
  'egress',
  'long_window',
  'never_fits',
]);

/** Returns whether a refusal stays true for its call, regardless of other calls' slots. */
export function isLasting(kind: RefusalKind): boolean {
  return LASTING.has(kind);
}

/** Reasons for which a group has no room for a call at its remaining members. */
const NO_ROOM: ReadonlySet<Reason> = new Set<Reason>([
  'queue_full',
  'queue_timeout',
  'busy',
  'infeasible',
  'paused',
  'upstream_limited',
  'never_fits',
  'breaker_open',
  'members_out',
  'budget_exhausted',
]);

/** Returns whether a group rejects a call because no other member accepts it. */
export function isForLackOfRoom(reason: Reason): boolean {
  return NO_ROOM.has(reason);
}
