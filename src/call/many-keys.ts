import { rejected, type Rejected } from './result.ts';

/** When a caller may come again at the earliest, and up to as much later by chance, so that not all come at once. */
const COME_AGAIN_MS = 2_000;

/** The rejection of a call whose body has no room to wait. */
export function tooManyBytes(): Rejected {
  const message =
    'The bodies of the calls that wait here take all the memory that there is for them, and this call would have to wait too. Try again in a moment. A body that names its model first can wait almost unread.';
  const retryAfterMs = COME_AGAIN_MS * (1 + Math.random());
  return rejected({ reason: 'too_many_bytes_waiting', message, retryAfterMs });
}
