import { EJECTION_CAUSES } from '../../core/words/settings.ts';
import type { HistoryPoint } from '../../contract/history.ts';
import { logEvent } from '../../runtime/log.ts';
import type { Raised, Warning, WarningKind } from '../../contract/attention.ts';
import { slotsLearned } from '../../core/capacity.ts';
import { plural } from '../../core/words/figures.ts';
import { quantileMs, type Totals } from '../../core/parts/totals.ts';
import type { Member } from '../../core/member.ts';
import { isSplit, type GroupState } from '../../core/state.ts';
import { IMPLICIT, type InstantMs, type MemberId } from '../../core/words/ids.ts';
import { queueLength } from '../../core/parts/queue.ts';
import type { PoolIdentity, WarningBounds } from '../definition.ts';
import type { GroupStore } from '../store.ts';
import { scopeWords } from '../../routing/scopes-shown.ts';
import { boundedScope, LessonWarnings, type LessonScope } from './lesson-warnings.ts';
import { LimitSteps, NearLimit } from './limit-warnings.ts';

/** Maximum warnings that are kept for the dashboard. The oldest are dropped first. */
const KEPT_MAX = 100;

/** Minimum interval between warnings of one kind. */
const SILENT_MS = 600_000;

/** How many consecutive minutes the queue must grow, and its minimum length at the end. */
const GROWING_MINUTES = 3;
const GROWING_LENGTH_MIN = 10;

/** Maximum scopes of a pool that warnings of a kind name within `SILENT_MS`. */
const SCOPES_NAMED_MAX = 10;

type EjectionReason = NonNullable<Member['controls']['outage']['reason']>;

/**
 * Warns operators of problems: in the log, in the list of warnings, and through `send`, which also receives resolved
 * warnings. It reacts to events and sets no timers. Warnings are rare, so all of them are stored in one row.
 */
export class Warnings {
  readonly #store: GroupStore;
  readonly #identity: PoolIdentity;
  readonly #send: (warning: Warning, isNew: boolean) => void;
  /** Oldest first. */
  #kept: Warning[];
  readonly #steps: LimitSteps;
  readonly #reportedAt = new Map<string, number>();
  readonly #totals: Partial<Record<WarningKind, number>> = {};
  readonly #near = new NearLimit();
  /** Lengths of the queue at the ends of the last minutes. */
  #lengths: number[] = [];
  #seen = { quota: 0, egress: 0, expired: 0, served: 0 };
  readonly #lessons: LessonWarnings;
  /** Ejected members for which a warning was raised, and the reason. */
  readonly #ejectedFor = new Map<MemberId, EjectionReason>();

  constructor(
    store: GroupStore,
    identity: PoolIdentity,
    send: (warning: Warning, isNew: boolean) => void,
  ) {
    this.#store = store;
    this.#identity = identity;
    this.#send = send;
    this.#lessons = new LessonWarnings((kind, message, figures, now, about) =>
      this.#warn(kind, message, figures, now, about),
    );
    this.#steps = new LimitSteps(store, (step, now) => this.#raise(step, now));
    const row = store.recall('warnings');
    this.#kept = row === null ? [] : (JSON.parse(row) as Warning[]);
    for (const warning of this.#kept) this.#reportedAt.set(keyOf(warning), Date.parse(warning.at));
  }

  /** Starts with the state that an earlier instance has already warned of. */
  begin({ serving }: GroupState): void {
    this.#lessons.begin(serving);
    for (const { id, controls } of serving) {
      const { reason } = controls.outage;
      if (reason !== null) this.#ejectedFor.set(id, reason);
    }
  }

  /** Lists the last warnings, latest first. */
  latest(): Warning[] {
    return this.#kept.toReversed();
  }

  totals(): Partial<Record<WarningKind, number>> {
    return { ...this.#totals };
  }

  /** Raises warnings about the changes of an event, after it. */
  note(state: GroupState, { warn_at: warnAt }: WarningBounds, now: InstantMs): void {
    const { totals } = state;
    const { quota = 0, egress = 0 } = totals.refusals;
    const seen = this.#seen;
    if (totals.expired > seen.expired) {
      const count = totals.expired - seen.expired;
      seen.expired = totals.expired;
      const holders = count === 1 ? 'Its holder' : 'Their holders';
      const message = `${plural(count, 'lease')} expired without renewal, so the slots were released. ${holders} probably crashed or lost the connection.`;
      this.#warn('lease_expired', message, { leases: count }, now);
    }
    this.#lessons.note(state, now);
    for (const member of state.serving) this.#noteEjection(member, now);
    const served = totals.ended.success ?? 0;
    // Another member may serve what one refuses, and an ejected member has a warning of its own.
    const spared = isSplit(state) ? state.serving.length : 0;
    if (spared > 0 && served > seen.served) Object.assign(seen, { quota, egress });
    seen.served = served;
    if (quota > seen.quota + spared) {
      seen.quota = quota;
      const message =
        'The upstream reports that the account has no quota left. Waiting does not help: add credit or raise the quota at the provider.';
      this.#warn('quota_exhausted', message, { refusals: quota }, now);
    }
    if (egress > seen.egress + spared) {
      seen.egress = egress;
      const message =
        "The upstream refuses calls from the Worker's location. Waiting does not help: see `upstream_refused_egress` in the log.";
      this.#warn('egress_refused', message, { refusals: egress }, now);
    }
    this.#steps.note(state, now);
    this.#noteNear(state, warnAt, now);
  }

  #noteNear(state: GroupState, warnAt: number | null, now: InstantMs): void {
    const { slotsInUse, unclaimed: orphaned, lending } = state;
    const limit = slotsLearned(state);
    const queued = queueLength(state.queue);
    const inUse = slotsInUse - orphaned.slots - lending.idle;
    const mean = this.#near.note(inUse, limit, warnAt, now);
    if (mean === null) return;
    const used = Math.round(10 * mean) / 10;
    const waiting =
      queued === 0 ? 'no calls are queued' : plural(queued, 'call is queued', 'calls are queued');
    const slots = plural(limit, 'slot has', 'slots have');
    const message = `${used} of ${slots} been in use for 1 minute, and ${waiting}.`;
    this.#warn('near_limit', message, { in_use: used, limit, queued }, now);
  }

  /** Warns once of a member that was ejected after a refusal. An operator who disabled a member needs no warning. */
  #noteEjection({ id, settings, controls: { outage } }: Member, now: InstantMs): void {
    const reason = settings.isEnabled ? outage.reason : null;
    const known = this.#ejectedFor.get(id) ?? null;
    if (reason === known) return;
    if (known !== null) this.#clear(id, now);
    this.#ejectedFor.delete(id);
    if (reason === null) return;
    if (this.#warnOfEjection(id, reason, now)) this.#ejectedFor.set(id, reason);
  }

  #warnOfEjection(id: MemberId, reason: EjectionReason, now: InstantMs): boolean {
    const message = `Member \`${id}\` gets no calls, because ${EJECTION_CAUSES[reason]}. Headgate probes it periodically.`;
    return this.#warn('member_out', message, {}, now, { member: id });
  }

  /** Marks the open warning about a member as resolved. */
  #clear(member: MemberId, now: InstantMs): void {
    const isOpen = (each: Warning): boolean =>
      each.kind === 'member_out' && each.member === member && each.cleared_at === undefined;
    const open = this.#kept.filter(isOpen);
    if (open.length === 0) return;
    const clearedAt = new Date(now).toISOString();
    this.#kept = this.#kept.map((each) =>
      open.includes(each) ? { ...each, cleared_at: clearedAt } : each,
    );
    this.#store.remember('warnings', JSON.stringify(this.#kept));
    for (const each of open) this.#send({ ...each, cleared_at: clearedAt }, false);
  }

  noteViolations(violations: Totals['violations'], now: InstantMs): void {
    const broken = Object.entries(violations).filter(([, count]) => count > 0);
    const names = broken.map(([name, count]) => `${name} (${count})`).join(', ');
    const message = `Headgate violated its own invariants: ${names}. This is a bug in Headgate. Please report it.`;
    this.#warn('invariant_violated', message, Object.fromEntries(broken), now);
  }

  /** Raises warnings about a minute when it has ended. */
  noteMinute(
    state: GroupState,
    minute: HistoryPoint,
    { warn_wait_ms: waitMsMax, timeoutMs }: WarningBounds,
    now: InstantMs,
  ): void {
    const queued = queueLength(state.queue);
    this.#lengths = [...this.#lengths, queued].slice(-GROWING_MINUTES - 1);
    const isGrowing = this.#lengths.every(
      (length, index) => index === 0 || length > (this.#lengths[index - 1] ?? 0),
    );
    if (isGrowing && this.#lengths.length > GROWING_MINUTES && queued >= GROWING_LENGTH_MIN) {
      const [before = 0] = this.#lengths;
      const message = `The queue has grown for ${GROWING_MINUTES} minutes, from ${before} to ${plural(queued, 'call')}.`;
      this.#warn('queue_growing', message, { queued, queued_before: before }, now);
    }
    const boundMs = waitMsMax ?? timeoutMs / 2;
    const p95Ms = quantileMs(minute.waits, 0.95) ?? 0;
    const longestMs = Math.max(p95Ms, oldestWaitMs(state, now));
    if (longestMs <= boundMs) return;
    const seconds = Math.round(longestMs / 1_000);
    const message = `Calls wait ${seconds} s, which exceeds the warning threshold of ${boundMs / 1_000} s.`;
    this.#warn('wait_long', message, { wait_ms: longestMs, bound_ms: boundMs, queued }, now);
  }

  /** Raises a warning, unless a similar one was raised recently. Returns whether it did. */
  #warn(
    kind: WarningKind,
    message: string,
    figures: Readonly<Record<string, number>>,
    now: InstantMs,
    { member, scope }: LessonScope = { member: IMPLICIT },
  ): boolean {
    const about = {
      ...(member !== IMPLICIT && { member }),
      ...(scope !== undefined && { scope: boundedScope(scope) }),
    };
    const key = keyOf({ kind, ...about });
    if (now - (this.#reportedAt.get(key) ?? -Infinity) < SILENT_MS) return false;
    if (scope !== undefined && !this.#mayName(kind, now)) return false;
    this.#reportedAt.set(key, now);
    this.#raise({ kind, ...about, message, figures }, now);
    return true;
  }

  /** Whether a warning may name another scope. The number is limited, because callers choose models and keys. */
  #mayName(kind: WarningKind, now: InstantMs): boolean {
    for (const [key, at] of this.#reportedAt) {
      if (now - at >= SILENT_MS) this.#reportedAt.delete(key);
    }
    const named = [...this.#reportedAt.keys()].filter((key) => key.startsWith(`${kind} {`));
    return named.length < SCOPES_NAMED_MAX;
  }

  #raise({ kind, member, scope, message, figures }: Raised, now: InstantMs): void {
    const about = {
      ...(member !== undefined && { member }),
      ...(scope !== undefined && { scope }),
    };
    this.#totals[kind] = (this.#totals[kind] ?? 0) + 1;
    const at = new Date(now).toISOString();
    const { group, partition } = this.#identity;
    const id = crypto.randomUUID();
    const warning = { id, at, kind, group, partition, ...about, message, figures };
    this.#kept = [...this.#kept, warning].slice(-KEPT_MAX);
    this.#store.remember('warnings', JSON.stringify(this.#kept));
    const named = {
      ...(member !== undefined && { member }),
      ...(scope !== undefined && { scope: scopeWords(scope) }),
    };
    logEvent('warning', { kind, group, partition, ...named, message, ...figures });
    this.#send(warning, true);
  }
}

/** Key of warnings that are not repeated for a while: their kind, and their member or scope. */
function keyOf({ kind, member = '', scope }: Pick<Warning, 'kind' | 'member' | 'scope'>): string {
  return scope === undefined
    ? `${kind} ${member}`
    : `${kind} ${JSON.stringify({ ...scope, member })}`;
}

function oldestWaitMs({ queue }: GroupState, now: InstantMs): number {
  let longest = 0;
  for (const { arrivedAt } of queue.byTicket.values()) longest = Math.max(longest, now - arrivedAt);
  return longest;
}
