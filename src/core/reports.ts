import { instant, type InstantMs } from './words/ids.ts';
import { takesOut, type RefusalKind } from './words/signal.ts';
import { removeReported } from './parts/breaker.ts';
import {
  aboutOf,
  allowanceOf,
  beginUnconfirmed,
  boundWaits,
  copyOfLessons,
  isContradicted,
  leftMsOf,
  mute,
  noReports,
  takeAllowance,
  undo,
  undoNumbers,
  type Unconfirmed,
} from './parts/lessons.ts';
import { memberSlotsLearned } from './capacity.ts';
import type { Controls, Limiter, ScopeLimiter, Member } from './member.ts';
import type { GroupState, ActiveLease } from './state.ts';

/**
 * Handles reports of lease holders within the bounds of `parts/lessons.ts`: start, confirmation, refutation and end.
 */

/** Reverts reports that were not confirmed in time. */
export function endReports(state: GroupState, now: InstantMs): void {
  for (const member of state.members.values()) {
    const { unconfirmed } = member.reports;
    if (unconfirmed === null || now < unconfirmed.until) continue;
    undoReports(state, member, unconfirmed, now);
  }
}

/** Returns when the first report ends. Infinity if there are none. */
export function reportsDueAt({ members }: GroupState): number {
  let dueAt = Infinity;
  for (const { reports } of members.values()) {
    dueAt = Math.min(dueAt, reports.unconfirmed?.until ?? Infinity);
  }
  return dueAt;
}

interface HolderReport {
  readonly kind: RefusalKind;
  readonly by: string;
  readonly retryAfterMs: number | null;
  /** The concurrency limit that the refusal names. */
  readonly slotsMax: number | null;
}

type ApplyRefusal = (retryAfterMs: number | null) => void;

/**
 * Applies a refusal that a holder reported, for as long as it may count. A rejected key or an empty account has
 * no effect on calls of other keys.
 */
export function applyReport(
  state: GroupState,
  member: Member,
  report: HolderReport,
  apply: ApplyRefusal,
  now: InstantMs,
): void {
  const { reports, controls } = member;
  const { kind, by } = report;
  if (hasNoEffect(kind)) return;
  const known = reports.unconfirmed;
  const leftMs = leftMsOf(reports, by, now);
  if (known?.by !== by && leftMs === 0) {
    state.totals.reports.ignored += 1;
    return;
  }
  if (known !== null && known.by !== by && known.about === aboutOf(kind)) {
    return confirmByKey(state, member, known, report, apply, now);
  }
  if (known === null) state.totals.reports.unconfirmed += 1;
  const unconfirmed = known ?? beginUnconfirmed(by, aboutOf(kind), controls, leftMs, now);
  reports.unconfirmed = unconfirmed;
  const was = copyOfLessons(controls);
  apply(report.retryAfterMs);
  const isOwn = unconfirmed.by === by;
  const until = isOwn ? unconfirmed.until : Math.min(unconfirmed.until, now + leftMs);
  takeAllowance(reports, by, boundWaits(controls, was, instant(until), now), now);
  if (isOwn) noteClaim(member, unconfirmed, report, now);
  if (controls.pause.until > was.pause.until) unconfirmed.pausedUntil = controls.pause.until;
}

/**
 * Applies a refusal that a holder reported to the lessons of one scope at a member. Only its wait counts, and only for
 * as long as the reports of the key may still stop calls.
 */
export function applyReportInScope(
  state: GroupState,
  { reports }: Member,
  limiter: Limiter | ScopeLimiter,
  { by, retryAfterMs }: Pick<HolderReport, 'by' | 'retryAfterMs'>,
  apply: ApplyRefusal,
  now: InstantMs,
): void {
  const lessons = limiter.controls;
  const credential = 'scope' in limiter ? limiter.scope.credential : null;
  const allowance = allowanceOf(reports, by, credential);
  const leftMs = leftMsOf(allowance, allowance.key, now);
  if (leftMs === 0) {
    state.totals.reports.ignored += 1;
    return;
  }
  state.totals.reports.unconfirmed += 1;
  const was = copyOfLessons(lessons);
  apply(retryAfterMs);
  const addedMs = boundWaits(lessons, was, instant(now + leftMs), now);
  takeAllowance(allowance, allowance.key, addedMs, now);
  undoNumbers(lessons, was);
}

/** Stores the claims of a report that served calls can contradict. */
function noteClaim(
  member: Member,
  unconfirmed: Unconfirmed,
  { kind, retryAfterMs, slotsMax }: HolderReport,
  now: InstantMs,
): void {
  unconfirmed.askedUntil = instant(Math.max(unconfirmed.askedUntil, now + (retryAfterMs ?? 0)));
  if (kind !== 'concurrency') return;
  unconfirmed.slotsMax = slotsMax ?? memberSlotsLearned(member);
}

/** Applies the report of a second key: the shorter wait and the larger concurrency limit of both. */
function confirmByKey(
  state: GroupState,
  member: Member,
  known: Unconfirmed,
  { kind, retryAfterMs }: HolderReport,
  apply: ApplyRefusal,
  now: InstantMs,
): void {
  const { ceiling } = member.controls;
  const slots = ceiling.slots;
  confirmReports(state, member, known);
  const leftMs = known.askedUntil - now;
  apply(retryAfterMs === null || leftMs <= 0 ? null : Math.min(retryAfterMs, leftMs));
  if (kind !== 'concurrency' || slots === null || ceiling.slots === null) return;
  ceiling.slots = Math.max(slots, ceiling.slots);
}

/**
 * Applies a refusal that Headgate saw to the state without the reports, so that their end does not revert it. Only a
 * reported pause continues. Reports of the same kind are confirmed.
 */
export function applySeen(
  state: GroupState,
  member: Member,
  kind: RefusalKind,
  apply: () => void,
  now: InstantMs,
): void {
  const { pause, breaker } = member.controls;
  const { unconfirmed } = member.reports;
  if (unconfirmed === null || hasNoEffect(kind)) return apply();
  if (unconfirmed.about === aboutOf(kind)) {
    confirmReports(state, member, unconfirmed);
    if (breaker.phase === 'closed') removeReported(breaker);
    return apply();
  }
  const isReported = pause.until === unconfirmed.pausedUntil;
  undo(member.controls, unconfirmed, now);
  apply();
  unconfirmed.before = copyOfLessons(member.controls);
  unconfirmed.slotsMax = Infinity;
  if (isReported) pause.until = instant(Math.max(pause.until, unconfirmed.pausedUntil));
  state.isControlsDirty = true;
}

/** Ends reports as true: their waits continue. */
function confirmReports(state: GroupState, member: Member, unconfirmed: Unconfirmed): void {
  const { reports, controls } = member;
  state.totals.reports.confirmed += 1;
  undoNumbers(controls, unconfirmed.before);
  reports.unconfirmed = null;
  reports.allowances.delete(unconfirmed.by);
  state.isControlsDirty = true;
}

/**
 * Handles a served call. It refutes reports that it contradicts, because it was granted within the reported wait or
 * with more calls in flight than the reported concurrency limit.
 */
export function refuteReports(
  state: GroupState,
  member: Member,
  { callableAt: grantedAt, slotsAtGrant }: ActiveLease,
  reportedBy: string | undefined,
  now: InstantMs,
): void {
  const { reports } = member;
  const { unconfirmed } = reports;
  if (unconfirmed === null || reportedBy === unconfirmed.by) return;
  if (!isContradicted(unconfirmed, grantedAt, slotsAtGrant)) return;
  state.totals.reports.refuted += 1;
  mute(reports, unconfirmed.by, now);
  undoReports(state, member, unconfirmed, now);
}

/** Deletes all reports of a member and their effects. */
export function forgetReports(member: Member): void {
  member.reports = noReports();
}

/** The controls as they are stored: without unconfirmed effects, which a reset forgets. */
export function confirmedControls(state: GroupState, controls: Controls, now: InstantMs): Controls {
  for (const member of state.members.values()) {
    const { unconfirmed } = member.reports;
    if (member.controls !== controls || unconfirmed === null) continue;
    const lessons = copyOfLessons(controls);
    undo(lessons, unconfirmed, now);
    return { ...controls, ...lessons };
  }
  return controls;
}

function undoReports(
  state: GroupState,
  member: Member,
  unconfirmed: Unconfirmed,
  now: InstantMs,
): void {
  undo(member.controls, unconfirmed, now);
  member.reports.unconfirmed = null;
  state.isControlsDirty = true;
}

function hasNoEffect(kind: RefusalKind): boolean {
  return takesOut(kind) || kind === 'never_fits';
}
