import { removeReported } from '../../src/core/parts/breaker.ts';
import {
  aboutOf,
  allowanceOf,
  beginUnconfirmed,
  boundWaits,
  isContradicted,
  leftMsOf,
  mute,
  noReports,
  takeAllowance,
  undo,
  undoNumbers,
} from '../../src/core/parts/lessons.ts';
import { instant } from '../../src/core/words/ids.ts';
import type { RefusalKind } from '../../src/core/words/signal.ts';
import type { NaiveRoom } from './naive-room.ts';
import { copyOf, type NaiveLessons, type NaiveMember, type NaiveNarrower } from './naive-scopes.ts';

/** A refusal that the holder of a lease reports. */
interface NaiveReport {
  readonly kind: RefusalKind;
  readonly by: string;
  readonly retryAfterMs: number | null;
  readonly slotsMax: number | null;
}

type NaiveReportsApply = (retryAfterMs: number | null) => void;

/** Refusals reported by lease holders, and how they end. Their bounds have a separate model. */
export class NaiveReports {
  /** Number of reports that were unconfirmed at first, ignored, confirmed and refuted. */
  counts = { unconfirmed: 0, ignored: 0, confirmed: 0, refuted: 0 };
  readonly #room: NaiveRoom;

  constructor(room: NaiveRoom) {
    this.#room = room;
  }

  end(now: number): void {
    for (const member of this.#room.scopes.members.values()) {
      if (now >= (member.reports.unconfirmed?.until ?? Infinity)) this.#undo(member, now);
    }
  }

  /** A holder reports a refusal of all calls of a member. */
  apply(id: string, report: NaiveReport, apply: NaiveReportsApply, at: number): void {
    const now = instant(at);
    const member = this.#room.scopes.member(id);
    const { reports, own } = member;
    const { kind, by, retryAfterMs } = report;
    const known = reports.unconfirmed;
    const leftMs = leftMsOf(reports, by, now);
    if (known?.by !== by && leftMs === 0) {
      this.counts.ignored += 1;
      return;
    }
    if (known !== null && known.by !== by && known.about === aboutOf(kind)) {
      const slots = own.ceiling.slots;
      this.#confirm(member);
      const askedMs = known.askedUntil - now;
      apply(retryAfterMs === null || askedMs <= 0 ? null : Math.min(retryAfterMs, askedMs));
      if (kind !== 'concurrency' || slots === null || own.ceiling.slots === null) return;
      own.ceiling.slots = Math.max(slots, own.ceiling.slots);
      return;
    }
    if (known === null) this.counts.unconfirmed += 1;
    const unconfirmed = known ?? beginUnconfirmed(by, aboutOf(kind), own, leftMs, now);
    reports.unconfirmed = unconfirmed;
    const was = copyOf(own);
    apply(retryAfterMs);
    const isOwn = unconfirmed.by === by;
    const until = isOwn ? unconfirmed.until : instant(Math.min(unconfirmed.until, now + leftMs));
    takeAllowance(reports, by, boundWaits(own, was, until, now), now);
    if (isOwn) {
      const askedUntil = Math.max(unconfirmed.askedUntil, now + (retryAfterMs ?? 0));
      unconfirmed.askedUntil = instant(askedUntil);
      const slots = report.slotsMax ?? this.#room.slotsLearnedAt(id);
      if (kind === 'concurrency') unconfirmed.slotsMax = slots;
    }
    if (own.pause.until > was.pause.until) unconfirmed.pausedUntil = own.pause.until;
  }

  /** A holder reports a refusal of the calls of one scope. Only its wait counts. */
  applyInScope(
    { reports }: NaiveMember,
    lessons: NaiveLessons | NaiveNarrower,
    { by, retryAfterMs }: Pick<NaiveReport, 'by' | 'retryAfterMs'>,
    apply: NaiveReportsApply,
    at: number,
  ): void {
    const now = instant(at);
    const allowance = allowanceOf(
      reports,
      by,
      'scope' in lessons ? lessons.scope.credential : null,
    );
    const leftMs = leftMsOf(allowance, allowance.key, now);
    if (leftMs === 0) {
      this.counts.ignored += 1;
      return;
    }
    this.counts.unconfirmed += 1;
    const was = copyOf(lessons);
    apply(retryAfterMs);
    const addedMs = boundWaits(lessons, was, instant(now + leftMs), now);
    takeAllowance(allowance, allowance.key, addedMs, now);
    undoNumbers(lessons, was);
  }

  /** Headgate receives a refusal itself. It confirms similar reports, and applies without the others. */
  applySeen(member: NaiveMember, kind: RefusalKind, apply: () => void, now: number): void {
    const { own, reports } = member;
    const { unconfirmed } = reports;
    if (unconfirmed === null) return apply();
    if (unconfirmed.about === aboutOf(kind)) {
      this.#confirm(member);
      if (own.breaker.phase === 'closed') removeReported(own.breaker);
      return apply();
    }
    const isReported = own.pause.until === unconfirmed.pausedUntil;
    undo(own, unconfirmed, instant(now));
    apply();
    unconfirmed.before = copyOf(own);
    unconfirmed.slotsMax = Infinity;
    const { pausedUntil } = unconfirmed;
    if (isReported) own.pause.until = instant(Math.max(own.pause.until, pausedUntil));
  }

  /** A call was served, which may refute a report of another holder. */
  refute(
    member: NaiveMember,
    { grantedAt, slotsAtGrant }: { readonly grantedAt: number; readonly slotsAtGrant: number },
    by: string | undefined,
    now: number,
  ): void {
    const { unconfirmed } = member.reports;
    if (unconfirmed === null || by === unconfirmed.by) return;
    if (!isContradicted(unconfirmed, instant(grantedAt), slotsAtGrant)) return;
    this.counts.refuted += 1;
    mute(member.reports, unconfirmed.by, instant(now));
    this.#undo(member, now);
  }

  /** The members as stored, without unconfirmed reports. */
  written(now: number): ReadonlyMap<string, NaiveMember> {
    const { members } = this.#room.scopes;
    const copies = [...members].map(([id, { about, own, narrower, reports, hasServed }]) => {
      const copy = copyOf(own);
      if (reports.unconfirmed !== null) undo(copy, reports.unconfirmed, instant(now));
      const kept = { about, own: copy, narrower: structuredClone(narrower), hasServed };
      return [id, { ...kept, reports: noReports() }] as const;
    });
    return new Map(copies);
  }

  #confirm({ own, reports }: NaiveMember): void {
    const { unconfirmed } = reports;
    if (unconfirmed === null) return;
    this.counts.confirmed += 1;
    undoNumbers(own, unconfirmed.before);
    reports.unconfirmed = null;
    reports.allowances.delete(unconfirmed.by);
  }

  #undo({ own, reports }: NaiveMember, now: number): void {
    if (reports.unconfirmed === null) return;
    undo(own, reports.unconfirmed, instant(now));
    reports.unconfirmed = null;
  }
}
