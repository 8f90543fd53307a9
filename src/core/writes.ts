import { IMPLICIT, type InstantMs, type LeaseId, type MemberId } from './words/ids.ts';
import {
  confirm,
  isRingDue,
  issue,
  marginOf,
  type Bound,
  type BoundRow,
  type MemberPart,
} from './parts/bound.ts';
import { takeClosed, type DayCosts } from './parts/costs.ts';
import { setAhead, type Amounts } from './parts/demand.ts';
import { queueLength } from './parts/queue.ts';
import { leftOf } from './parts/rates.ts';
import type { UpstreamCalls } from './parts/totals.ts';
import { memberSlotsLearned } from './capacity.ts';
import type { Controls, KeptMember, Ledger, Member } from './member.ts';
import { listNextHolders } from './next-holders.ts';
import { isOverdrawn, isSplit, NEVER, type GroupState } from './state.ts';
import { confirmedControls } from './reports.ts';
import { slotsHeld } from './stats.ts';

/**
 * Minimum time between two writes of tallies while the group is in use. They are large, and no limit depends on them.
 */
const TALLIES_EVERY_MS = 10_000;

export interface GroupWrite {
  readonly bound: BoundRow;
  readonly isInRing: boolean;
  /** null if the row of the controls does not change. */
  readonly kept: StoredControls | null;
  /**
   * Calls by upstream. They are written with the bound of a group that becomes idle, and with the controls. null if
   * they are not written now.
   */
  readonly upstreams: UpstreamCalls | null;
}

/** The controls, and the amounts that they count as used ahead. */
export interface StoredControls {
  readonly controls: Controls;
  readonly ahead: Amounts;
  /** Completed days of the costs, for rows of their own. */
  readonly closedDays: readonly DayCosts[];
  /** The same for each member. Absent if the group names none. */
  readonly members?: Readonly<Record<MemberId, KeptMember>>;
}

/** Collects everything that is to be written now. The caller must write it in the same turn. */
export function takeWrite(state: GroupState, now: InstantMs): GroupWrite {
  const { bound, settings, controls, ahead, nextAttachment, revoking, queue } = state;
  const held = slotsHeld(state);
  const marks = marksOf(state, now);
  const above = sum(marks, ({ mark, held: heldThere }) => mark - heldThere);
  // If the next grant needs a write in any case, or is not expected soon, every write of an empty group records that it
  // is empty.
  const isIdle = held === 0 && (bound.isEmptyNoted || bound.isSparse || above === 0);
  if (isIdle) Object.assign(bound, { since: nextAttachment, mayOutlive: false });
  const isKept = mustKeep(state, isIdle, now);
  const mark = isIdle ? 0 : held + above;
  // Empty marks for each member would record the same.
  const parts = isIdle || !isSplit(state) ? NO_PARTS : marks;
  // While waiters of an earlier instance are still returning, their number counts.
  const waiters = Math.max(queueLength(queue), now < state.grantsFrom ? bound.waiters : 0);
  const nextHolders = listNextHolders(state, now);
  const memberOfLease = (id: LeaseId): MemberId => state.leases.get(id)?.member ?? IMPLICIT;
  const row = { mark, held, next: nextAttachment, waiters, revoking, heirs: nextHolders, parts };
  // If both are written, the row of the controls carries the bound, so that one row is written instead of two.
  const isInRing = !isKept || isRingDue(bound);
  const outlive = bound.mayOutlive ? { mayOutlive: true as const } : {};
  const issued = {
    ...issue(bound, { ...row, memberOf: memberOfLease }, !isInRing, now),
    ...outlive,
  };
  const upstreams = isKept || isIdle ? state.upstreams : null;
  if (upstreams !== null) state.upstreamsDueAt = NEVER;
  if (!isKept) return { bound: issued, isInRing, kept: null, upstreams };
  state.isControlsDirty = false;
  state.talliesDirtyAt = null;
  const keep = (ledger: Ledger): KeptMember => {
    const room = leftOf(ledger.controls.rates, ledger.settings.rates, now);
    const kept = setAhead(ledger.ahead, ledger.settings, room, isIdle);
    return { controls: confirmedControls(state, ledger.controls, now), ahead: kept };
  };
  const own = { ...keep({ controls, settings, ahead }), closedDays: takeClosed(controls.costs) };
  const written = { bound: issued, isInRing, upstreams };
  if (!isSplit(state) && state.members.size === 1) return { ...written, kept: own };
  const members = [...state.members.values()].filter((member) => member.controls !== controls);
  const ofMembers = members.map((member) => {
    const { place } = member.settings;
    return [member.id, { ...keep(member), ...(place === null ? {} : { place }) }] as const;
  });
  return { ...written, kept: { ...own, members: Object.fromEntries(ofMembers) } };
}

/** Notes that the write `seq` and all earlier ones are on disk. */
export function confirmWrite({ bound }: { readonly bound: Bound }, seq: number): void {
  confirm(bound, seq);
}

function mustKeep(state: GroupState, isIdle: boolean, now: InstantMs): boolean {
  const { isControlsDirty, talliesDirtyAt, upstreamsDueAt } = state;
  if (isControlsDirty || isOverdrawn(state) || now >= upstreamsDueAt) return true;
  return talliesDirtyAt !== null && (isIdle || now - talliesDirtyAt >= TALLIES_EVERY_MS);
}

const NO_PARTS: ReadonlyMap<MemberId, Pick<MemberPart, 'mark' | 'held'>> = new Map();

function marksOf(
  state: GroupState,
  now: InstantMs,
): ReadonlyMap<MemberId, Pick<MemberPart, 'mark' | 'held'>> {
  const marks = [...state.members.values()].map((member) => {
    const held = member.slotsInUse + member.slotsNested;
    return [member.id, { mark: held + margin(state, member, held, now), held }] as const;
  });
  return new Map(marks);
}

function sum<Item>(items: ReadonlyMap<unknown, Item>, amountOf: (item: Item) => number): number {
  let total = 0;
  for (const item of items.values()) total += amountOf(item);
  return total;
}

function margin(state: GroupState, member: Member, held: number, now: InstantMs): number {
  // After a reset there is no margin. Otherwise each further reset would add one.
  if (state.unclaimed.slots > 0) return 0;
  const limit = state.settings.isDryRun ? Infinity : memberSlotsLearned(member);
  return marginOf(state.bound, held, limit, now);
}
