import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/clock.ts';
import type { ModelListFault } from './ask-models.ts';

/** Minimum time between two lines about one upstream and one reason, and maximum pairs that are remembered. */
const SILENT_MS = 60_000;
const PAIRS_MAX = 500;

const lines = new BoundedMap<string, { readonly at: number; leftOut: number }>(PAIRS_MAX);

/**
 * Logs that the models of an upstream are missing in a list. The same pair is logged once a minute, and the next line
 * has the number of omitted lines (`left_out`).
 */
export function logMissing(upstream: string, why: ModelListFault): void {
  const now = steadyClock.now();
  const pair = `${upstream} ${why}`;
  const last = lines.get(pair);
  if (last !== undefined && now - last.at < SILENT_MS) {
    last.leftOut += 1;
    return;
  }
  lines.set(pair, { at: now, leftOut: 0 });
  logEvent('models_missing', { upstream, why, left_out: last?.leftOut ?? 0 });
}
