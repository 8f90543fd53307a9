import { count, duration } from '../format.ts';
import { stateOf } from './group-state.ts';
import type { GroupStatus } from './status.ts';
import { isQueueGrowing, lately, type Trend } from './trend.ts';

/** A group that somebody had better look at. */
export interface Attention {
  /** Less is worse. */
  readonly rank: number;
  /** A few words, as in `full, 12 waiting, and the queue grows`. */
  readonly says: string;
}

/** Many callers give up after about as long, and operators want to know before. */
const LONG_WAIT_MS = 30_000;

/** Shorter pauses are how an upstream's limits are kept, and would come and go on the page. */
const PAUSE_MS_MIN = 10_000;

type Rule = (group: GroupStatus, trend: Trend | undefined, nowMs: number) => string | null;

/** The worst first. */
const RULES: readonly Rule[] = [
  (group) => (stateOf(group) === 'unreachable' ? (group.error ?? 'it cannot be reached') : null),
  ({ breaker, ...group }) =>
    breaker === 'closed'
      ? null
      : `the upstream fails: the breaker is ${breaker === 'open' ? 'open' : 'half open'}${waiting(group)}`,
  (_group, trend) => {
    const times = lately(trend, 'quota');
    return times === 0 ? null : `the provider says that the account has nothing left, ${times} ×`;
  },
  (_group, trend) => {
    const calls = lately(trend, 'overBudget');
    return calls === 0 ? null : `a budget is spent: ${calls} refused`;
  },
  (group) => {
    const spent = ['rpd', 'tpd'].find((name) => (group.rates?.[name]?.left ?? 1) <= 0);
    return spent === undefined
      ? null
      : `${spent}: the limit of 24 hours is used up${waiting(group)}`;
  },
  (group) => group.error ?? null,
  (group) => (group.paused ? `paused by an operator${waiting(group)}` : null),
  (group, _trend, nowMs) => {
    const leftMs = group.paused_until === null ? 0 : Date.parse(group.paused_until) - nowMs;
    if (leftMs < PAUSE_MS_MIN) return null;
    return `the upstream wants no calls for another ${duration(leftMs)}${waiting(group)}`;
  },
  (group) =>
    group.limit.effective === 0 && group.queued > 0 ? `its limit is 0${waiting(group)}` : null,
  (_group, trend) => {
    const slots = lately(trend, 'expired');
    return slots === 0 ? null : `the watchdog took ${slots} ${slots === 1 ? 'slot' : 'slots'} back`;
  },
  (_group, trend) => {
    const calls = lately(trend, 'unlimited');
    return calls === 0 ? null : `${calls} passed without a slot, because it was out of reach`;
  },
  (group, trend) => (isQueueGrowing(trend) ? `full${waiting(group)}, and the queue grows` : null),
  (group) =>
    stateOf(group) === 'full' && group.oldest_wait_ms > LONG_WAIT_MS
      ? `full${waiting(group)}, the oldest for ${duration(group.oldest_wait_ms)}`
      : null,
];

/** Why a group needs somebody to look at it. Null: it does not. */
export function attentionOf(
  group: GroupStatus,
  trend: Trend | undefined,
  nowMs: number,
): Attention | null {
  for (const [rank, rule] of RULES.entries()) {
    const says = rule(group, trend, nowMs);
    if (says !== null) return { rank, says };
  }
  return null;
}

function waiting({ queued }: Pick<GroupStatus, 'queued'>): string {
  return queued === 0 ? '' : `, ${count(queued)} waiting`;
}
