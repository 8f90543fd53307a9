import { EJECTION_CAUSES } from '../core/words/settings.ts';
import type { Attention, Warning, WarningKind } from '../contract/attention.ts';
import type { GroupStatus } from '../contract/group-status.ts';
import { dollars, namesWords, percent, plural, spanWords } from '../core/words/figures.ts';
import { isHolding, scopeWords } from '../routing/scopes-shown.ts';
import { entry, lastRefusals, waiting, type AttentionFacts } from './serving.ts';

/** Refusals and warnings older than this are not a current state of the group. */
const LATELY_MS = 600_000;

/** Many clients give up after about this long. */
const LONG_WAIT_MS = 30_000;

/** A wait is unusual above this multiple of the usual wait, and above the minimum. */
const FAR_BEYOND = 5;
const UNUSUAL_WAIT_MS = 10_000;

/** Shorter pauses are normal: they keep calls within the limits of an upstream. */
const PAUSE_MS_MIN = 10_000;

/** Part of a budget from which `budget_near` is raised. */
const NEARLY = 0.8;

const EGRESS_ADVICE =
  'Run the Worker in a region that the provider serves (`[placement]` in wrangler.toml), or send such calls to another upstream (`spill_to`). See docs/troubleshooting.md, "The provider refuses the Worker\'s location".';

const EJECTION_ADVICE = {
  unauthorized: 'Set a valid key.',
  quota: 'Add credit or raise the quota at the provider, or set another key.',
  egress: EGRESS_ADVICE,
} as const;

type GroupRule = (group: GroupStatus, facts: AttentionFacts) => Attention | readonly Attention[];

const NONE: readonly Attention[] = [];

const unreachable: GroupRule = (group) => {
  if (group.error === undefined) return NONE;
  return entry('object_unreachable', group, null, null, {
    says: `A pool of the group does not respond: ${group.error}.`,
    words: null,
    advice:
      'Look for `reset` in the log, and check the status page of Cloudflare. `on_unavailable` decides whether calls are rejected (503 `limiter_unavailable`) or start without a slot.',
  });
};

const budgetSpent: GroupRule = (group, { refusals, warnings }) => {
  const { budget_spent: budget, spend, name } = group;
  const ofGroup = refusals.filter((one) => one.group === name && one.reason === 'budget_exhausted');
  const count = ofGroup.reduce((sum, one) => sum + one.count, 0);
  const refused =
    count === 0
      ? ''
      : ` ${plural(count, 'call was', 'calls were')} rejected in the last 10 minutes.`;
  const advice = 'Raise the budget, or wait until its period ends (UTC).';
  if (budget === null) {
    if (count === 0) return NONE;
    const [first = null] = ofGroup.map((one) => one.first_at).toSorted();
    const says = `Some calls do not fit into a budget.${refused}`;
    return entry('budget_spent', group, first, count, { says, words: null, advice });
  }
  const { window, limit_usd: limit } = budget;
  const spent =
    spend === null
      ? 0
      : { hour: spend.hour_usd, day: spend.day_usd, month: spend.month_usd }[window];
  const since = raisedAt(warnings, 'budget_spent', name);
  const effect = refused === '' ? ' Calls are rejected.' : refused;
  const says = `The budget for this ${window}${spentWords(limit, spent)}.${effect}`;
  return entry('budget_spent', group, since, count, { says, words: null, advice });
};

/** Describes an exhausted budget, as the predicate of a sentence. */
function spentWords(limit: number, spent: number): string {
  if (limit === 0) return ' is $0';
  if (spent >= limit) return ` (${dollars(limit)}) is spent`;
  const used = spent === 0 ? 'nothing' : dollars(spent);
  return ` (${dollars(limit)}) has no room for the next call (${used} is spent)`;
}

const budgetNear: GroupRule = (group, { budgets, warnings }) => {
  const { spend, budget_spent: isSpent, name } = group;
  const of = budgets.get(name);
  if (spend === null || of === undefined || isSpent !== null) return NONE;
  const spent = { hour: spend.hour_usd, day: spend.day_usd, month: spend.month_usd };
  const periods = (['month', 'day', 'hour'] as const).filter((period) => {
    const limit = of[period];
    return limit !== null && limit > 0 && spent[period] >= NEARLY * limit;
  });
  return periods.slice(0, 1).map((period) =>
    entry('budget_near', group, raisedAt(warnings, 'budget_near', name), null, {
      says: `${percent(spent[period], of[period] ?? 0)} of the budget for this ${period} (${dollars(of[period] ?? 0)}) is spent.`,
      words: null,
      advice:
        'Raise the budget before it is spent, or find the source of the cost on the Costs page.',
    }),
  );
};

/** Returns a rule for refusals that need an operator even while other calls are served. */
const refusedFor =
  (
    rule: 'quota_exhausted' | 'egress_refused',
    kind: string,
    what: string,
    advice: string,
  ): GroupRule =>
  (group, { now }) => {
    const since = new Date(now - LATELY_MS).toISOString();
    const last = lastRefusals(group, since).filter((one) => one.kind === kind);
    const [latest] = last;
    if (latest === undefined) return NONE;
    const count = group.last_hour.refusals[kind] ?? 1;
    const upstreams = [...new Set(last.map(({ upstream }) => `\`${upstream}\``))];
    return entry(rule, group, group.lately?.failing_since ?? null, count, {
      says: `${what} ${namesWords(upstreams)}: ${plural(count, 'refusal')} in the last hour.`,
      words: latest.message ?? null,
      advice,
    });
  };

const membersOut: GroupRule = (group) =>
  (group.members ?? []).flatMap(({ id, out, enabled }) => {
    if (out === null || !enabled) return [];
    const reported = {
      says: `Member \`${id}\` gets no calls, because ${EJECTION_CAUSES[out.reason]}.`,
      words: null,
      advice: `${EJECTION_ADVICE[out.reason]} Headgate probes the member periodically.`,
    };
    const subject = { kind: 'member', id } as const;
    return [{ ...entry('member_ejected', group, out.since, null, reported), subject }];
  });

const dayLimit: GroupRule = (group, { warnings }) => {
  const spent = ['rpd', 'tpd'].find((name) => (group.rates?.[name]?.left ?? 1) <= 0);
  if (spent === undefined) return NONE;
  const since = raisedAt(warnings, 'day_limit_spent', group.name);
  return entry('day_limit_spent', group, since, group.queued, {
    says: `The 24-hour limit (\`${spent}\`) is used up${waiting(group.queued)}.`,
    words: null,
    advice: `Raise \`${spent}\`, or wait. Capacity returns as the earliest calls become 24 hours old.`,
  });
};

const paused: GroupRule = (group) =>
  group.paused
    ? entry('paused', group, null, group.queued, {
        says: `An operator paused the group${waiting(group.queued)}.`,
        words: null,
        advice: 'Resume the group when the reason for the pause is gone.',
      })
    : NONE;

const upstreamPause: GroupRule = (group, { now }) => {
  const { paused_until: until, about, queued, pause } = group;
  const leftMs = until === null || about !== undefined ? 0 : Date.parse(until) - now;
  if (leftMs < PAUSE_MS_MIN) return NONE;
  return entry('upstream_pause', group, null, queued, {
    says: `The upstream asked for a backoff, which lasts another ${spanWords(leftMs)}${waiting(queued)}.`,
    words: pause?.message ?? null,
    advice:
      'Wait, or raise the limit at the provider. Resuming the group does not end the backoff.',
  });
};

const partlyStopped: GroupRule = (group, { now }) => {
  const { state, about, scopes = [], paused_until: until, breaker_until: probedAt, queued } = group;
  if (state !== 'partly paused') return NONE;
  const held = scopes.filter(isHolding);
  const ends = [until, probedAt, ...held.flatMap((one) => [one.paused_until, one.breaker_until])];
  const leftMs = Math.max(0, ...ends.map((end) => (end === null ? 0 : Date.parse(end) - now)));
  if (leftMs < PAUSE_MS_MIN) return NONE;
  const calls = [...(about === undefined ? [] : [about]), ...held.map((one) => one.about)];
  const names = [...new Set(calls.map(scopeWords))];
  return entry('partly_stopped', group, null, queued, {
    says: `The upstream accepts no calls with ${namesWords(names, 1)} for another ${spanWords(leftMs)}${waiting(queued)}.`,
    words: held.find(({ pause }) => pause?.message)?.pause?.message ?? null,
    advice:
      'All other calls start. Raise the limit for the stopped calls at the provider, or wait.',
  });
};

const noSlots: GroupRule = (group) =>
  group.limit.effective === 0 && group.queued > 0 && !group.paused
    ? entry('no_slots', group, null, group.queued, {
        says: `The slot limit is 0${waiting(group.queued)}.`,
        words: null,
        advice: 'Raise `limits.max_concurrency`.',
      })
    : NONE;

const orphanedSlots: GroupRule = (group, { now }) => {
  const { unclaimed: slots, unclaimed_until: until, queued } = group;
  if (slots === 0) return NONE;
  const leftMs = until === null ? 0 : Math.max(0, Date.parse(until) - now);
  return entry('slots_orphaned', group, null, slots, {
    says: `The pool was restarted, and earlier calls may still hold ${plural(slots, 'slot')} for at most ${spanWords(leftMs)}${waiting(queued)}.`,
    words: null,
    advice: 'Wait. The slots become free when their calls end, or when that time has passed.',
  });
};

const stuck: GroupRule = (group, facts) => {
  const raised = recent(facts, group, 'lease_expired');
  const count = raised.reduce((sum, { figures }) => sum + (figures['leases'] ?? 1), 0);
  if (count === 0) return NONE;
  return entry('slots_stuck', group, raised.at(-1)?.at ?? null, count, {
    says: `${plural(count, 'lease')} expired in the last 10 minutes without a release.`,
    words: null,
    advice: 'Look for Workers or clients that crashed, and for leases that were never released.',
  });
};

const passedUnlimited: GroupRule = (group, { now }) => {
  const { passed_unlimited_total: count, passed_unlimited_at: at } = group;
  if (at === undefined || now - Date.parse(at) >= LATELY_MS) return NONE;
  return entry('passed_unlimited', group, null, count, {
    says: `The pool was unreachable. ${plural(count, 'call')} started without a slot, the last one in the last 10 minutes.`,
    words: null,
    advice:
      'Check the status page of Cloudflare. `on_unavailable` decides whether such calls start without a slot or are rejected.',
  });
};

const oldQueue: GroupRule = (group, { now }) => {
  const { queued, oldest_wait_ms: oldestMs, state, last_hour: hour } = group;
  const waits = hour.steps.wait_p95_ms.flatMap((ms) => ms ?? []).toSorted((a, b) => a - b);
  const usualMs = waits[Math.floor(waits.length / 2)] ?? null;
  const isLong = state === 'full' && oldestMs > LONG_WAIT_MS;
  const isUnusual = usualMs !== null && oldestMs > Math.max(UNUSUAL_WAIT_MS, FAR_BEYOND * usualMs);
  if (queued === 0 || !(isLong || isUnusual)) return NONE;
  const usual =
    usualMs === null
      ? ''
      : ` (usually ${usualMs < 1_000 ? 'less than a second' : spanWords(usualMs)})`;
  const since = new Date(now - oldestMs).toISOString();
  return entry('queue_old', group, since, queued, {
    says: `${plural(queued, 'call is queued', 'calls are queued')}, the oldest for ${spanWords(oldestMs)}${usual}.`,
    words: null,
    advice:
      'Check the wait reason on the page of the group, and raise its slots if the provider allows more.',
  });
};

const growing: GroupRule = (group, facts) => {
  const [raised] = recent(facts, group, 'queue_growing');
  if (raised === undefined || group.queued < (raised.figures['queued_before'] ?? 1)) return NONE;
  return entry('queue_growing', group, raised.at, group.queued, {
    says: `The queue is growing: ${plural(group.queued, 'call is queued', 'calls are queued')}.`,
    words: null,
    advice: 'Raise the slots if the provider allows more, or send fewer calls at once.',
  });
};

const violated: GroupRule = (group, facts) => {
  const [raised] = recent(facts, group, 'invariant_violated');
  if (raised === undefined) return NONE;
  return entry('invariant_violated', group, raised.at, null, {
    says: raised.message,
    words: null,
    advice: 'Report this bug, with the log around that time.',
  });
};

/** Rules that are independent of each other. `serving.ts` has those that explain why a group serves nothing. */
export const GROUP_RULES: readonly GroupRule[] = [
  unreachable,
  budgetSpent,
  membersOut,
  dayLimit,
  paused,
  upstreamPause,
  partlyStopped,
  noSlots,
  orphanedSlots,
  stuck,
  passedUnlimited,
  oldQueue,
  growing,
  budgetNear,
  violated,
];

/**
 * Rules that are skipped for a group with an entry of `serving.ts`, because that entry already explains the refusals.
 */
export const REFUSAL_RULES: readonly GroupRule[] = [
  refusedFor(
    'egress_refused',
    'egress',
    "Calls from the Worker's location are refused at",
    EGRESS_ADVICE,
  ),
  refusedFor(
    'quota_exhausted',
    'quota',
    'The account has no quota left at',
    'Add credit or raise the quota at the provider, or use another key. Waiting does not help.',
  ),
];

function recent(
  { warnings, now }: AttentionFacts,
  { name }: GroupStatus,
  kind: WarningKind,
): Warning[] {
  const since = new Date(now - LATELY_MS).toISOString();
  return warnings.filter((one) => one.kind === kind && one.group === name && one.at >= since);
}

function raisedAt(warnings: readonly Warning[], kind: WarningKind, group: string): string | null {
  return warnings.find((one) => one.kind === kind && one.group === group)?.at ?? null;
}
