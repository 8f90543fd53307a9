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
 * The bound of what a group has granted, on disk. After a reset, everything up to the mark counts as granted, until its
 * holder returns or its time ends. So a grant below the mark writes nothing.
 */

/** A row of the bound. The row with the highest `seq` is in force. */
export interface BoundRow {
  readonly seq: number;
  /** When it was issued. */
  readonly at: InstantMs;
  /** Slots that may be held from now on. */
  readonly mark: number;
  /** Slots that were held when it was issued. */
  readonly held: number;
  /** Leases with a smaller attachment number have ended. */
  readonly since: number;
  /** The next attachment number. An instance issues fewer than `ATTACHMENTS_UNWRITTEN_MAX` after its last write. */
  readonly next: number;
  /** Leases whose slots were freed since the previous row, and leases that were revoked. */
  readonly ended: readonly LeaseId[];
  /**
   * Leases that expired since the previous row. Their holders may return, but their slots may have been granted again.
   */
  readonly lapsed: readonly LeaseId[];
  /**
   * Leases whose answers leave behind this write, or behind one in flight when it was issued. The answers may be lost
   * with the instance, so their callers may repeat the acquire call.
   */
  readonly granted: readonly LeaseId[];
  /** Leases of waiters that may receive released slots without a write. See `next-holders.ts`. */
  readonly heirs: readonly LeaseId[];
  /**
   * The number of waiters, rounded to a power of two: at least the number, and less than three times as large. 0 if
   * there were none.
   */
  readonly waiters: number;
  /** The latest deadline of these waiters. Absent if there were none. */
  readonly waitersUntil?: InstantMs;
  /** The mark and the held slots of each member. They add up to those above. Absent if the group names no members. */
  readonly members?: Readonly<Record<MemberId, Pick<MemberPart, 'mark' | 'held'>>>;
  /** Holders of some slots may outlive the process that wrote the row. Absent if none may. */
  readonly mayOutlive?: true;
  /** The members of the leases in `granted`. Absent if the group names no members. */
  readonly grantedAt?: Readonly<Record<LeaseId, MemberId>>;
}

export interface MemberPart {
  readonly mark: number;
  readonly held: number;
  /** As in the write. */
  granted: number;
}

/** The next waiters, as listed in a write. */
export interface NextHolders {
  readonly ids: readonly LeaseId[];
  /** Further waiters that would have been listed, but may not be next holders. */
  readonly unlisted: number;
}

/** A write in flight, or the last confirmed one. */
export interface BoundWrite {
  readonly seq: number;
  readonly at: InstantMs;
  readonly mark: number;
  readonly held: number;
  /** Slots granted since it was issued. Slots that were freed since do not give room back. */
  granted: number;
  /** The same for each member. Empty if the group names none. */
  readonly parts: Map<MemberId, MemberPart>;
  /** Leases whose answers leave behind it. */
  readonly awaited: readonly LeaseId[];
  /** All leases that its row lists as granted. Their callers may repeat the acquire call. */
  readonly answering: ReadonlySet<LeaseId>;
  /** Waiters that may receive a vacated slot. */
  readonly heirs: ReadonlySet<LeaseId>;
  readonly unlisted: number;
  /**
   * Leases that ended since it was issued, by the only release of their holders, and whose slots are not granted again
   * yet. Each has its member and the leases that had its slot before.
   */
  readonly vacated: Map<LeaseId, VacatedSlot>;
  /** As in its row. */
  readonly mayOutlive: boolean;
}

/** A free slot that may be granted again without a write, at its member. */
interface VacatedSlot {
  readonly member: MemberId;
  readonly heirOf: readonly LeaseId[];
}

/** A released slot that a next holder of an earlier instance may have. */
export interface ReleasedSlot {
  readonly freeAt: InstantMs;
  member: MemberId;
}

export interface Bound {
  /** If false, nothing of the group is stored, and no grant waits for a write. */
  isStored: boolean;
  seq: number;
  /** The last confirmed write. null if this instance has none. */
  confirmed: BoundWrite | null;
  /** Writes in flight, oldest first. */
  inFlight: BoundWrite[];
  /** Leases whose slots were freed since the last write. */
  ended: LeaseId[];
  /** Leases that expired since the last write. */
  lapsed: LeaseId[];
  /** The expired ones among the leases that may not be reclaimed. */
  readonly lapsedBefore: Set<LeaseId>;
  /** Leases whose answers wait for the next write. */
  awaited: LeaseId[];
  /**
   * Leases whose answers left behind the last write of the earlier instance and may have been lost with it, each with
   * its member.
   */
  readonly grantedBefore: Map<LeaseId, MemberId>;
  /** Next holders of the earlier instance that have not returned. It may have granted them slots without a write. */
  readonly heirsBefore: Set<LeaseId>;
  /**
   * Released slots that stay orphaned because a next holder may have one of them: when each may be free, and at which
   * member.
   */
  readonly passedBefore: ReleasedSlot[];
  /** The last confirmed write when a write with next holders was last requested. */
  heirsNotedAt: number;
  /** The number of waiters in the last write. */
  waiters: number;
  /** The latest deadline of all waiters since the queue was last empty. */
  waitersUntil: InstantMs;
  /** The last write issued when slots were freed whose holder was lost. */
  lostSeq: number;
  /** Leases whose slots were freed, in earlier instances or in this one. Kept while any slots are orphaned. */
  readonly unclaimable: Set<LeaseId>;
  since: number;
  /** The first attachment number of this instance. Leases with a smaller one come from an earlier instance. */
  first: number;
  /** Slots granted in the current second of the clock, and in the one before it. */
  pace: { second: number; granted: number; before: number };
  /** When the last slot was freed. null if any slot is held. */
  emptyAt: InstantMs | null;
  /** Whether a write for the empty group was requested. */
  isEmptyNoted: boolean;
  /** Whether the group was last empty for long, so that the next call probably comes late. */
  isSparse: boolean;
  /** Whether a lease was held by id since the group was last empty, so that its holder may outlive the process. */
  mayOutlive: boolean;
}

/** How long after its issue a write covers grants. A replaced instance cannot grant any longer than that. */
export const COVERS_MS = 2_000;

/** How long a write may take. Without confirmation, the instance ends. */
export const CONFIRM_MS = 5_000;

/** Maximum age of the last write when a renewal is answered. */
export const RENEWED_BEHIND_MS = 10_000;

/** Limits up to this have no margin, so every grant is written. Even a margin of one would be too large a part. */
const EXACT_SLOTS_MAX = 8;

/** Minimum margin if there is room for one. */
const MARGIN_MIN = 4;

/** Minimum margin as a share of the held slots, and the share of the limit by which a mark may exceed it. */
const MARGIN_SHARE = 1 / 8;

/** The next write is issued when this share of the margin is left. */
const AHEAD_SHARE = 1 / 4;

/** With at least so many grants since the last write, the next write is issued before that one is too old. */
const AGEING_MIN = 16;

/**
 * How long a busy group is empty before that is written. With 50 ms, a group that often becomes empty would write a row
 * per call.
 */
const EMPTY_BUSY_MS = 3_000;

/**
 * The same if the next call is probably far away. A longer timer would cost more, because an object is billed while it
 * waits.
 */
const EMPTY_SPARSE_MS = 50;

/** Maximum number of ended leases before a write is issued. A row holds at most 2 MB. */
const ENDED_MAX = 5_000;

/** The same if they are written with the controls, which repeat them in each row. */
const ENDED_KEPT_MAX = 500;

/** Maximum number of attachments that an instance issues after its last write. More than one second of them. */
export const ATTACHMENTS_UNWRITTEN_MAX = 1_000_000;

/** Minimum number of waiters that is worth a write of its own. Fewer make little difference after a reset. */
const WAITERS_REPORTED_MIN = 256;

/**
 * The stored number stays while at least this share of it still waits, so that a queue with changing length causes no
 * writes.
 */
const WAITERS_KEPT_SHARE = 3 / 8;

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
 * Whether everything granted is covered on disk. The slots held when the last confirmed write was issued, plus all
 * grants since, must be at most every mark that may be the last one stored.
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
 * Whether every row that may be the last on disk has `mayOutlive`. Before that, no holder may receive a lease by id,
 * because a later process would not know of it.
 */
export function isOutlivingReported(bound: Bound): boolean {
  return writesOf(bound).every(({ mayOutlive }) => mayOutlive);
}

/** Returns the lowest mark that may be on disk: of the last confirmed write, or of one in flight. */
export function markOnDisk(bound: Bound): number {
  return Math.min(...writesOf(bound).map(({ mark }) => mark));
}

/** Lists the writes that may be the last on disk, oldest first. */
export function writesOf({ confirmed, inFlight }: Bound): readonly BoundWrite[] {
  return confirmed === null ? inFlight : [confirmed, ...inFlight];
}

/** Counts granted slots, written or not. With `isPassed` the slot was handed over, so the writes already count it. */
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
  // A member added after the write: nothing of it is covered.
  else if (write.parts.size > 0) write.parts.set(member, { mark: 0, held: 0, granted: slots });
}

/**
 * Stores for the next write that the slots of a lease were freed, and that the lease may not be reclaimed. A claim
 * would take another lease's slots, and there may be more ended leases than tombstones.
 *
 * @param isOrphaned whether any slots are orphaned
 */
export function noteFreed(bound: Bound, id: LeaseId, isOrphaned: boolean): void {
  if (isOrphaned) bound.unclaimable.add(id);
  if (bound.isStored) bound.ended.push(id);
}

export function noteLapsed(bound: Bound, id: LeaseId): void {
  if (bound.isStored) bound.lapsed.push(id);
}

/**
 * Returns how long a holder may rely on a lease without another answer. An instance that starts after the last
 * confirmed write keeps all granted slots for one TTL from its start.
 */
export function countsUntil({ isStored, confirmed }: Bound, until: InstantMs): InstantMs {
  if (!isStored || confirmed === null) return until;
  return earlier(until, after(confirmed.at, LEASE_TTL_MS));
}

/**
 * Notes that slots were freed because their holder was lost, by a broken connection or the TTL. The holder may be alive
 * and hold the slots with a newer instance, so they are granted again only behind a write. That write fails if this
 * instance was replaced. Without it, this instance could stay below a mark that exceeds the limit, while more calls run
 * than the limit allows.
 */
export function noteLost(bound: Bound): void {
  bound.lostSeq = bound.seq;
}

/** Notes that the group's members changed. Rows on disk refer to the previous members and cover nothing any more. */
export function noteOtherMembers(bound: Bound): void {
  noteLost(bound);
  const noNextHolders = { heirs: new Set<LeaseId>(), vacated: new Map<LeaseId, VacatedSlot>() };
  if (bound.confirmed !== null) bound.confirmed = { ...bound.confirmed, ...noNextHolders };
  bound.inFlight = bound.inFlight.map((write) => ({ ...write, ...noNextHolders }));
}

/** Stores for the next write that the answer with a lease waits for it. */
export function noteAwaited(bound: Bound, id: LeaseId): void {
  if (bound.isStored) bound.awaited.push(id);
}

export function noteHeld(bound: Bound, held: number, now: InstantMs): void {
  if (held === 0) bound.emptyAt ??= now;
  if (held === 0 || bound.emptyAt === null) return;
  bound.isSparse = now - bound.emptyAt >= EMPTY_BUSY_MS;
  bound.emptyAt = null;
  bound.isEmptyNoted = false;
}

/** Returns the mark of the last write. 0 if there is none. */
export function markOf({ confirmed, inFlight }: Bound): number {
  return (inFlight.at(-1) ?? confirmed)?.mark ?? 0;
}

/** Returns when to write that no slot is held. Infinity if slots are held, or if that was requested already. */
export function emptyDueAt(bound: Bound): InstantMs {
  const { emptyAt, isSparse, isStored, isEmptyNoted } = bound;
  const isDue = isStored && emptyAt !== null && !isEmptyNoted && markOf(bound) > 0;
  if (!isDue) return instant(Infinity);
  return after(emptyAt, isSparse ? EMPTY_SPARSE_MS : EMPTY_BUSY_MS);
}

/**
 * Whether the number of waiters differs enough from the last write for a write of its own: it has grown beyond the
 * stored number, or all waiters have left.
 */
export function hasWaiterCountChanged(
  { isStored, waiters: reported }: Bound,
  waiters: number,
): boolean {
  if (!isStored) return false;
  if (waiters === 0) return reported >= WAITERS_REPORTED_MIN;
  return waiters > WAITERS_REPORTED_MIN && waiters > reported;
}

/** Returns the number to store for so many waiters. The last one stays unless it is far too high. */
function reportedOf(reported: number, waiters: number): number {
  if (waiters <= reported && waiters > reported * WAITERS_KEPT_SHARE) return reported;
  return waiters === 0 ? 0 : 2 ** Math.ceil(Math.log2(waiters));
}

/** Returns when a write is overdue. Infinity if none is in flight. */
export function lostAt({ inFlight }: Bound): InstantMs {
  const [oldest] = inFlight;
  return oldest === undefined ? instant(Infinity) : after(oldest.at, CONFIRM_MS);
}

/** Whether to issue a write now, so that the next grants need not wait for one. */
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
 * Returns by how much a mark exceeds the held slots. After a reset, that many slots are idle for one TTL. So it is
 * small if few slots are held, and exceeds the limit if none is free.
 *
 * @param limit slots of the group, or Infinity
 */
export function marginOf({ pace }: Bound, held: number, limit: number, now: InstantMs): number {
  if (limit <= EXACT_SLOTS_MAX) return 0;
  const isLately = Math.floor(now / 1_000) <= pace.second + 1;
  const perSecond = isLately ? Math.max(pace.granted, pace.before) : 0;
  const wanted = Math.max(MARGIN_MIN, Math.floor(held * MARGIN_SHARE), perSecond);
  const free = Math.max(0, limit - held);
  return Math.min(wanted, Math.floor(free / 2) + Math.floor(limit * MARGIN_SHARE));
}

/** Whether the leases that ended since the last row of the ring must be written to the ring now. */
export function isRingDue({ ended }: Bound): boolean {
  return ended.length > ENDED_KEPT_MAX;
}

/**
 * Issues a write. Its row must be written in the same turn.
 *
 * @param isKept it is part of the row of the controls, which the next such row overwrites. The next row of the ring
 * then repeats the ended leases
 */
export function issue(
  bound: Bound,
  row: Pick<BoundRow, 'mark' | 'held' | 'next' | 'waiters'> & {
    readonly revoking: Iterable<LeaseId>;
    readonly heirs: NextHolders;
    readonly parts: ReadonlyMap<MemberId, Pick<MemberPart, 'mark' | 'held'>>;
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
  // While slots are orphaned, next holders of the earlier instance are still returning, and this one lists none of its
  // own.
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

/** Notes that a write is on disk, with all earlier ones. */
export function confirm(bound: Bound, seq: number): void {
  const at = bound.inFlight.findIndex((write) => write.seq === seq);
  if (at < 0) return;
  bound.confirmed = bound.inFlight[at] ?? null;
  bound.inFlight = bound.inFlight.slice(at + 1);
}
