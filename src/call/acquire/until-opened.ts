import { pause } from '../../runtime/background.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { within } from '../../runtime/within.ts';
import { isOverload } from './failure-streak.ts';
import { LEFT, type Left } from '../result.ts';
import type { PoolSource } from './pools.ts';
import { openedRetryMs } from './retry-delays.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** How long a call is parked in a paused group before it retries. */
const SLICE_MS = 25_000;

/** Additional time for the answer: a call that is parked in a replaced instance may never be answered. */
const LOST_MS = 5_000;

interface Patience {
  readonly signal: AbortSource;
  readonly after: Schedule;
  /** When the wait is over. */
  readonly until: number;
  /** Number of times that the group was open before and still rejected the call. */
  readonly openings: number;
}

/** The end of a wait: the group has opened, the time is over, or the caller has disconnected. */
type Waited = { readonly kind: 'opened' } | { readonly kind: 'over' } | Left;

/** Waits for the end of a group's pause. The caller holds no slot meanwhile. */
export async function untilOpened(
  pool: PoolSource,
  { signal, after, until, openings }: Patience,
): Promise<Waited> {
  const left = untilAborted(signal);
  const rest = (overloads: number): Promise<unknown> =>
    Promise.race([pause(openedRetryMs(overloads), after), left]);
  // A group that opens and closes again must not make its callers retry without a pause.
  if (openings > 0 && steadyClock.now() < until) await rest(0);
  let overloads = 0;
  while (steadyClock.now() < until) {
    if (signal.aborted) return LEFT;
    const sliceMs = Math.min(SLICE_MS, until - steadyClock.now());
    try {
      const opened = within(sliceMs + LOST_MS, pool().opened(sliceMs), after);
      if (await Promise.race([opened, left])) return { kind: 'opened' };
      overloads = 0;
    } catch (error) {
      overloads = isOverload(error) ? overloads + 1 : 0;
    }
    // The answer that the group is still paused may have come at once, because too many calls wait for the end of the pause.
    if (steadyClock.now() < until) await rest(overloads);
  }
  return { kind: 'over' };
}

function untilAborted(signal: AbortSource): Promise<false> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(false);
    signal.addEventListener('abort', () => resolve(false));
  });
}
