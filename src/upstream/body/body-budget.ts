import { BodyLine } from './body-line.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;

/** How many bytes of bodies one isolate holds. */
export interface BodyLimits {
  /** In all: below it nobody waits and nobody is refused. */
  readonly freeBytes: number;
  /**
   * Of calls that wait for a slot: beyond what is free, room for heads, and for groups of which little waits. No
   * group can fill it, so that one that is saturated leaves something to the others.
   */
  readonly restingBytes: number;
  /** Of one group, beyond what is free. */
  readonly groupBytes: number;
  /** In all but for those that pass: what is left beside the waiting ones is for large bodies on their way. */
  readonly allBytes: number;
  /** Of small bodies that are read or sent while nothing is free. Nobody may wait for a slot with them. */
  readonly passingBytes: number;
  /** Maximum size of a small body. */
  readonly smallBytes: number;
  /** Maximum size of a head: what everybody may read of a body at any time. */
  readonly headBytes: number;
}

/** Minimum of all bodies: an isolate of Cloudflare's has this, of the 128 MB that it has for everything. */
export const BODY_MIB_MIN = 48;

/** Scales the limits by what all bodies may hold. */
export function bodyLimits(mib: number): BodyLimits {
  const bytes = (outOf48: number): number => Math.floor((mib * MIB * outOf48) / 48);
  return {
    freeBytes: bytes(24),
    restingBytes: bytes(28),
    groupBytes: bytes(1),
    allBytes: bytes(48),
    passingBytes: bytes(8),
    smallBytes: 256 * KIB,
    headBytes: 4 * KIB,
  };
}

/**
 * The limits of an isolate of Cloudflare's. Measured: a call that waits takes 10 KiB beside its body, and an isolate
 * 7 MiB without any.
 */
export const BODY_LIMITS = bodyLimits(BODY_MIB_MIN);

/** The most that is read of one body in search of its model. Less than every budget, so that it fits. */
export const SCAN_BYTES_MAX = 32 * MIB;

/** How long a small body waits to be read: its kind takes turns quickly, or something is wrong. */
const SMALL_PATIENCE_MS = 30_000;
/** How long a large one does: what is unread costs nobody anything, and to send it again costs its caller a lot. */
const LARGE_PATIENCE_MS = 240_000;
/** How long one waits for more that is in the room of small ones, and turns out to be none. */
const SMALL_GROWING_MS = 2_000;

/**
 * Purpose for which a body is held. `moves`: it is read or sent; `passes`: the same, of a small one while nothing is free;
 * `rests`: its call waits for a slot, or may do so whenever it likes; `spare`: it was sent, and is held for another try
 * alone.
 */
type Use = 'moves' | 'passes' | 'rests' | 'spare';

/** The bytes of a reservation, apart from it, so that its loss can be noticed. */
interface ReservedBytes {
  bytes: number;
  use: Use;
  /** The pool for which it rests; null: none, or it is too small to be counted by pool. */
  pool: string | null;
}

/** A part of the budget, held for one body. */
export class Reservation {
  readonly #budget: BodyBudget;
  readonly #held: ReservedBytes;
  #onTaken: () => void = ignore;

  constructor(budget: BodyBudget, held: ReservedBytes) {
    this.#budget = budget;
    this.#held = held;
  }

  get bytes(): number {
    return this.#held.bytes;
  }

  /** Whether others want its room: nothing is free, and it is more than a head. */
  get isScarce(): boolean {
    return this.#budget.isScarce(this.bytes);
  }

  /** Gives back all but `bytes`. Never takes more. */
  keep(bytes: number): void {
    const { use, pool } = this.#held;
    if (bytes < this.bytes) this.#budget.change(this.#held, { bytes, use, pool });
  }

  /** Gives back everything. The second time changes nothing. */
  release(): void {
    this.#budget.change(this.#held, { bytes: 0, use: 'moves', pool: null });
  }

  /** Takes more for a body of which nobody knows how long it is, in order of arrival. */
  grow(maxWaitMs: number, signal: AbortSource): Promise<'taken' | 'left' | 'crowded'> {
    return this.#budget.grow(this.#held, maxWaitMs, signal);
  }

  /** Lets its call wait for a slot of a pool. False: there is no room for that. */
  rest(pool: string): boolean {
    return this.#budget.rest(this.#held, pool);
  }

  /** Its call waits no longer. */
  move(): void {
    if (this.#held.use !== 'rests') return;
    this.#budget.change(this.#held, { bytes: this.bytes, use: 'moves', pool: null });
  }

  /** Lets others have its room from now on, who say so by `onTaken`; at once where nothing is free. */
  spare(onTaken: () => void): void {
    this.#onTaken = onTaken;
    this.#budget.spare(this, this.#held);
  }

  /** Wants it for itself again. */
  unspare(): void {
    if (this.#held.use !== 'spare') return;
    this.#budget.change(this.#held, { bytes: this.bytes, use: 'moves', pool: null });
  }

  /** Gives it to others. */
  taken(): void {
    this.#onTaken();
    this.release();
  }
}

/**
 * Memory that all request bodies of an isolate may hold together, shared by its requests. A reservation that was
 * lost with a request that died is given back when it is collected.
 */
export class BodyBudget {
  readonly #limits: BodyLimits;
  /** Bytes of every use but `passes`. */
  #main = 0;
  #passing = 0;
  #resting = 0;
  #sparing = 0;
  readonly #restingBy = new Map<string, number>();
  /** Weak, so that one that was lost is collected. The first one was spared first. */
  readonly #spare = new Map<ReservedBytes, WeakRef<Reservation>>();
  /** The one of unknown length that goes before the others; null: none has to. */
  #leader: ReservedBytes | null = null;
  readonly #small = new BodyLine();
  readonly #large = new BodyLine();
  readonly #lost = new FinalizationRegistry<ReservedBytes>((held) => {
    this.change(held, { bytes: 0, use: 'moves', pool: null });
  });

  constructor(limits: BodyLimits = BODY_LIMITS) {
    this.#limits = limits;
  }

  get bytesHeld(): number {
    return this.#main + this.#passing;
  }

  get headBytes(): number {
    return this.#limits.headBytes;
  }

  /** Whether a large body waits for room. */
  get isLargeWaiting(): boolean {
    return !this.#large.isEmpty;
  }

  isSmall(bytes: number): boolean {
    return bytes <= this.#limits.smallBytes;
  }

  isScarce(bytes: number): boolean {
    return bytes > this.#limits.headBytes && this.bytesHeld > this.#limits.freeBytes;
  }

  /** Counts bytes that are there whatever anybody says. */
  count(bytes: number, use: Use = 'moves'): Reservation {
    const held: ReservedBytes = { bytes, use, pool: null };
    const reservation = new Reservation(this, held);
    this.#add(held, bytes);
    this.#lost.register(reservation, held);
    return reservation;
  }

  /** Takes at once, or null: not so many bytes are free. A head always is. */
  tryTake(bytes: number): Reservation | null {
    const { freeBytes, headBytes } = this.#limits;
    if (bytes <= headBytes) return this.count(bytes);
    // What is free now is so until the call is served: others may not take its place while it is read.
    return this.bytesHeld + bytes <= freeBytes ? this.count(bytes, 'rests') : null;
  }

  /** Takes in order of arrival, small ones and large ones by themselves, as soon as there is room. */
  async take(
    bytes: number,
    maxWaitMs: number,
    signal: AbortSource,
  ): Promise<Reservation | 'left' | 'crowded'> {
    const { allBytes } = this.#limits;
    if (bytes > allBytes) throw new RangeError(`${bytes} bytes never fit into ${allBytes}`);
    const isSmall = this.isSmall(bytes);
    const patienceMs = Math.min(maxWaitMs, isSmall ? SMALL_PATIENCE_MS : LARGE_PATIENCE_MS);
    const line = isSmall ? this.#small : this.#large;
    const now = (besides: number): Reservation | null =>
      this.tryTake(bytes) ?? (isSmall ? this.#pass(bytes, besides) : this.#move(bytes, besides));
    return line.wait(bytes, now, patienceMs, signal);
  }

  /**
   * Takes as much again for a body of unknown length, as long as that leaves most of the room to one of them. Without
   * that the first in line becomes the one, and takes it: if all went on at once, each would end up waiting for what
   * the others hold.
   */
  async grow(
    held: ReservedBytes,
    maxWaitMs: number,
    signal: AbortSource,
  ): Promise<'taken' | 'left' | 'crowded'> {
    const isSmall = held.use === 'passes';
    // Small ones stand in its way meanwhile.
    const patienceMs = Math.min(maxWaitMs, isSmall ? SMALL_GROWING_MS : LARGE_PATIENCE_MS);
    const now = (besides: number): 'taken' | null => this.#grow(held, besides);
    if (held === this.#leader && now(0) !== null) return 'taken';
    return this.#large.wait(Math.max(held.bytes, this.#longestBytes), now, patienceMs, signal);
  }

  /** Gives a reservation other bytes or another use. */
  change(held: ReservedBytes, to: ReservedBytes): void {
    this.#add(held, -held.bytes);
    if (held === this.#leader) this.#leader = null;
    if (held.use === 'spare') this.#spare.delete(held);
    held.bytes = to.bytes;
    held.use = to.use;
    held.pool = to.pool;
    this.#add(held, held.bytes);
  }

  /** Lets bytes rest for a pool, if there is room for that. */
  rest(held: ReservedBytes, pool: string): boolean {
    const { bytes, use } = held;
    if (use === 'rests' && held.pool !== null) return true;
    const { freeBytes, restingBytes, groupBytes, headBytes, allBytes } = this.#limits;
    const isHead = bytes <= headBytes;
    const ofPool = isHead ? null : pool;
    if (use === 'rests') {
      if (ofPool !== null) this.change(held, { bytes, use, pool: ofPool });
      return true;
    }
    const resting = this.#resting + bytes;
    const isLittle = isHead || (this.#restingBy.get(pool) ?? 0) + bytes <= groupBytes;
    if (resting > freeBytes && (resting > restingBytes || !isLittle)) return false;
    if (use === 'passes' && this.#main + bytes > allBytes && !this.#makeRoom(bytes)) return false;
    this.change(held, { bytes, use: 'rests', pool: ofPool });
    return true;
  }

  /** Lets others have the room of a reservation. */
  spare(reservation: Reservation, held: ReservedBytes): void {
    if (held.bytes <= this.#limits.headBytes) return;
    if (this.isScarce(held.bytes)) return reservation.taken();
    this.change(held, { bytes: held.bytes, use: 'spare', pool: null });
    this.#spare.set(held, new WeakRef(reservation));
  }

  #pass(bytes: number, besides: number): Reservation | null {
    const passing = this.#passing + bytes + besides;
    return passing <= this.#limits.passingBytes ? this.count(bytes, 'passes') : null;
  }

  #move(bytes: number, besides: number): Reservation | null {
    // Nothing is kept free for one that has no room beside those that wait for their slots, which may take minutes.
    const claimed = this.#resting + besides <= this.#limits.allBytes ? besides : 0;
    return this.#makeRoom(bytes + claimed) ? this.count(bytes) : null;
  }

  #grow(held: ReservedBytes, besides: number): 'taken' | null {
    const { allBytes, smallBytes } = this.#limits;
    const { bytes, use } = held;
    const left = SCAN_BYTES_MAX - bytes;
    // What it has in the room of small ones it takes along.
    const before = use === 'passes' ? bytes : 0;
    let more = Math.min(bytes, left);
    let leader = this.#leader;
    if (!this.#makeRoom(before + more + Math.max(besides, this.#longestBytes))) {
      if (held !== leader && (leader !== null || besides > 0)) return null;
      const least = Math.min(more, smallBytes);
      const most = Math.max(least, Math.min(left, this.#longestBytes));
      if (!this.#makeRoom(before + most) && !this.#makeRoom(before + least)) return null;
      more = Math.min(most, allBytes - this.#main - before);
      leader = held;
    }
    this.change(held, { bytes: bytes + more, use: 'moves', pool: null });
    this.#leader = leader;
    return 'taken';
  }

  /** How much stays free for the one that goes before the others of unknown length. */
  get #longestBytes(): number {
    const { allBytes } = this.#limits;
    return Math.min(SCAN_BYTES_MAX, Math.max(0, Math.floor(((allBytes - this.#resting) * 2) / 3)));
  }

  /** Takes what others can spare, as far as that is needed. False: it does not do, and they keep it. */
  #makeRoom(bytes: number): boolean {
    const { allBytes } = this.#limits;
    if (this.#main - this.#sparing + bytes > allBytes) return false;
    for (const reservation of this.#spare.values()) {
      if (this.#main + bytes <= allBytes) break;
      reservation.deref()?.taken();
    }
    return this.#main + bytes <= allBytes;
  }

  #add({ use, pool }: ReservedBytes, bytes: number): void {
    if (use === 'passes') this.#passing += bytes;
    else this.#main += bytes;
    if (use === 'spare') this.#sparing += bytes;
    if (use !== 'rests') return;
    this.#resting += bytes;
    if (pool === null) return;
    const ofPool = (this.#restingBy.get(pool) ?? 0) + bytes;
    if (ofPool === 0) this.#restingBy.delete(pool);
    else this.#restingBy.set(pool, ofPool);
  }
}

function ignore(): void {
  // Nobody has to know.
}
