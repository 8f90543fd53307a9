import type { Background } from '../runtime/background.ts';

/** Calls that this isolate is working on: the queued ones, and streams to their last byte. */
let count = 0;

export function callsInFlight(): number {
  return count;
}

/**
 * Counts a call for as long as `work` takes, and keeps it alive until then: when a caller leaves before its
 * answer, the runtime drops what nothing keeps alive at its next step, and the call would count for ever.
 * Therefore `work` must come to an end when its caller has gone.
 */
export function countInFlight(work: Promise<unknown>, ctx: Background): void {
  count += 1;
  const end = (): void => {
    count -= 1;
  };
  ctx.waitUntil(work.then(end, end));
}
