import type { Background } from '../runtime/async.ts';

/** Calls that this isolate is working on, including queued ones. A stream counts until its last byte. */
let count = 0;

export function callsInFlight(): number {
  return count;
}

/**
 * Counts a call until `work` ends, and keeps it alive until then. When a caller leaves before its answer, the runtime
 * drops unguarded work at its next step, and the call would count forever. Therefore `work` must end after its caller
 * has left.
 */
export function countInFlight(work: Promise<unknown>, ctx: Background): void {
  count += 1;
  const end = (): void => {
    count -= 1;
  };
  ctx.waitUntil(work.then(end, end));
}
