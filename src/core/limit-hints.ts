import { DAY_MS } from './rate-limits.ts';
import type { LimitHint } from './signal.ts';

/** Below so many requests or tokens, or this part of the limit if it is less, an upstream is nearly out. */
const NEARLY_OUT = 2;
const NEARLY_OUT_SHARE = 1 / 20;

/** A hint makes nobody wait longer than this: the next answer brings a newer one. */
const HINT_WAIT_MAX_MS = 65_000;

/** A reset that is nearer than this is over before the next call arrives. */
const HINT_RESET_MIN_MS = 500;

/**
 * How long the next call had better wait, in milliseconds, because the upstream says that it is nearly
 * out; 0: not at all. Limits that are not positive and those of a day are no advice. A reset tells when all of the limit is back,
 * which is more than one call needs, so what one request takes to come back counts before it.
 */
export function hintWaitMs(hint: LimitHint): number {
  const { dimension, windowMs, limit, remaining, resetMs } = hint;
  if (remaining === null || (windowMs !== null && windowMs >= DAY_MS)) return 0;
  if (limit !== null && limit <= 0) return 0;
  if (limit !== null && remaining > Math.min(NEARLY_OUT, limit * NEARLY_OUT_SHARE)) return 0;
  if (limit === null && remaining > 0) return 0;
  if (resetMs !== null && resetMs < HINT_RESET_MIN_MS) return 0;
  const isCountable = dimension === 'requests' && windowMs !== null && limit !== null;
  const waitMs = isCountable ? windowMs / limit : (resetMs ?? 0);
  return Math.min(waitMs, resetMs ?? Infinity, HINT_WAIT_MAX_MS);
}
