import { emptyControls, type Controls } from '../core/controls.ts';
import type { InstantMs } from '../core/ids.ts';

/** The controls as their row tells them. What an older release did not know begins empty. */
export function controlsFrom(row: string | null, now: InstantMs): Controls {
  const empty = emptyControls(now);
  return row === null ? empty : { ...empty, ...(JSON.parse(row) as Partial<Controls>) };
}
