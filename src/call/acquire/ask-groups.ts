import type { RateRoom } from '../../core/parts/rates.ts';
import { KEY_PREFIX } from '../../routing/implied-groups.ts';
import {
  GROUPS_PER_CALL_MAX,
  onSaturatedAt,
  type Placement,
  type RoutedCall,
} from '../../routing/placement.ts';
import { steadyClock } from '../../runtime/async.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import {
  LEFT,
  rejected,
  longerWait,
  type CallerLeft,
  type Rejected,
  type Waited,
} from '../results/result.ts';
import type { CallTicket, Round } from './admission.ts';
import { HeldSlots, longestOf, nameOf, othersOf, type Full } from './held-slots.ts';
import { isUnverified, ownOrShared } from './pools.ts';

/**
 * A call of several groups waits where the expected wait is longest, and holds nothing elsewhere, because a stalled
 * group must not stop the others. Once it has its slot there, it asks the other groups in one round trip. If one of
 * them is full, the call keeps its slot for a short wait and releases it for a long one (see `HeldSlots`).
 */

export interface AcquireOptions extends Round {
  readonly isTry: boolean;
  readonly waitsElsewhere: boolean;
  /** Names of the other pools in which the call has no slot yet. Absent for a call of one group. */
  readonly needs?: readonly string[];
  /** The call had a slot there before, and released it while it waited for another group. */
  readonly hadTurn?: boolean;
}

/** A slot in one group, or the permission to run without one. */
export interface GroupSlot {
  readonly kind: 'admitted';
  readonly placement: Placement;
  /** Mean time between the ends of calls in the group, in milliseconds. null if holding the slot costs nothing. */
  readonly endGapMs: number | null;
  /** null if it was granted immediately. */
  readonly waited: Waited | null;
  /** Remaining rate limits of the group, with this call counted. */
  readonly rates: readonly RateRoom[];
}

/** The answer to a non-waiting attempt (`isTry`): not now. */
export interface DeclinedByGroup {
  readonly kind: 'declined';
  readonly placement: Placement;
  /** Expected wait in milliseconds. Infinity if it cannot be estimated. */
  readonly waitMs: number;
}

/** How one kind of call asks a single group, and what it does with its slots. `Other` is any other end of a wait. */
interface GroupAsker<Slot extends GroupSlot, Other> {
  readonly what: 'call' | 'lease';
  readonly call: Pick<AuthenticatedCall, 'env' | 'table' | 'after'>;
  ask(
    placement: Placement,
    manner: AcquireOptions,
    all: readonly Placement[],
  ): Promise<Slot | DeclinedByGroup | Rejected | Other>;
  /** Releases a slot that is not used now, because the pool `full` is full. null if there is no such pool. */
  giveBack(slot: Slot, full: Full | null): void;
  /** Renews a slot during the wait for another one. The first renewal is due after `firstMs`. */
  keep(slot: Slot, firstMs?: number): void;
  /** Reports that a slot that was held is used now. */
  confirm(slot: Slot): void;
}

export interface AllSlots<Slot> {
  readonly kind: 'all';
  /** In the order of its groups. */
  readonly slots: readonly Slot[];
  /** Its longest wait in one of them. null if it did not wait. */
  readonly waited: Waited | null;
}

/** The slots that a round of attempts brought, or the expected wait in the group where it is longest. */
type TriedGroups<Slot, Other> =
  | { readonly kind: 'all'; readonly slots: readonly Slot[] }
  | { readonly kind: 'full'; readonly longest: Pick<DeclinedByGroup, 'placement' | 'waitMs'> }
  | EndedByGroup<Slot, Other>;

interface EndedByGroup<Slot, Other> {
  readonly kind: 'ended';
  readonly end: Rejected | Other;
  readonly placement: Placement;
  /** Slots that it had in other groups. They are released. */
  readonly slots: readonly Slot[];
}

/**
 * How long a group counts as full after it declined an attempt. Calls queue there directly, without asking all their
 * groups.
 */
const FULL_FOR_MS = 1_000;
const FULL_MAX = 1_000;

/** Groups that declined an attempt of a caller, with the expected waits there, as far as this isolate knows. */
const fullGroups = new Map<string, { readonly at: number; readonly waitMs: number }>();

/** Acquires slots in every group of a call, or returns a definite reason why not. */
export async function askGroups<Slot extends GroupSlot, Other extends { readonly kind: string }>(
  routed: RoutedCall,
  ticket: CallTicket,
  placed: readonly Placement[],
  asker: GroupAsker<Slot, Other>,
): Promise<AllSlots<Slot> | Rejected | Other | CallerLeft> {
  const { env, table } = asker.call;
  // A partition of a group with too many may share a pool.
  const placements =
    table.snapshot.fullGroups.length === 0
      ? placed
      : await Promise.all(
          placed.map(async (one) => (isUnverified(env, one) ? one : ownOrShared(env, table, one))),
        );
  const [sole, ...others] = placements;
  if (sole === undefined || placements.length > GROUPS_PER_CALL_MAX) {
    return rejected(tooMany(asker.what, placements));
  }
  if (others.length > 0) return askSeveral(routed, ticket, placements, asker);
  const manner = { ...ticket.rounds.begin(), isTry: false, waitsElsewhere: false };
  const one = await asker.ask(sole, manner, placements);
  if (isSlot(one)) return { kind: 'all', slots: [one], waited: one.waited };
  return isDeclined(one) ? LEFT : one;
}

async function askSeveral<Slot extends GroupSlot, Other extends { readonly kind: string }>(
  routed: RoutedCall,
  ticket: CallTicket,
  placements: readonly Placement[],
  asker: GroupAsker<Slot, Other>,
): Promise<AllSlots<Slot> | Rejected | Other> {
  const held = new HeldSlots<Slot>(asker.call.after, (slot, full) => asker.giveBack(slot, full));
  let waited: Waited | null = null;
  for (let isFirst = true; ; isFirst = false) {
    const missing = placements.filter((placement) => !held.has(placement));
    // An equal request may have got the lease of a ticket that is held by its id, so that ticket is always tried.
    const mayQueue = isFirst && ticket.maxWaitMs !== 0 && ticket.byId !== true;
    const known = mayQueue ? missing.flatMap((one) => knownWait(routed, one)) : [];
    const tried: TriedGroups<Slot, Other> =
      known.length === 0
        ? await tryAll(routed, ticket, { missing, placements }, held, isFirst, asker)
        : { kind: 'full', longest: longestOf(known) };
    if (tried.kind === 'all') {
      for (const slot of held.all) asker.confirm(slot);
      return { kind: 'all', slots: inOrder([...held.all, ...tried.slots], placements), waited };
    }
    if (tried.kind === 'ended') {
      return withRates({ ...tried, slots: [...held.end(), ...tried.slots] });
    }
    const { placement, waitMs } = tried.longest;
    held.limit(placement, waitMs);
    // A revocation must reach the call before it releases the slot, which may be after a second.
    for (const slot of held.all) asker.keep(slot, 0);
    const manner = {
      ...ticket.rounds.begin(),
      isTry: false,
      waitsElsewhere: true,
      needs: othersOf(missing, placement),
      hadTurn: held.hadTurn(placement),
    };
    const one = await asker.ask(placement, manner, placements);
    if (isSlot(one)) {
      waited = longerWait(waited, one.waited);
      asker.keep(one);
      held.add(one);
    } else if (!isDeclined(one)) {
      return withRates({ kind: 'ended', end: one, placement, slots: held.end() });
    }
  }
}

/** Asks the missing groups concurrently, without waiting in any of them. */
async function tryAll<Slot extends GroupSlot, Other extends { readonly kind: string }>(
  routed: RoutedCall,
  ticket: CallTicket,
  { missing, placements }: Readonly<Record<'missing' | 'placements', readonly Placement[]>>,
  held: HeldSlots<Slot>,
  isFirst: boolean,
  asker: GroupAsker<Slot, Other>,
): Promise<TriedGroups<Slot, Other>> {
  const round = ticket.rounds.begin();
  const attempts: (Slot | DeclinedByGroup | Rejected | Other)[] = [];
  await Promise.all(
    missing.map(async (placement, index) => {
      // If the call may not wait, it asks without `isTry` to get the rejection.
      const isTry = ticket.maxWaitMs !== 0 && onSaturatedAt(placement) !== 'reject';
      const manner = {
        ...round,
        isTry,
        // A lease that is held by its id may be returned here and asked for again, so its group must know that.
        waitsElsewhere: ticket.byId === true,
        needs: othersOf(missing, placement),
        hadTurn: held.hadTurn(placement),
      };
      attempts[index] = await asker.ask(placement, manner, placements);
    }),
  );
  const slots = attempts.filter((one) => isSlot(one));
  if (slots.length === missing.length) return { kind: 'all', slots };
  for (const one of slots) asker.giveBack(one, null);
  const declined: DeclinedByGroup[] = [];
  for (const [index, one] of attempts.entries()) {
    const placement = missing[index];
    if (isDeclined(one)) declined.push(one);
    else if (!isSlot(one) && placement !== undefined) {
      return { kind: 'ended', end: one, placement, slots };
    }
  }
  // In a later round the call is older than those to come, and waits less.
  if (isFirst) for (const one of declined) noteFull(routed, one);
  return { kind: 'full', longest: longestOf(declined) };
}

function isSlot<Slot extends GroupSlot, Other extends { readonly kind: string }>(
  one: Slot | DeclinedByGroup | Rejected | Other,
): one is Slot {
  return one.kind === 'admitted';
}

function isDeclined(one: { readonly kind: string }): one is DeclinedByGroup {
  return one.kind === 'declined';
}

function inOrder<Slot extends GroupSlot>(
  slots: readonly Slot[],
  placements: readonly Placement[],
): readonly Slot[] {
  return slots.toSorted(
    (a, b) => placements.indexOf(a.placement) - placements.indexOf(b.placement),
  );
}

/** The limits to report to a caller. Those of its key precede shared ones. */
export function ratesToReport(
  all: readonly Pick<GroupSlot, 'placement' | 'rates'>[],
): readonly RateRoom[] {
  const limited = all.filter(({ rates }) => rates.length > 0);
  const own = limited.find(({ placement: { group } }) => group.startsWith(KEY_PREFIX));
  return (own ?? limited[0])?.rates ?? [];
}

/** Reports the same limits for a rejected call as for a served one. */
function withRates<Slot extends GroupSlot, Other extends { readonly kind: string }>({
  end,
  placement,
  slots,
}: EndedByGroup<Slot, Other>): Rejected | Other {
  if (!isRejected(end)) return end;
  return { ...end, rates: ratesToReport([...slots, { placement, rates: end.rates ?? [] }]) };
}

function isRejected(end: { readonly kind: string }): end is Rejected {
  return end.kind === 'rejected';
}

/** The wait in a group that declined an attempt of the same caller a moment ago. Empty if it did not. */
function knownWait(
  call: RoutedCall,
  placement: Placement,
): readonly Pick<DeclinedByGroup, 'placement' | 'waitMs'>[] {
  const name = waitName(call, placement);
  const known = fullGroups.get(name);
  if (known === undefined) return [];
  if (steadyClock.now() - known.at < FULL_FOR_MS) return [{ placement, waitMs: known.waitMs }];
  fullGroups.delete(name);
  return [];
}

function noteFull(call: RoutedCall, { placement, waitMs }: DeclinedByGroup): void {
  if (fullGroups.size >= FULL_MAX) fullGroups.clear();
  fullGroups.set(waitName(call, placement), { at: steadyClock.now(), waitMs });
}

/** The wait of a caller in a group. Other callers have a different scheduling order there. */
function waitName({ caller }: RoutedCall, placement: Placement): string {
  return `${nameOf(placement)}\n${caller}`;
}

function tooMany(what: 'call' | 'lease', placements: readonly Placement[]): Rejected['reply'] {
  const names = placements.map(({ group }) => `\`${group}\``).join(', ');
  const message = `This ${what} matches ${placements.length} groups (${names}). The maximum is ${GROUPS_PER_CALL_MAX}.`;
  return { reason: 'too_many_groups', message };
}
