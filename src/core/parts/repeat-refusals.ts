import { instant, type InstantMs } from '../words/ids.ts';

/**
 * Calls that the upstream refused for concurrency, since it last took one that was granted later. From the
 * second refusal on they let those go first whom it refused less often: where its capacity has fallen below
 * what is in flight, each slot that comes free may cost a refusal, and the oldest would meet them all. Kept
 * in memory only: after a reset they go by their age alone.
 */
export interface RepeatRefusals {
  /** By the call, or by the call and the member that refused it. */
  readonly refusals: Map<string, number>;
  /** The most refusals of one of them. */
  refusalsMax: number;
  refusedAt: InstantMs;
}

/** Maximum calls that are remembered; beyond that all are forgotten, and go by their age. */
const TICKETS_MAX = 1_000;

/** Makes the counts of a group of which nobody was refused. */
export function noRepeatRefusals(): RepeatRefusals {
  return { refusals: new Map(), refusalsMax: 0, refusedAt: instant(0) };
}

/** Notes that the upstream refused a call because too many were in flight. */
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

/** Notes that the upstream took a call: if it was granted after the last refusal, there is room again. */
export function noteTaken(repeatRefusals: RepeatRefusals, grantedAt: InstantMs): void {
  if (grantedAt > repeatRefusals.refusedAt) forgetRepeatRefusals(repeatRefusals);
}

/** Counts the refusals of a call since there was last room. */
export function refusalsOf({ refusals }: RepeatRefusals, call: string): number {
  return refusals.get(call) ?? 0;
}

/** Forgets all: everybody goes by age again. */
export function forgetRepeatRefusals(repeatRefusals: RepeatRefusals): void {
  repeatRefusals.refusals.clear();
  repeatRefusals.refusalsMax = 0;
}
