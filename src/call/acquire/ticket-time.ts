import { steadyClock } from '../../runtime/steady-clock.ts';

/** Between two tickets of one millisecond. */
const TICK_MS = 0.001;

let last = 0;

/**
 * The time of a new ticket by the isolate's clock: no two of an isolate are the same, so that after a
 * reset of the group, when all ask again at once, they come out in the order in which they came.
 */
export function ticketTime(): number {
  last = Math.max(steadyClock.now(), last + TICK_MS);
  return last;
}
