import { BoundedMap } from '../core/parts/bounded-map.ts';
import { areSameLimits, limitsReported, type ReportedLimits } from '../core/parts/rate-limits.ts';
import type { LimitHint, UpstreamSignal } from '../core/words/signal.ts';
import { steadyClock } from '../runtime/clock.ts';

/** Maximum pools and models for which an isolate remembers the limits that it reported. */
const REMEMBERED_MAX = 1_000;

/** Minimum interval between reports, whatever the headers contain. A message costs more than it is worth. */
const REPORTED_EVERY_MS = 60_000;

/** How long reported limits count as delivered. A report may have been lost. */
const REPORTED_FOR_MS = 3_600_000;

const reported = new BoundedMap<string, { readonly limits: ReportedLimits; readonly at: number }>(
  REMEMBERED_MAX,
);

/**
 * The signal that reports an upstream's limits to a pool. null if they are not new, as far as this isolate knows.
 * `place` is the pool, the upstream and the model.
 */
export function newsOfLimits(hints: readonly LimitHint[], place: string): UpstreamSignal | null {
  if (!isNews(limitsReported(hints), place, steadyClock.now())) return null;
  return { kind: 'served', retryAfterMs: null, slotsMax: null, hints };
}

function isNews(limits: ReportedLimits, place: string, now: number): boolean {
  if (Object.keys(limits).length === 0) return false;
  const last = reported.get(place);
  if (last !== undefined) {
    const sinceMs = now - last.at;
    if (sinceMs < REPORTED_EVERY_MS) return false;
    if (sinceMs < REPORTED_FOR_MS && areSameLimits(last.limits, limits)) return false;
  }
  reported.set(place, { limits, at: now });
  return true;
}
