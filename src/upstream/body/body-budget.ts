import { BodyLine } from './body-line.ts';
import type { AbortSource } from '../../runtime/async.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;

export interface BodyLimits {
  /** Total below which no body waits and none is rejected. */
  readonly freeBytes: number;
  /**
   * Limit for queued bodies, whose calls wait for a slot. Above `freeBytes`, the difference is for heads and for groups
   * with few queued bytes. One group cannot fill it, so a saturated group leaves room for the others.
   */
  readonly restingBytes: number;
  /** Limit for the queued bodies of one group, above `freeBytes`. */
  readonly groupBytes: number;
  /**
   * Limit for all bodies except small in-transit ones. The part that queued bodies cannot use is for large bodies in
   * transit.
   */
  readonly allBytes: number;
  /** Limit for small bodies that are read or sent while nothing is free. Their calls may not wait for a slot. */
  readonly passingBytes: number;
  readonly smallBytes: number;
  /** Maximum size of a head, the part of a body that may always be read. */
  readonly headBytes: number;
}

/** Minimum for all bodies. A Cloudflare isolate gets this much of its 128 MB. */
export const BODY_MIB_MIN = 48;

/** Scales the limits to a total for all bodies. */
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
 * The limits of a Cloudflare isolate. Measured: a waiting call takes 10 KiB in addition to its body, and an idle
 * isolate takes 7 MiB.
 */
export const BODY_LIMITS = bodyLimits(BODY_MIB_MIN);

/**
 * Maximum bytes that are read of one body in search of its model. It is below every budget, so that one body always
 * fits.
 */
export const SCAN_BYTES_MAX = 32 * MIB;

/** How long a small body waits to be read. Small bodies are read quickly, so a longer wait means a problem. */
const SMALL_PATIENCE_MS = 30_000;
/** How long a large body waits. Unread bytes cost nothing here, and sending them again is expensive for the caller. */
const LARGE_PATIENCE_MS = 240_000;
/** How long a body of unknown length waits to grow while it takes the room of small bodies. */
const SMALL_GROWING_MS = 2_000;

/**
 * Purpose for which a body is held. `moves`: it is read or sent. `passes`: a small body that is read or sent while
 * nothing is free. `rests`: it is queued, because its call waits for a slot or may do so at any time. `spare`: it was
 * sent, and is held only for another attempt.
 */
type Use = 'moves' | 'passes' | 'rests' | 'spare';

/** The bytes of a reservation. They are a separate object, so that the loss of the reservation can be noticed. */
interface ReservedBytes {
  bytes: number;
  use: Use;
  /** The pool whose queue the body is in. null if there is none, or the body is too small to be counted by pool. */
  pool: string | null;
}

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

  /** Whether others need its room: nothing is free, and it is larger than a head. */
  get isScarce(): boolean {
    return this.#budget.isScarce(this.bytes);
  }

  /** Releases all but `bytes`. Never acquires more. */
  keep(bytes: number): void {
    const { use, pool } = this.#held;
    if (bytes < this.bytes) this.#budget.change(this.#held, { bytes, use, pool });
  }

  /** Releases everything. Further calls have no effect. */
  release(): void {
    this.#budget.change(this.#held, { bytes: 0, use: 'moves', pool: null });
  }

  /** Acquires more bytes for a body of unknown length, in order of arrival. */
  grow(maxWaitMs: number, signal: AbortSource): Promise<'taken' | 'left' | 'crowded'> {
    return this.#budget.grow(this.#held, maxWaitMs, signal);
  }

  /** Marks the body as queued while its call waits for a slot of a pool. Returns false if there is no room for that. */
  rest(pool: string): boolean {
    return this.#budget.rest(this.#held, pool);
  }

  /** Ends the queued state when its call no longer waits. */
  move(): void {
    if (this.#held.use !== 'rests') return;
    this.#budget.change(this.#held, { bytes: this.bytes, use: 'moves', pool: null });
  }

  /**
   * Makes its room available to others. `onTaken` is called when they take it, which is immediately if nothing is free.
   */
  spare(onTaken: () => void): void {
    this.#onTaken = onTaken;
    this.#budget.spare(this, this.#held);
  }

  /** Ends `spare`, for another attempt. */
  unspare(): void {
    if (this.#held.use !== 'spare') return;
    this.#budget.change(this.#held, { bytes: this.bytes, use: 'moves', pool: null });
  }

  taken(): void {
    this.#onTaken();
    this.release();
  }
}

/**
 * Memory budget for all request bodies of an isolate, shared by its requests. A reservation that was lost with a failed
 * request is released when it is garbage-collected.
 */
export class BodyBudget {
  readonly #limits: BodyLimits;
  /** Bytes of every use except `passes`. */
  #main = 0;
  #passing = 0;
  #resting = 0;
  #sparing = 0;
  readonly #restingBy = new Map<string, number>();
  /** Weak, so that a lost reservation can be collected. In the order in which they were spared. */
  readonly #spare = new Map<ReservedBytes, WeakRef<Reservation>>();
  /** The body of unknown length that may grow before the others. null if there is none. */
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

  get isLargeWaiting(): boolean {
    return !this.#large.isEmpty;
  }

  isSmall(bytes: number): boolean {
    return bytes <= this.#limits.smallBytes;
  }

  isScarce(bytes: number): boolean {
    return bytes > this.#limits.headBytes && this.bytesHeld > this.#limits.freeBytes;
  }

  /** Counts bytes without checking any limit. */
  count(bytes: number, use: Use = 'moves'): Reservation {
    const held: ReservedBytes = { bytes, use, pool: null };
    const reservation = new Reservation(this, held);
    this.#add(held, bytes);
    this.#lost.register(reservation, held);
    return reservation;
  }

  /** Reserves bytes if they are free, and returns null otherwise. A head is always free. */
  tryTake(bytes: number): Reservation | null {
    const { freeBytes, headBytes } = this.#limits;
    if (bytes <= headBytes) return this.count(bytes);
    // Room that is free now is reserved until the call is served. Other bodies must not take it while this one is read.
    return this.bytesHeld + bytes <= freeBytes ? this.count(bytes, 'rests') : null;
  }

  /** Reserves bytes as soon as there is room, in order of arrival. Small and large bodies have separate lines. */
  async take(
    bytes: number,
    maxWaitMs: number,
    signal: AbortSource,
  ): Promise<Reservation | 'left' | 'crowded'> {
    const { allBytes } = this.#limits;
    if (bytes > allBytes) throw new RangeError(`${bytes} bytes exceed the limit of ${allBytes}`);
    const isSmall = this.isSmall(bytes);
    const patienceMs = Math.min(maxWaitMs, isSmall ? SMALL_PATIENCE_MS : LARGE_PATIENCE_MS);
    const line = isSmall ? this.#small : this.#large;
    const now = (aheadBytes: number): Reservation | null =>
      this.tryTake(bytes) ??
      (isSmall ? this.#pass(bytes, aheadBytes) : this.#move(bytes, aheadBytes));
    return line.wait(bytes, now, patienceMs, signal);
  }

  /**
   * Doubles the reservation of a body of unknown length, as long as most of the room stays available to one such body.
   * Otherwise the first in line becomes the leader, and takes that room. If all of them grew at the same time, each
   * could end up waiting for room that the others hold.
   */
  async grow(
    held: ReservedBytes,
    maxWaitMs: number,
    signal: AbortSource,
  ): Promise<'taken' | 'left' | 'crowded'> {
    const isSmall = held.use === 'passes';
    // A growing body takes the room of small bodies in the meantime.
    const patienceMs = Math.min(maxWaitMs, isSmall ? SMALL_GROWING_MS : LARGE_PATIENCE_MS);
    const now = (aheadBytes: number): 'taken' | null => this.#grow(held, aheadBytes);
    if (held === this.#leader && now(0) !== null) return 'taken';
    return this.#large.wait(Math.max(held.bytes, this.#longestBytes), now, patienceMs, signal);
  }

  change(held: ReservedBytes, to: ReservedBytes): void {
    this.#add(held, -held.bytes);
    if (held === this.#leader) this.#leader = null;
    if (held.use === 'spare') this.#spare.delete(held);
    held.bytes = to.bytes;
    held.use = to.use;
    held.pool = to.pool;
    this.#add(held, held.bytes);
  }

  /** Marks bytes as queued for a pool, if there is room for that. */
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

  /** Makes the room of a reservation available to others. */
  spare(reservation: Reservation, held: ReservedBytes): void {
    if (held.bytes <= this.#limits.headBytes) return;
    if (this.isScarce(held.bytes)) return reservation.taken();
    this.change(held, { bytes: held.bytes, use: 'spare', pool: null });
    this.#spare.set(held, new WeakRef(reservation));
  }

  #pass(bytes: number, aheadBytes: number): Reservation | null {
    const passing = this.#passing + bytes + aheadBytes;
    return passing <= this.#limits.passingBytes ? this.count(bytes, 'passes') : null;
  }

  #move(bytes: number, aheadBytes: number): Reservation | null {
    // No room is kept free for a body that does not fit beside the queued ones. Those may wait for minutes.
    const keptBytes = this.#resting + aheadBytes <= this.#limits.allBytes ? aheadBytes : 0;
    return this.#makeRoom(bytes + keptBytes) ? this.count(bytes) : null;
  }

  #grow(held: ReservedBytes, aheadBytes: number): 'taken' | null {
    const { allBytes, smallBytes } = this.#limits;
    const { bytes, use } = held;
    const left = SCAN_BYTES_MAX - bytes;
    // The bytes that it holds in the room of small bodies move with it.
    const before = use === 'passes' ? bytes : 0;
    let more = Math.min(bytes, left);
    let leader = this.#leader;
    if (!this.#makeRoom(before + more + Math.max(aheadBytes, this.#longestBytes))) {
      if (held !== leader && (leader !== null || aheadBytes > 0)) return null;
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

  /** How many bytes stay free for the leading body of unknown length. */
  get #longestBytes(): number {
    const { allBytes } = this.#limits;
    return Math.min(SCAN_BYTES_MAX, Math.max(0, Math.floor(((allBytes - this.#resting) * 2) / 3)));
  }

  /** Takes as much spare room as needed. Returns false, and takes none, if that is not enough. */
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
  // No action is needed.
}
