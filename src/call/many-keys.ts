import { rejected, type Rejected } from './result.ts';

/** Minimum delay of a retry. Up to as much is added at random, so that callers do not all return at once. */
const RETRY_AFTER_MS = 2_000;

/** The rejection of a call if there is no memory for its body in the queue. */
export function tooManyBytes(): Rejected {
  const message =
    'The bodies of queued calls use all the memory that is reserved for them, and this call would have to queue too. Try again in a moment. A body that names its model first can be queued almost unread.';
  const retryAfterMs = RETRY_AFTER_MS * (1 + Math.random());
  return rejected({ reason: 'too_many_bytes_waiting', message, retryAfterMs });
}
