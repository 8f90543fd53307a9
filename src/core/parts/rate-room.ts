import type { InstantMs } from '../words/ids.ts';
import type { LimitName, RateSettings } from '../words/limits.ts';
import { limitsOf } from './rate-limits.ts';
import type { RateUse } from './rates.ts';
import { emptyWindow, usedAt, wholeAt } from './window.ts';

/** The room in one limit of requests or tokens, over its minute or day. */
export interface RateRoom {
  readonly name: Exclude<LimitName, 'startsPerS'>;
  readonly limit: number;
  /** The amount that may still be taken before the minute or the day is full. */
  readonly left: number;
  /** Time until the full limit is available again if nothing is taken, in milliseconds. */
  readonly resetMs: number;
}

/** Most groups have no such limit. */
const NONE: readonly RateRoom[] = [];

/** Returns the room in each limit that is set, regardless of the pace at which it may be used. */
export function rateRooms(
  { windows }: RateUse,
  settings: RateSettings,
  now: InstantMs,
): readonly RateRoom[] {
  const limits = limitsOf(settings);
  if (limits.length === 0) return NONE;
  return limits.flatMap(({ name, window: params }) => {
    if (params === null || name === 'startsPerS') return [];
    const window = windows[name] ?? emptyWindow();
    const left = Math.max(0, Math.floor(params.limit - usedAt(window, params, now)));
    const resetMs = Math.ceil(wholeAt(window, params, now) - now);
    return [{ name, limit: params.limit, left, resetMs }];
  });
}
