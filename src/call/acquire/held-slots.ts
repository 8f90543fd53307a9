import { poolName } from '../../contract/pool-name.ts';
import type { LeaseRpc } from '../../contract/rpc/group-rpc.ts';
import type { Placement } from '../../routing/placement.ts';
import type { Schedule } from '../../runtime/async.ts';

/** Shortest time in milliseconds for which a slot may be held while its call waits in another group. */
const HOLD_MS_MIN = 1_000;

/** After this many released slots, no group of a call counts as stalled. */
const RETURNS_OF_STALLED = 2;

/**
 * One of two calls that wait for each other holds its slot this many times as long. The order of the group names
 * decides which one. Otherwise both could release their slots at the same time, swap them, and wait for each other
 * again. The first hold of a call is never longer, because most waits end within it.
 */
const TIE_FACTOR = 2;

interface PlacedSlot {
  readonly placement: Placement;
  /** Mean time between the ends of calls in the group, in milliseconds. null if holding the slot costs nothing. */
  readonly endGapMs: number | null;
}

/**
 * A full pool, and for about how long it will be full, in milliseconds. 0 if that is unknown and may apply to this call
 * alone.
 */
export interface Full {
  readonly pool: string;
  readonly forMs: number;
}

/** Shortest time that a pool counts as full, in milliseconds. */
const FULL_MS_MIN = 100;

interface HeldSlotEntry<Slot> {
  readonly slot: Slot;
  callOff: () => void;
}

/**
 * The slots that a call of several groups holds while it waits in another one. Each is held for the mean time in which
 * its group frees a slot, but at least a second. After the call has released one slot, it holds the next twice as long,
 * then three times. Then it also holds a slot twice that long if the name of the slot's group sorts first. Waits of
 * unknown length have their own rule. So a stalled group costs the others almost nothing, calls that need two full
 * groups get both, and no two calls block each other for longer than that. A released slot costs nothing, and its call
 * goes first when it asks again.
 */
export class HeldSlots<Slot extends PlacedSlot> {
  readonly #after: Schedule;
  readonly #giveBack: (slot: Slot, fullElsewhere: Full | null) => void;
  readonly #held = new Map<Placement, HeldSlotEntry<Slot>>();
  readonly #gaveBack = new Set<Placement>();
  #returns = 0;

  constructor(after: Schedule, giveBack: (slot: Slot, fullElsewhere: Full | null) => void) {
    this.#after = after;
    this.#giveBack = giveBack;
  }

  get all(): readonly Slot[] {
    return [...this.#held.values()].map(({ slot }) => slot);
  }

  has(placement: Placement): boolean {
    return this.#held.has(placement);
  }

  /** Whether the call already had a slot in a group and could not use it. */
  hadTurn(placement: Placement): boolean {
    return this.#gaveBack.has(placement);
  }

  add(slot: Slot): void {
    for (const one of this.#held.values()) one.callOff();
    this.#held.set(slot.placement, { slot, callOff: () => {} });
  }

  /**
   * Call it before a wait of about that length in another pool. Releases slots that may not be held for it, immediately
   * or when their time ends.
   */
  limit(placement: Placement, waitMs: number): void {
    const pool = nameOf(placement);
    // Slots that this wait releases count for the next wait. Otherwise the order of the slots would matter.
    const returns = this.#returns;
    for (const one of this.#held.values()) {
      const { placement: of, endGapMs } = one.slot;
      if (endGapMs === null) continue;
      const usualMs = Math.max(HOLD_MS_MIN, endGapMs);
      const onceMs = waitMs === Infinity ? unknownMs(usualMs, returns) : usualMs;
      const tieFactor = returns > 0 && nameOf(of) < pool ? TIE_FACTOR : 1;
      const holdMsMax = onceMs * (1 + returns) * tieFactor;
      const full = { pool, forMs: fullMs(waitMs, holdMsMax) };
      one.callOff();
      if (isTooLong(waitMs, holdMsMax, returns)) this.#end(one, full);
      else one.callOff = this.#after(holdMsMax, () => this.#end(one, full));
    }
  }

  /** Releases all slots and returns them. */
  end(): readonly Slot[] {
    const { all } = this;
    for (const one of this.#held.values()) this.#end(one, null);
    return all;
  }

  #end(one: HeldSlotEntry<Slot>, full: Full | null): void {
    one.callOff();
    const { placement } = one.slot;
    this.#held.delete(placement);
    if (full !== null) {
      this.#gaveBack.add(placement);
      this.#returns += 1;
    }
    this.#giveBack(one.slot, full);
  }
}

/**
 * Whether a wait is too long to hold a slot for it. A call that has released slots twice has had one in several groups,
 * so none of them is stalled. It then holds its slots even for an unknown wait, because two such calls would otherwise
 * swap their slots forever.
 */
function isTooLong(waitMs: number, holdMsMax: number, returns: number): boolean {
  return waitMs === Infinity ? returns < RETURNS_OF_STALLED : waitMs > holdMsMax;
}

/**
 * The hold for a wait of unknown length. Two calls may each hold the slot that the other one waits for, in groups that
 * have learned nothing yet, so the first such hold is short. Later holds are not short, because calls of minutes under
 * a cap of their own would release every slot.
 */
function unknownMs(usualMs: number, returns: number): number {
  return returns > RETURNS_OF_STALLED ? usualMs : HOLD_MS_MIN;
}

/**
 * How long other calls are passed over. A wait without an estimate may be due to the call's own cap, which stops no
 * others.
 */
function fullMs(waitMs: number, heldMs: number): number {
  return waitMs === Infinity ? 0 : Math.max(FULL_MS_MIN, waitMs - heldMs);
}

/**
 * Returns a slot that its call cannot use now, because the pool `full` is full. null if there is no such pool. `lease`
 * is null for a slot that no answer holds.
 */
export async function returnSlot(
  lease: Pick<LeaseRpc, 'passOver'> | null,
  full: Full | null,
  release: () => Promise<void>,
): Promise<void> {
  // The two messages arrive in this order. The first may be lost.
  const reported = full !== null && full.forMs > 0 ? lease?.passOver(full.pool, full.forMs) : null;
  await Promise.all([Promise.resolve(reported).catch(() => {}), release()]);
}

/** @throws if `waits` is empty */
export function longestOf<Each extends { readonly waitMs: number }>(waits: readonly Each[]): Each {
  return waits.reduce((longest, one) => (one.waitMs > longest.waitMs ? one : longest));
}

export function othersOf(missing: readonly Placement[], placement: Placement): string[] {
  return missing.filter((one) => one !== placement).map(nameOf);
}

export function nameOf({ group, partition }: Placement): string {
  return poolName(group, partition);
}
