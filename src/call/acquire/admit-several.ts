import { onSaturatedAt, type Placement, type RoutedCall } from '../../routing/placement.ts';
import { PlainAbort } from '../../runtime/plain-abort.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { rejected, type CallerLeft, type Moved, type Rejected } from '../result.ts';
import type { CallTicket } from './admission.ts';
import { admitOne, endSlot, type AdmitContext, type AdmittedSlot } from './admit-one.ts';
import { longerWait, type Waited } from './waited.ts';
import { HeldSlots, longestOf, nameOf, othersOf, type Full } from './held-slots.ts';

/**
 * A call of several groups waits where the expected wait is longest, and holds nothing elsewhere, because a stalled
 * group must not stop the others. Once it has its slot there, it asks the other groups in one round trip. If one of
 * them is full, the call keeps its slot for a short wait and releases it for a long one (see `HeldSlots`).
 */

export type AdmittedToSeveral =
  /** Its slots, in the order of its groups. */
  | {
      readonly kind: 'admitted';
      readonly slots: readonly AdmittedSlot[];
      /** Its longest wait in one of them. null if it did not wait. */
      readonly waited: Waited | null;
    }
  | {
      readonly kind: 'ended';
      readonly end: Rejected | Moved | CallerLeft;
      readonly placement: Placement;
      /** Slots that it had in other groups. They are released. */
      readonly slots: readonly AdmittedSlot[];
    };

/** A slot that is held during the wait for another one. */
interface WaitingSlot {
  readonly slot: AdmittedSlot;
  readonly placement: Placement;
  readonly endGapMs: number | null;
}

interface GroupWait {
  readonly placement: Placement;
  /** Expected wait in milliseconds. Infinity if it cannot be estimated. */
  readonly waitMs: number;
}

type TriedGroups =
  | { readonly kind: 'all'; readonly slots: readonly AdmittedSlot[] }
  | Extract<AdmittedToSeveral, { kind: 'ended' }>
  /** Some groups are full. Slots that the others granted are released. */
  | { readonly kind: 'full'; readonly longest: GroupWait };

/**
 * How long a group counts as full after it declined an attempt. Calls queue there directly, without asking all their
 * groups.
 */
const FULL_FOR_MS = 1_000;
const FULL_MAX = 1_000;

/** Groups that declined an attempt of a caller, with the expected waits there, as far as this isolate knows. */
const fullGroups = new Map<string, { readonly at: number; readonly waitMs: number }>();

export async function admitToSeveral(
  call: RoutedCall,
  ticket: CallTicket,
  placements: readonly Placement[],
  outer: AdmitContext,
): Promise<AdmittedToSeveral> {
  const signal = new PlainAbort(outer.signal);
  const context = { ...outer, signal, isOfSeveral: true };
  const held = new HeldSlots<WaitingSlot>(context.after, ({ slot }, full) =>
    giveBack(slot, full, context),
  );
  const keep = ({ by }: AdmittedSlot, firstRenewalMs?: number): void => {
    if (by.kind === 'leased') by.lease.keep(() => signal.abort(), firstRenewalMs);
  };
  const ended = (
    end: Rejected | Moved | CallerLeft,
    placement: Placement,
    slots: readonly AdmittedSlot[],
  ): AdmittedToSeveral => ({
    kind: 'ended',
    end: end.kind === 'left' && !outer.signal.aborted ? revokedWhileQueued() : end,
    placement,
    slots: [...held.end().map(({ slot }) => slot), ...slots],
  });
  let waited: Waited | null = null;
  for (let isFirst = true; ; isFirst = false) {
    const missing = placements.filter((placement) => !held.has(placement));
    const known =
      isFirst && ticket.maxWaitMs !== 0 ? missing.flatMap((one) => knownWait(call, one)) : [];
    const tried: TriedGroups =
      known.length === 0
        ? await tryAll(call, ticket, missing, held, isFirst, context)
        : { kind: 'full', longest: longestOf(known) };
    if (tried.kind === 'all') {
      const slots = held.all.map(({ slot }) => slot);
      for (const { by } of slots) {
        if (by.kind === 'leased') context.ctx.waitUntil(by.lease.confirm());
      }
      return { kind: 'admitted', slots: inOrder([...slots, ...tried.slots], placements), waited };
    }
    if (tried.kind === 'ended') return ended(tried.end, tried.placement, tried.slots);
    const { placement, waitMs } = tried.longest;
    held.limit(placement, waitMs);
    // A revocation must reach the call before it releases the slot, which may be after a second.
    for (const { slot } of held.all) keep(slot, 0);
    const manner = {
      ...ticket.rounds.begin(),
      isTry: false,
      waitsElsewhere: true,
      needs: othersOf(missing, placement),
      hadTurn: held.hadTurn(placement),
    };
    const one = await admitOne(call, ticket, placement, manner, context);
    if (one.kind === 'admitted') {
      const { by } = one;
      waited = longerWait(waited, waitOf(one));
      keep(one);
      held.add({
        slot: one,
        placement,
        endGapMs: by.kind === 'leased' ? (by.endGapMs ?? 0) : null,
      });
    } else if (one.kind !== 'declined') return ended(one, placement, []);
  }
}

/** Asks several groups concurrently, without waiting in any of them. */
async function tryAll(
  call: RoutedCall,
  ticket: CallTicket,
  placements: readonly Placement[],
  held: HeldSlots<WaitingSlot>,
  isFirst: boolean,
  context: AdmitContext,
): Promise<TriedGroups> {
  const round = ticket.rounds.begin();
  const attempts = await Promise.all(
    placements.map((placement) => {
      // If the call may not wait, it asks without `isTry` to get the rejection.
      const isTry = ticket.maxWaitMs !== 0 && onSaturatedAt(placement) !== 'reject';
      const manner = {
        ...round,
        isTry,
        waitsElsewhere: false,
        needs: othersOf(placements, placement),
        hadTurn: held.hadTurn(placement),
      };
      return admitOne(call, ticket, placement, manner, context);
    }),
  );
  const slots = attempts.filter((one) => one.kind === 'admitted');
  if (slots.length === placements.length) return { kind: 'all', slots };
  for (const one of slots) giveBack(one, null, context);
  const declined: GroupWait[] = [];
  for (const [index, one] of attempts.entries()) {
    const placement = placements[index];
    if (one.kind === 'declined') declined.push(one);
    else if (one.kind !== 'admitted' && placement !== undefined) {
      return { kind: 'ended', end: one, placement, slots };
    }
  }
  // In a later round the call is older than those to come, and waits less.
  if (isFirst) for (const one of declined) noteFull(call, one);
  return { kind: 'full', longest: longestOf(declined) };
}

/** The call was not sent. A slot that was only held for a while costs nothing. */
function giveBack(slot: AdmittedSlot, full: Full | null, { ctx }: AdmitContext): void {
  const { by } = slot;
  const isYielding = full !== null && by.kind === 'leased';
  ctx.waitUntil(isYielding ? by.lease.yieldSlot(full.pool, full.forMs) : endSlot(slot, 'unused'));
}

/** The wait for a slot. null if there was none. */
export function waitOf({ by }: AdmittedSlot): Waited | null {
  return by.kind === 'leased' ? (by.waited ?? null) : null;
}

function inOrder(slots: readonly AdmittedSlot[], placements: readonly Placement[]): AdmittedSlot[] {
  return slots.toSorted(
    (a, b) => placements.indexOf(a.placement) - placements.indexOf(b.placement),
  );
}

/** The wait in a group that declined an attempt of the same caller a moment ago. Empty if it did not. */
function knownWait(call: RoutedCall, placement: Placement): readonly GroupWait[] {
  const name = waitName(call, placement);
  const known = fullGroups.get(name);
  if (known === undefined) return [];
  if (steadyClock.now() - known.at < FULL_FOR_MS) return [{ placement, waitMs: known.waitMs }];
  fullGroups.delete(name);
  return [];
}

function noteFull(call: RoutedCall, { placement, waitMs }: GroupWait): void {
  if (fullGroups.size >= FULL_MAX) fullGroups.clear();
  fullGroups.set(waitName(call, placement), { at: steadyClock.now(), waitMs });
}

/** The wait of a caller in a group. Other callers have a different scheduling order there. */
function waitName({ caller }: RoutedCall, placement: Placement): string {
  return `${nameOf(placement)}\n${caller}`;
}

function revokedWhileQueued(): Rejected {
  const message =
    'The operator revoked a slot that this call held while it was queued. Retry the call.';
  return rejected({ reason: 'limiter_unavailable', message });
}
