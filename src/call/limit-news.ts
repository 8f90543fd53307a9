import { BoundedMap } from '../core/parts/bounded-map.ts';
import {
  areSameLimits,
  limitsReported,
  type ReportedLimits,
} from '../core/parts/reported-limits.ts';
import type { LimitHint, UpstreamSignal } from '../core/words/signal.ts';
import { steadyClock } from '../runtime/steady-clock.ts';

/** Maximum pools and models whose limits an isolate remembers to have told of. */
const REMEMBERED_MAX = 1_000;

/** How long nothing is told of them again, whatever the headers say: a message costs more than it is worth. */
const REPORTED_EVERY_MS = 60_000;

/** How long they count as told: what was told may have been lost on its way. */
const REPORTED_FOR_MS = 3_600_000;

const reported = new BoundedMap<string, { readonly limits: ReportedLimits; readonly at: number }>(
  REMEMBERED_MAX,
);

/**
 * Makes the signal by which a pool hears of an upstream's limits, where they are news to it as far as this isolate knows; null:
 * they are none. `place`: the pool, the upstream and the model.
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
