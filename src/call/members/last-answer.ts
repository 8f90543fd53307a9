import type { Reason } from '../../contract/reasons.ts';
import type { RefusalKind } from '../../core/words/signal.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { bytesWithin } from '../../upstream/body/bounded-body.ts';
import { callerResponseHeaders } from '../../upstream/transfer/response-headers.ts';

/** Maximum bytes of a refusal that is kept. */
const BYTES_MAX = 32_768;

/** How long the rest of a refusal may take, whose beginning has been read. */
const READ_WAIT_MS = 1_000;

/**
 * Keeps the answer of a member that refused a call, which goes on to another one: should none take it, this is what its
 * caller is told. Null: it is long or slow.
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

/** Refusals after which there is nothing to wait for. Of others a rejection by the group says more: when to come back. */
const LASTING: ReadonlySet<RefusalKind> = new Set([
  'overload',
  'error',
  'unauthorized',
  'quota',
  'egress',
  'long_window',
  'never_fits',
]);

/** Tells whether a refusal stays true of its call, whatever becomes of the others' slots. */
export function isLasting(kind: RefusalKind): boolean {
  return LASTING.has(kind);
}

/** Reasons for which a group has no room for a call at the members that are left. */
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

/** Tells whether a group rejects a call because no other member takes it. */
export function isForLackOfRoom(reason: Reason): boolean {
  return NO_ROOM.has(reason);
}
