import {
  after,
  earlier,
  instant,
  type InstantMs,
  type LeaseId,
  type MemberId,
} from '../words/ids.ts';
import { LEASE_TTL_MS } from '../words/settings.ts';

/**
 * The bound of what a group has handed out, on disk. Everything at or below the mark counts as handed out
 * after a reset, until its holder says otherwise or its time is over. So a grant below it writes nothing.
 */

/** A row of the bound. The one with the highest `seq` says the mark. */
export interface BoundRow {
  readonly seq: number;
  /** The instant at which it was issued. */
  readonly at: InstantMs;
  /** Slots that may be held from now on. */
  readonly mark: number;
  /** Slots that were held when it was issued. */
  readonly held: number;
  /** Leases with a smaller attachment have no slot any more. */
  readonly since: number;
  /** The next attachment. Those that follow it unwritten are fewer than `ATTACHMENTS_UNWRITTEN_MAX`. */
  readonly next: number;
  /** Leases whose slots came free since the row before, and leases that were taken away. */
  readonly ended: readonly LeaseId[];
  /** The same of leases that nobody renewed: their holders may come back, but their slots may have been handed on. */
  readonly lapsed: readonly LeaseId[];
  /**
   * Leases whose answers leave behind it, or behind one that was on its way when it was issued: they may be lost with
   * the instance, and their callers ask again.
   */
  readonly granted: readonly LeaseId[];
  /** Leases of waiters that may have the slots of others unwritten, whose holders have released them: see `heirs.ts`. */
  readonly heirs: readonly LeaseId[];
  /** A power of two that is no smaller than the number of waiters then, nor three times as large; 0: nobody waited. */
  readonly waiters: number;
  /** When the last of them may have left at the latest. Absent: nobody waited, or an older release wrote it. */
  readonly waitersUntil?: InstantMs;
  /** The mark and what was held of each member, where the group names members; their sums are those above. Absent: it does not. */
  readonly members?: Readonly<Record<MemberId, Pick<MemberPart, 'mark' | 'held'>>>;
  /** Holders of some slots may live longer than the process that wrote it. Absent: none does. */
  readonly mayOutlive?: true;
  /** Where those of `granted` run. Absent: the group names no members. */
  readonly grantedAt?: Readonly<Record<LeaseId, MemberId>>;
}

/** The part of a write that is about one member. */
export interface MemberPart {
  readonly mark: number;
  readonly held: number;
  /** As with the write. */
  granted: number;
}

/** The next waiters, as a write lists them. */
export interface NextHolders {
  readonly ids: readonly LeaseId[];
  /** Waiters besides them that might have been listed, and are not of the kind. */
  readonly unlisted: number;
}

/** A write on its way, or the last one that arrived. */
export interface BoundWrite {
  readonly seq: number;
  readonly at: InstantMs;
  readonly mark: number;
  readonly held: number;
  /** Slots granted since it was issued. What ended since gives no room back. */
  granted: number;
  /** The same of each member. Empty: the group names none. */
  readonly parts: Map<MemberId, MemberPart>;
  /** Leases whose answers leave behind it. */
  readonly awaited: readonly LeaseId[];
  /** All that its row lists as granted: their callers may ask for them again. */
  readonly answering: ReadonlySet<LeaseId>;
  /** Waiters that may have a vacated slot. */
  readonly heirs: ReadonlySet<LeaseId>;
  readonly unlisted: number;
  /**
   * Leases whose slots came free since it was issued, by the only word of their holders, and are not handed on yet;
   * each with its member, and those that had its slot before it.
   */
  readonly vacated: Map<LeaseId, VacatedSlot>;
  /** As its row says. */
  readonly mayOutlive: boolean;
}

/** A slot that came free and may be handed on unwritten, at its member. */
interface VacatedSlot {
  readonly member: MemberId;
  readonly heirOf: readonly LeaseId[];
}

/** A slot that was given back, and that an heir may have. */
export interface ReleasedSlot {
  readonly freeAt: InstantMs;
  member: MemberId;
}

export interface Bound {
  /** False: nothing of the group is stored, and no grant waits for a write. */
  isStored: boolean;
  seq: number;
  /** The last write that is known to have arrived. Null: none of this instance. */
  confirmed: BoundWrite | null;
  /** Writes on their way, the oldest first. */
  inFlight: BoundWrite[];
  /** Leases whose slots came free since the last write. */
  ended: LeaseId[];
  /** Leases that lapsed since the last write. */
  lapsed: LeaseId[];
  /** Of those that may not be claimed, the ones that lapsed. */
  readonly lapsedBefore: Set<LeaseId>;
  /** Leases whose answers wait for the next write. */
  awaited: LeaseId[];
  /**
   * Leases whose answers left behind the last write of the instance before, and may have been lost with it; each with
   * its member.
   */
  readonly grantedBefore: Map<LeaseId, MemberId>;
  /** Leases that the instance before may have granted unwritten, in the slots of others, and of which nobody has heard. */
  readonly heirsBefore: Set<LeaseId>;
  /** Slots that were given back and stay unclaimed, because one of these may have them: when each may be free, and where. */
  readonly passedBefore: ReleasedSlot[];
  /** The last write that had arrived when one was asked for that lists heirs. */
  heirsNotedAt: number;
  /** Waiters that the last write tells of. */
  waiters: number;
  /** When the last of all that have waited since nobody did leaves at the latest. */
  waitersUntil: InstantMs;
  /** The last write that was issued when slots came free of whose holder nobody has heard. */
  lostSeq: number;
  /** Leases whose slots came free, in instances before or in this one, as long as anything is unclaimed. */
  readonly unclaimable: Set<LeaseId>;
  since: number;
  /** The first attachment of this instance: leases with a smaller one were granted by an earlier one. */
  first: number;
  /** Slots granted in a second of the clock, and in the one before it. */
  pace: { second: number; granted: number; before: number };
  /** Since when nothing is held; null: something is. */
  emptyAt: InstantMs | null;
  /** It was noted that this is to be written. */
  isEmptyNoted: boolean;
  /** The last time that nothing was held, it lasted. */
  isSparse: boolean;
  /** Since nothing was held, some lease was held by its id: its holder may live longer than the process. */
  mayOutlive: boolean;
}

/** How long after its issue a write covers grants. An instance that was replaced can hand out no longer. */
export const COVERS_MS = 2_000;

/** How long a write may take to arrive; then the instance is lost. */
export const CONFIRM_MS = 5_000;

/** How old the last write may be when a renewal is answered. */
export const RENEWED_BEHIND_MS = 10_000;

/** Maximum limit at which every grant is written: a margin of one would be too large a part of it. */
const EXACT_SLOTS_MAX = 8;

/** Minimum margin where there is room for one. */
const MARGIN_MIN = 4;

/** The part of the held slots that the margin is at least, and of the limit by which a mark may exceed it. */
const MARGIN_SHARE = 1 / 8;

/** The part of the margin that is left when a write is issued ahead. */
const AHEAD_SHARE = 1 / 4;

/** Minimum slots granted since the last write for it to be renewed before it is too old: grants come quickly. */
const AGEING_MIN = 16;

/** How long a busy group is empty before that is written: at 50 ms one that often runs dry would pay a row a call. */
const EMPTY_BUSY_MS = 3_000;

/** The same where the next call is likely to come later: an object that waits for a timer is paid for. */
const EMPTY_SPARSE_MS = 50;

/** Maximum ended leases that wait for the next write: a row holds 2 MB at the most. */
const ENDED_MAX = 5_000;

/** The same where they are written together with the controls, over and over. */
const ENDED_KEPT_MAX = 500;

/** Maximum attachments that an instance gives out after its last write; more than a second of them. */
export const ATTACHMENTS_UNWRITTEN_MAX = 1_000_000;

/** Minimum waiters that are told of by a write of its own: fewer make little difference after a reset. */
const WAITERS_REPORTED_MIN = 256;

/** The part of the waiters told of that must be there for it to stay: a queue that swings is not told of each time. */
const WAITERS_KEPT_SHARE = 3 / 8;

/** The bound of a group of which nothing is held. */
export function emptyBound(firstAttachment: number, isStored: boolean): Bound {
  return {
    isStored,
    seq: 0,
    confirmed: null,
    inFlight: [],
    ended: [],
    lapsed: [],
    lapsedBefore: new Set(),
    awaited: [],
    grantedBefore: new Map(),
    heirsBefore: new Set(),
    passedBefore: [],
    heirsNotedAt: 0,
    waiters: 0,
    waitersUntil: instant(0),
    lostSeq: 0,
    unclaimable: new Set(),
    since: firstAttachment,
    first: firstAttachment,
    pace: { second: 0, granted: 0, before: 0 },
    emptyAt: instant(0),
    isEmptyNoted: false,
    isSparse: true,
    mayOutlive: false,
  };
}

/**
 * Whether all that was handed out is covered by what is on disk: what was held when the last write that
 * arrived was issued, and all that was granted since, is at or below every mark that may be there.
 */
export function isCovered(bound: Bound, now: InstantMs): boolean {
  const { isStored, confirmed, lostSeq } = bound;
  if (!isStored) return true;
  if (confirmed === null || now >= after(confirmed.at, COVERS_MS)) return false;
  if (confirmed.seq <= lostSeq) return false;
  if (confirmed.held + confirmed.granted > markOnDisk(bound)) return false;
  const writes = writesOf(bound);
  for (const [member, { held, granted }] of confirmed.parts) {
    const mark = Math.min(...writes.map(({ parts }) => parts.get(member)?.mark ?? 0));
    if (held + granted > mark) return false;
  }
  return true;
}

/**
 * Whether whatever may be on disk says that holders may live longer than the process. Before, no holder of a lease by its id may
 * hear that it has it: a process that came after this one would know nothing of it.
 */
export function isOutlivingReported(bound: Bound): boolean {
  return writesOf(bound).every(({ mayOutlive }) => mayOutlive);
}

/** Finds the least mark that may be on disk: of the last write that has arrived, or of one on its way. */
export function markOnDisk(bound: Bound): number {
  return Math.min(...writesOf(bound).map(({ mark }) => mark));
}

/** Lists the writes that may be the last on disk, the oldest first. */
export function writesOf({ confirmed, inFlight }: Bound): readonly BoundWrite[] {
  return confirmed === null ? inFlight : [confirmed, ...inFlight];
}

/** Counts slots that were granted, written or not; `isPassed`: they are those of a lease that the writes count. */
export function noteHandedOut(
  bound: Bound,
  member: MemberId,
  slots: number,
  now: InstantMs,
  isPassed = false,
): void {
  const { pace } = bound;
  if (!isPassed) for (const write of writesOf(bound)) noteGranted(write, member, slots);
  const second = Math.floor(now / 1_000);
  if (second !== pace.second) {
    pace.before = second === pace.second + 1 ? pace.granted : 0;
    pace.granted = 0;
    pace.second = second;
  }
  pace.granted += slots;
}

function noteGranted(write: BoundWrite, member: MemberId, slots: number): void {
  write.granted += slots;
  const part = write.parts.get(member);
  if (part !== undefined) part.granted += slots;
  // A member that came since: nothing of it is covered.
  else if (write.parts.size > 0) write.parts.set(member, { mark: 0, held: 0, granted: slots });
}

/**
 * Remembers for the next write that the slots of a lease came free, and for claims of it, which would take another
 * one's slots: there may be more of those than there are tombstones.
 *
 * @param isOrphaned there are slots that may be claimed
 */
export function noteFreed(bound: Bound, id: LeaseId, isOrphaned: boolean): void {
  if (isOrphaned) bound.unclaimable.add(id);
  if (bound.isStored) bound.ended.push(id);
}

/** Remembers for the next write that the slots of a lease came free because nobody renewed it. */
export function noteLapsed(bound: Bound, id: LeaseId): void {
  if (bound.isStored) bound.lapsed.push(id);
}

/**
 * Finds until when a holder may count on a lease without another word. An instance that came after the last write to arrive counts
 * what was handed out for one TTL from its begin.
 */
export function countsUntil({ isStored, confirmed }: Bound, until: InstantMs): InstantMs {
  if (!isStored || confirmed === null) return until;
  return earlier(until, after(confirmed.at, LEASE_TTL_MS));
}

/**
 * Remembers that slots came free without a word of their holder: its connection broke, or it was not heard for a
 * TTL. It may live, and hold them by a newer instance. So they are handed on behind a write only, which fails then: a
 * mark may exceed the limit, and this instance would stay below it while more calls run than the limit allows.
 */
export function noteLost(bound: Bound): void {
  bound.lostSeq = bound.seq;
}

/** Notes that the members are others: what is on disk tells of those that there were, and covers nothing any more. */
export function noteOtherMembers(bound: Bound): void {
  noteLost(bound);
  const noNextHolders = { heirs: new Set<LeaseId>(), vacated: new Map<LeaseId, VacatedSlot>() };
  if (bound.confirmed !== null) bound.confirmed = { ...bound.confirmed, ...noNextHolders };
  bound.inFlight = bound.inFlight.map((write) => ({ ...write, ...noNextHolders }));
}

/** Remembers for the next write that the answer with a lease waits for it. */
export function noteAwaited(bound: Bound, id: LeaseId): void {
  if (bound.isStored) bound.awaited.push(id);
}

/** Takes note of whether anything is held. */
export function noteHeld(bound: Bound, held: number, now: InstantMs): void {
  if (held === 0) bound.emptyAt ??= now;
  if (held === 0 || bound.emptyAt === null) return;
  bound.isSparse = now - bound.emptyAt >= EMPTY_BUSY_MS;
  bound.emptyAt = null;
  bound.isEmptyNoted = false;
}

/** Reads the mark of the last write; 0: there is none. */
export function markOf({ confirmed, inFlight }: Bound): number {
  return (inFlight.at(-1) ?? confirmed)?.mark ?? 0;
}

/** Finds when it is to be written that nothing is held; Infinity: something is, or it was noted. */
export function emptyDueAt(bound: Bound): InstantMs {
  const { emptyAt, isSparse, isStored, isEmptyNoted } = bound;
  const isDue = isStored && emptyAt !== null && !isEmptyNoted && markOf(bound) > 0;
  if (!isDue) return instant(Infinity);
  return after(emptyAt, isSparse ? EMPTY_SPARSE_MS : EMPTY_BUSY_MS);
}

/**
 * Whether the number of waiters differs so much from what the last write tells that it is worth one of its own: there
 * are more, or all have gone.
 */
export function hasTenantCountChanged(
  { isStored, waiters: reported }: Bound,
  waiters: number,
): boolean {
  if (!isStored) return false;
  if (waiters === 0) return reported >= WAITERS_REPORTED_MIN;
  return waiters > WAITERS_REPORTED_MIN && waiters > reported;
}

/** Finds what a write tells of so many waiters. What the last one told stays as long as it is not far too much. */
function reportedOf(reported: number, waiters: number): number {
  if (waiters <= reported && waiters > reported * WAITERS_KEPT_SHARE) return reported;
  return waiters === 0 ? 0 : 2 ** Math.ceil(Math.log2(waiters));
}

/** Finds when a write is overdue; Infinity: none is on its way. */
export function lostAt({ inFlight }: Bound): InstantMs {
  const [oldest] = inFlight;
  return oldest === undefined ? instant(Infinity) : after(oldest.at, CONFIRM_MS);
}

/** Whether a write had better be issued now, so that the next grants need not wait for one. */
export function isRunningOut(bound: Bound, now: InstantMs): boolean {
  const { isStored, confirmed, inFlight, ended } = bound;
  if (!isStored) return false;
  if (ended.length >= ENDED_MAX) return true;
  if (confirmed === null || inFlight.length > 0) return false;
  const { at, mark, held, granted, parts } = confirmed;
  if (mark === held) return false;
  const isAgeing = now >= after(at, COVERS_MS / 2) && granted >= AGEING_MIN;
  const each = parts.size > 0 ? [...parts.values()] : [confirmed];
  return isAgeing || each.some(isNearlyUsed);
}

function isNearlyUsed({ mark, held, granted }: MemberPart): boolean {
  const margin = mark - held;
  return margin > 0 && margin - granted <= margin * AHEAD_SHARE;
}

/**
 * Computes how much higher than what is held a mark is. After a reset so many slots are idle until their
 * time is over, so it is small where there are few, and beyond the limit where there are none free.
 *
 * @param limit slots of the group; Infinity: any number
 */
export function marginOf({ pace }: Bound, held: number, limit: number, now: InstantMs): number {
  if (limit <= EXACT_SLOTS_MAX) return 0;
  const isLately = Math.floor(now / 1_000) <= pace.second + 1;
  const perSecond = isLately ? Math.max(pace.granted, pace.before) : 0;
  const wanted = Math.max(MARGIN_MIN, Math.floor(held * MARGIN_SHARE), perSecond);
  const free = Math.max(0, limit - held);
  return Math.min(wanted, Math.floor(free / 2) + Math.floor(limit * MARGIN_SHARE));
}

/** Whether what ended since the last row of the ring has to go into the ring now. */
export function isRingDue({ ended }: Bound): boolean {
  return ended.length > ENDED_KEPT_MAX;
}

/**
 * Issues a write. Its row must be written in the same turn.
 *
 * @param isKept it goes into the row of the controls, which is written over by the next of its kind: what
 *   ended is told once more in the next row of the ring
 */
export function issue(
  bound: Bound,
  row: Pick<BoundRow, 'mark' | 'held' | 'next' | 'waiters'> & {
    readonly revoking: Iterable<LeaseId>;
    readonly heirs: NextHolders;
    readonly parts: ReadonlyMap<MemberId, Pick<MemberPart, 'mark' | 'held'>>;
    /** Reads the member of a lease. */
    readonly memberOf: (id: LeaseId) => MemberId;
  },
  isKept: boolean,
  now: InstantMs,
): BoundRow {
  const { mark, held, next, revoking, memberOf } = row;
  const waiters = reportedOf(bound.waiters, row.waiters);
  bound.waiters = waiters;
  const seq = (bound.seq += 1);
  const { awaited } = bound;
  const granted = [...bound.inFlight.flatMap((write) => write.awaited), ...awaited];
  const answering = new Set(granted);
  const { ids, unlisted } = row.heirs;
  const nextHolders = new Set(ids);
  const covers = {
    answering,
    heirs: nextHolders,
    unlisted,
    vacated: new Map<LeaseId, VacatedSlot>(),
  };
  const parts = new Map([...row.parts].map(([member, part]) => [member, { ...part, granted: 0 }]));
  const { mayOutlive } = bound;
  bound.inFlight.push({
    seq,
    at: now,
    mark,
    held,
    granted: 0,
    parts,
    awaited,
    mayOutlive,
    ...covers,
  });
  const ended = [...bound.ended, ...revoking];
  const { lapsed } = bound;
  if (!isKept) {
    bound.ended = [];
    bound.lapsed = [];
  }
  bound.awaited = [];
  const { since } = bound;
  // Those of the instance before are still on their way as long as anything is unclaimed, and there are no others then.
  const named = [...bound.heirsBefore, ...ids];
  const all = {
    seq,
    at: now,
    mark,
    held,
    since,
    next,
    ended,
    lapsed,
    granted,
    heirs: named,
    waiters,
    ...(waiters > 0 && { waitersUntil: bound.waitersUntil }),
  };
  if (row.parts.size === 0) return all;
  const grantedAt = Object.fromEntries(granted.map((id) => [id, memberOf(id)]));
  return { ...all, members: Object.fromEntries(row.parts), grantedAt };
}

/** Notes that a write has arrived, and all before it. */
export function confirm(bound: Bound, seq: number): void {
  const at = bound.inFlight.findIndex((write) => write.seq === seq);
  if (at < 0) return;
  bound.confirmed = bound.inFlight[at] ?? null;
  bound.inFlight = bound.inFlight.slice(at + 1);
}
