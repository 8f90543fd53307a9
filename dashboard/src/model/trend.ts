import { refusedForLimits } from '../../../src/core/words/signal.ts';
import type { GroupStatus } from './status.ts';

/** Past of a group as this page has seen it: the status itself has no past. */

/** Milliseconds of one step, and how many are kept: five minutes in all. */
export const STEP_MS = 5_000;
export const STEPS = 60;

/** Events of one step, or how things stood at its end. */
interface Step {
  readonly waitP95Ms: number | null;
  readonly queued: number;
  /** Refusals of the upstream that callers would have seen as 429. */
  readonly refused: number;
  /** Refusals because the provider's account has nothing left. */
  readonly quota: number;
  /** Refusals because nobody is served from where the Worker calls. */
  readonly egress: number;
  /** Calls that were refused because a budget had no room for them. */
  readonly overBudget: number;
  /** Slots that were taken back because their holder was gone. */
  readonly expired: number;
  /** Calls that passed without a slot. */
  readonly unlimited: number;
}

/** Nothing of what the group counts up since its object started. */
const NOTHING = { refused: 0, quota: 0, egress: 0, overBudget: 0, expired: 0, unlimited: 0 };

export type Tally = keyof typeof NOTHING;
type Totals = Readonly<Record<Tally, number>>;

export interface Trend {
  /** Number of the last step since 1970. */
  readonly at: number;
  /** The oldest first; at most `STEPS`. */
  readonly steps: readonly Step[];
  readonly totals: Totals;
  /** When the feed told of the group last, in epoch milliseconds. */
  readonly toldAt: number;
}

/** Adds what the feed says of a group at this moment. What was before the first word is not known. */
export function withStatus(before: Trend | undefined, group: GroupStatus, nowMs: number): Trend {
  const totals: Totals = {
    refused: refusedForLimits(group.refusals_total),
    quota: group.refusals_total['quota'] ?? 0,
    egress: group.refusals_total['egress'] ?? 0,
    overBudget: group.rejected_total['budget_exhausted'] ?? 0,
    expired: group.expired_total,
    unlimited: group.passed_unlimited_total,
  };
  const was = before?.totals ?? totals;
  const moved = before === undefined ? undefined : until(before, nowMs);
  const at = moved?.at ?? stepAt(nowMs);
  const steps = moved?.steps ?? [];
  // A step that began with an earlier word goes on; its tallies add up.
  const open = moved === undefined ? undefined : steps.at(-1);
  const step = { ...NOTHING, waitP95Ms: group.wait_p95_ms, queued: group.queued };
  for (const tally of Object.keys(NOTHING) as Tally[]) {
    const since = totals[tally] < was[tally] ? 0 : was[tally];
    step[tally] = (open?.[tally] ?? 0) + totals[tally] - since;
  }
  return {
    at,
    steps: [...(open === undefined ? steps : steps.slice(0, -1)), step],
    totals,
    toldAt: nowMs,
  };
}

/** The same with the steps that have passed since: nothing was said, so nothing has changed. */
export function until(trend: Trend, nowMs: number): Trend {
  const at = Math.max(trend.at, stepAt(nowMs));
  const last = trend.steps.at(-1);
  if (at === trend.at || last === undefined) return trend;
  const quiet: Step = { ...last, ...NOTHING };
  const added = Array.from({ length: Math.min(STEPS, at - trend.at) }, () => quiet);
  return { ...trend, at, steps: [...trend.steps, ...added].slice(-STEPS) };
}

/** How long the call has waited that waits longest: it goes on where nothing changes, of which the feed says nothing. */
export function oldestWaitMs(
  { queued, oldest_wait_ms: toldMs }: Pick<GroupStatus, 'queued' | 'oldest_wait_ms'>,
  trend: Trend | undefined,
  nowMs: number,
): number {
  return queued === 0 ? 0 : toldMs + Math.max(0, nowMs - (trend?.toldAt ?? nowMs));
}

/** How often it happened within the steps that are kept. */
export function lately(trend: Trend | undefined, tally: Tally): number {
  return (trend?.steps ?? []).reduce((sum, step) => sum + step[tally], 0);
}

/** Half a minute: what lasts shorter is a wave. */
const GROWING_STEPS = 6;

/** Minimum growth of a queue within that time, in waiters and as a part of it. */
const GROWN_BY_MIN = 5;
const GROWN_BY_PART = 0.2;

/** Whether the queue is clearly longer than half a minute ago. */
export function isQueueGrowing(trend: Trend | undefined): boolean {
  const now = trend?.steps.at(-1);
  const before = trend?.steps.at(-1 - GROWING_STEPS);
  if (now === undefined || before === undefined) return false;
  return now.queued - before.queued >= Math.max(GROWN_BY_MIN, before.queued * GROWN_BY_PART);
}

function stepAt(nowMs: number): number {
  return Math.floor(nowMs / STEP_MS);
}
