import { count, duration, usd } from '../format.ts';
import { memberStateOf } from './members.ts';
import { scopeEnd, stoppedWords } from './scope-words.ts';
import type { GroupStatus } from './status.ts';
import type { UpstreamInfo } from './upstream-view.ts';
import { isQueueGrowing, lately, oldestWaitMs, type Tally, type Trend } from './trend.ts';

/** A group that somebody had better look at. */
export interface Attention {
  /** Less is worse. */
  readonly rank: number;
  /** A few words, as in `full, 12 waiting, and the queue grows`. */
  readonly says: string;
  /** Whether the state of the group and its queue say the same already. */
  readonly isPlain: boolean;
}

/** How long a wait is that operators want to know of: many callers give up after about as long. */
const LONG_WAIT_MS = 30_000;

/**
 * Minimum length of a pause that is shown. Shorter ones are how an upstream's limits are kept, and would come
 * and go.
 */
const PAUSE_MS_MIN = 10_000;

type Rule = (group: GroupStatus, trend: Trend | undefined, nowMs: number) => string | null;

const isFailing: Rule = ({ breaker, queued, about }) =>
  breaker === 'closed' || about !== undefined
    ? null
    : `the upstream fails: the breaker is ${breaker === 'open' ? 'open' : 'half open'}${waiting(queued)}`;

const isPaused: Rule = ({ paused, queued }) =>
  paused ? `paused by an operator${waiting(queued)}` : null;

const isSlow: Rule = (group, trend, nowMs) => {
  const waitMs = oldestWaitMs(group, trend, nowMs);
  if (group.state !== 'full' || waitMs <= LONG_WAIT_MS) return null;
  return `full${waiting(group.queued)}, the oldest for ${duration(waitMs)}`;
};

const isWaitedFor: Rule = ({ paused_until, queued, about }, _trend, nowMs) => {
  if (about !== undefined) return null;
  const leftMs = paused_until === null ? 0 : Date.parse(paused_until) - nowMs;
  if (leftMs < PAUSE_MS_MIN) return null;
  return `the upstream is backing off for another ${duration(leftMs)}${waiting(queued)}`;
};

const isPartlyStopped: Rule = (group, _trend, nowMs) => {
  const { state, paused_until: until, breaker_until: probedAt, scopes = [], queued } = group;
  const stopped = stoppedWords(group);
  if (state !== 'partly paused' || stopped === null) return null;
  const ends = [until, probedAt, ...scopes.map(scopeEnd)].filter((end) => end !== null);
  const leftMs = Math.max(...ends.map((end) => Date.parse(end) - nowMs), 0);
  if (leftMs < PAUSE_MS_MIN) return null;
  return `the upstream stops only ${stopped}, for another ${duration(leftMs)}${waiting(queued)}`;
};

/** The worst first. */
const RULES: readonly Rule[] = [
  (group) => (group.state === 'unreachable' ? (group.error ?? null) : null),
  isFailing,
  ({ state, budget_spent: budget }) =>
    state !== 'budget spent' || budget === null
      ? null
      : `${usd(budget.limit_usd)} has no room: calls are refused`,
  counts('egress', (times) => `the provider serves nobody from where the Worker runs, ${times} ×`),
  counts('quota', (times) => `the provider says that the account has nothing left, ${times} ×`),
  ({ members = [] }) => {
    const out = members.filter((member) => member.out !== null && member.enabled);
    if (out.length === 0) return null;
    return `${out.map((member) => `${member.id} is ${memberStateOf(member).words}`).join('; ')}`;
  },
  counts('overBudget', (calls) => `a budget has no room for some calls: ${calls} refused`),
  ({ rates, queued }) => {
    const spent = ['rpd', 'tpd'].find((name) => (rates?.[name]?.left ?? 1) <= 0);
    return spent === undefined
      ? null
      : `${spent}: the limit of 24 hours is used up${waiting(queued)}`;
  },
  (group) => group.error ?? null,
  isPaused,
  isWaitedFor,
  isPartlyStopped,
  ({ limit, queued }) =>
    limit.effective === 0 && queued > 0 ? `its limit is 0${waiting(queued)}` : null,
  counts('expired', (slots) => `the watchdog took ${slots} ${slots === 1 ? 'slot' : 'slots'} back`),
  counts('unlimited', (calls) => `${calls} passed without a slot, because it was out of reach`),
  ({ queued }, trend) =>
    isQueueGrowing(trend) ? `full${waiting(queued)}, and the queue grows` : null,
  isSlow,
];

/** These say no more than the state of the group in its word, its queue and its pause. */
const PLAIN: ReadonlySet<Rule> = new Set([
  isFailing,
  isPaused,
  isWaitedFor,
  isPartlyStopped,
  isSlow,
]);

/** Upstreams with a secret that is not set or refused: all their calls are refused, or none runs at members of groups. */
export function missingSecrets(
  upstreams: readonly Pick<UpstreamInfo, 'id' | 'secret' | 'member_secrets'>[],
): { readonly id: string; readonly says: string }[] {
  return upstreams.flatMap(({ id, secret, member_secrets: ofMembers }) => {
    const missing = ofMembers.filter(({ is_set, name }) => !is_set && name !== secret?.name);
    return [
      ...(secret === null || secret.is_set
        ? []
        : [`the secret ${secret.name} ${secret.fault}: its calls are refused`]),
      ...missing.map(
        ({ name, fault }) => `the secret ${name} ${fault}: no call runs at its members`,
      ),
    ].map((says) => ({ id, says }));
  });
}

/** Why a group needs somebody to look at it. Null: it does not. */
export function attentionOf(
  group: GroupStatus,
  trend: Trend | undefined,
  nowMs: number,
): Attention | null {
  for (const [rank, rule] of RULES.entries()) {
    const says = rule(group, trend, nowMs);
    if (says !== null) return { rank, says, isPlain: PLAIN.has(rule) };
  }
  return null;
}

/** Makes a rule for what must not happen at all, and did within the last minutes. */
function counts(tally: Tally, says: (times: number) => string): Rule {
  return (_group, trend) => {
    const times = lately(trend, tally);
    return times === 0 ? null : says(times);
  };
}

function waiting(queued: number): string {
  return queued === 0 ? '' : `, ${count(queued)} waiting`;
}
