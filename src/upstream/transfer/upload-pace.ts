import { steadyClock, type Schedule } from '../../runtime/async.ts';

export interface UploadPaceOptions extends Pick<HoldLimits, 'stalledMs' | 'uploadMinBytesPerS'> {
  readonly after: Schedule;
  /** Called when the caller has fallen too far behind. */
  readonly onOver: () => void;
  /** Called when Headgate starts to wait for the caller, and when a piece has arrived. */
  readonly onWait?: () => void;
  readonly onPiece?: () => void;
}

/**
 * Watches how fast a caller sends its body while its call holds a slot. Only time spent waiting for the caller counts,
 * not time in which the upstream reads.
 *
 * It is a leaky bucket of time. Waiting drains it, and each byte refills it by its time at the minimum rate. It holds
 * at most `stalledMs`, so a caller that stops is cut after that time, whatever it sent before. A caller that sends only
 * drips is cut a little later. A slow caller may pause if it catches up.
 */
export class UploadPace {
  readonly #options: UploadPaceOptions;
  readonly #mostMs: number;
  #leftMs: number;
  /** Start of the current wait. null if the caller is not being waited for. */
  #waitsSince: number | null = null;
  #callOff: (() => void) | null = null;

  constructor(options: UploadPaceOptions) {
    this.#options = options;
    this.#mostMs = options.stalledMs ?? Infinity;
    this.#leftMs = this.#mostMs;
  }

  get isWaiting(): boolean {
    return this.#waitsSince !== null;
  }

  /** Starts to wait for the next piece. */
  begin(): void {
    const now = steadyClock.now();
    this.#waitsSince = now;
    this.#options.onWait?.();
    // A timer that is already set fires no later than this one would.
    if (this.#callOff === null && this.#leftMs < Infinity) this.#arm(now + this.#leftMs);
  }

  /** Called when a piece or the end has arrived. */
  got(bytes: number): void {
    if (this.#waitsSince === null) return;
    const { uploadMinBytesPerS: rate, onPiece } = this.#options;
    const waitedMs = steadyClock.now() - this.#waitsSince;
    const refillMs = rate > 0 ? (bytes * 1_000) / rate : bytes > 0 ? Infinity : 0;
    this.#leftMs = Math.min(this.#mostMs, this.#leftMs - waitedMs + refillMs);
    this.#waitsSince = null;
    onPiece?.();
  }

  stop(): void {
    this.got(0);
    this.#callOff?.();
  }

  #arm(at: number): void {
    this.#callOff = this.#options.after(at - steadyClock.now(), () => this.#check(at));
  }

  #check(at: number): void {
    steadyClock.reach(at);
    this.#callOff = null;
    if (this.#waitsSince === null) return;
    const endsAt = this.#waitsSince + this.#leftMs;
    if (endsAt <= steadyClock.now()) this.#options.onOver();
    else this.#arm(endsAt);
  }
}

export interface HoldLimits {
  /** Longest silence of the upstream's body. null limits only the wait for its headers. */
  readonly idleMs: number | null;
  /**
   * Longest time for which the caller may read nothing of the response, and by which its body may fall behind
   * `uploadMinBytesPerS`. null means no limit.
   */
  readonly stalledMs: number | null;
  /** Minimum rate at which the caller sends its body. 0 allows any rate, but no pause of `stalledMs`. */
  readonly uploadMinBytesPerS: number;
  readonly maxHoldMs: number;
  /**
   * Longest time for which work that continues at the upstream after the response holds the slots. 0 releases them with
   * the response.
   */
  readonly maxRunMs: number;
}
