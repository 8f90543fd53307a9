import { instant, type InstantMs } from '../words/ids.ts';

/**
 * Calls that the upstream refused for concurrency, counted since it last accepted one that was granted later. From its
 * second refusal on, a call lets those with fewer refusals go first. If the capacity of the upstream has fallen below
 * what is in flight, each free slot may cost a refusal, and otherwise the oldest call would meet all of them. Kept in
 * memory only. After a reset, age alone decides.
 */
export interface RepeatRefusals {
  /** By the call, or by the call and the member that refused it. */
  readonly refusals: Map<string, number>;
  refusalsMax: number;
  refusedAt: InstantMs;
}

/** Maximum number of remembered calls. Beyond that all are forgotten, and age alone decides. */
const TICKETS_MAX = 1_000;

export function noRepeatRefusals(): RepeatRefusals {
  return { refusals: new Map(), refusalsMax: 0, refusedAt: instant(0) };
}

/** Notes that the upstream refused a call for too many concurrent calls. */
export function noteRepeatRefusal(
  repeatRefusals: RepeatRefusals,
  call: string,
  now: InstantMs,
): void {
  const { refusals } = repeatRefusals;
  if (refusals.size >= TICKETS_MAX) forgetRepeatRefusals(repeatRefusals);
  const count = refusalsOf(repeatRefusals, call) + 1;
  refusals.set(call, count);
  repeatRefusals.refusalsMax = Math.max(repeatRefusals.refusalsMax, count);
  repeatRefusals.refusedAt = now;
}

/** Notes that the upstream accepted a call. If it was granted after the last refusal, there is room again. */
export function noteTaken(repeatRefusals: RepeatRefusals, grantedAt: InstantMs): void {
  if (grantedAt > repeatRefusals.refusedAt) forgetRepeatRefusals(repeatRefusals);
}

/** Returns the number of refusals of a call since there was last room. */
export function refusalsOf({ refusals }: RepeatRefusals, call: string): number {
  return refusals.get(call) ?? 0;
}

/** Forgets all counts, so that age alone decides again. */
export function forgetRepeatRefusals(repeatRefusals: RepeatRefusals): void {
  repeatRefusals.refusals.clear();
  repeatRefusals.refusalsMax = 0;
}
