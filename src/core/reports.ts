import { instant, type InstantMs } from './words/ids.ts';
import { takesOut, type RefusalKind, type UpstreamSignal } from './words/signal.ts';
import {
  aboutOf,
  beginUnconfirmed,
  boundWaits,
  isMuted,
  mute,
  noReports,
  undo,
  type Unconfirmed,
} from './parts/reports.ts';
import type { Controls } from './controls.ts';
import type { Member } from './member.ts';
import type { GroupState } from './state.ts';

/** Handles the reports of lease holders within the bounds of `parts/reports.ts`: begin, confirmation, refutation and end. */

/** Undoes reports that were not confirmed in time, and mutes their keys for a while. */
export function endReports(state: GroupState, now: InstantMs): void {
  for (const member of state.members.values()) {
    const { unconfirmed } = member.reports;
    if (unconfirmed === null || now < unconfirmed.until) continue;
    // Otherwise one key could stop the group with a new report each minute.
    mute(member.reports, unconfirmed.by, now);
    undoReports(state, member, unconfirmed);
  }
}

/** Finds when the first report ends; Infinity: there are none. */
export function reportsDueAt({ members }: GroupState): number {
  let dueAt = Infinity;
  for (const { reports } of members.values()) {
    dueAt = Math.min(dueAt, reports.unconfirmed?.until ?? Infinity);
  }
  return dueAt;
}

/**
 * Applies a refusal that a holder reported, by `apply`, for as long as it may count. A rejected key or an empty account has
 * no effect on calls of other keys.
 */
export function applyReport(
  state: GroupState,
  member: Member,
  { kind, by, retryAfterMs }: { kind: RefusalKind; by: string; retryAfterMs: number | null },
  apply: (retryAfterMs: number | null) => void,
  now: InstantMs,
): void {
  const { reports, controls } = member;
  const { reports: counts } = state.totals;
  if (takesOut(kind) || kind === 'never_fits') return;
  if (isMuted(reports, by, now)) {
    counts.ignored += 1;
    return;
  }
  const known = reports.unconfirmed;
  if (known !== null && known.by !== by && known.about === aboutOf(kind)) {
    counts.confirmed += 1;
    reports.unconfirmed = null;
    // Both keys agree on the shorter wait.
    const leftMs = known.askedUntil - now;
    return apply(retryAfterMs === null || leftMs <= 0 ? null : Math.min(retryAfterMs, leftMs));
  }
  if (known === null) counts.unconfirmed += 1;
  const unconfirmed = known ?? beginUnconfirmed(by, aboutOf(kind), controls, now);
  reports.unconfirmed = unconfirmed;
  apply(retryAfterMs);
  if (unconfirmed.by === by) {
    unconfirmed.askedUntil = instant(Math.max(unconfirmed.askedUntil, now + (retryAfterMs ?? 0)));
  }
  boundWaits(controls, unconfirmed);
  unconfirmed.pausedUntil = controls.pause.until;
}

/** Notes a refusal that Headgate saw: it confirms reports of the same kind. */
export function confirmReports(state: GroupState, member: Member, kind: RefusalKind): void {
  const { unconfirmed } = member.reports;
  if (unconfirmed === null || takesOut(kind) || unconfirmed.about !== aboutOf(kind)) return;
  state.totals.reports.confirmed += 1;
  member.reports.unconfirmed = null;
}

/** Notes a served call. If it was granted after a report, the report is false, or no longer true. */
export function refuteReports(
  state: GroupState,
  member: Member,
  { reportedBy }: Pick<UpstreamSignal, 'reportedBy'>,
  grantedAt: InstantMs,
  now: InstantMs,
): void {
  const { reports, controls } = member;
  const { unconfirmed } = reports;
  if (unconfirmed === null || grantedAt <= unconfirmed.since || reportedBy === unconfirmed.by) {
    return;
  }
  state.totals.reports.refuted += 1;
  mute(reports, unconfirmed.by, now);
  undoReports(state, member, unconfirmed);
  const { pausedUntil, before } = unconfirmed;
  if (controls.pause.until === pausedUntil) controls.pause.until = before.pause.until;
}

/** Deletes all reports of a member and their effects. */
export function forgetReports(member: Member): void {
  member.reports = noReports();
}

/** The controls as they are stored: without unconfirmed effects, which a reset forgets. */
export function confirmedControls(state: GroupState, controls: Controls): Controls {
  for (const member of state.members.values()) {
    const { unconfirmed } = member.reports;
    if (member.controls === controls && unconfirmed !== null) {
      return { ...controls, ...unconfirmed.before };
    }
  }
  return controls;
}

function undoReports(state: GroupState, member: Member, unconfirmed: Unconfirmed): void {
  undo(member.controls, unconfirmed);
  member.reports.unconfirmed = null;
  state.isControlsDirty = true;
}
