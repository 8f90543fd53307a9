import type { PauseStatus } from '../../contract/status.ts';
import { isPaused, nextProbeAt, type Pause } from '../../core/parts/pause.ts';
import type { InstantMs } from '../../core/words/ids.ts';

interface Paused {
  readonly paused_until: string | null;
  readonly pause?: PauseStatus;
}

/** Shows the pause of an upstream: its end, the upstream's message, and the next probe. */
export function pauseStatus(pause: Pause, now: InstantMs): Paused {
  if (!isPaused(pause, now)) return { paused_until: null };
  const probeAt = nextProbeAt(pause);
  return {
    paused_until: new Date(pause.until).toISOString(),
    pause: {
      message: pause.words,
      probe_at: probeAt === null ? null : new Date(probeAt).toISOString(),
    },
  };
}

/** The same for a group with members: the pause that ends first, if all members are stopped. */
export function pauseOfMembers(
  pauses: readonly Pause[],
  isStopped: boolean,
  now: InstantMs,
): Paused {
  const [first] = pauses
    .filter((pause) => isPaused(pause, now))
    .toSorted((a, b) => a.until - b.until);
  return first === undefined || !isStopped ? { paused_until: null } : pauseStatus(first, now);
}
