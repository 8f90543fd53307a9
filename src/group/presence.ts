import { RESTS_AFTER_MS } from '../contract/rpc/presence-rpc.ts';
import type { InstantMs } from '../core/words/ids.ts';

/** How long after a message that failed the next one is sent. */
const AGAIN_MS = 1_000;

interface PresenceParts {
  readonly now: () => InstantMs;
  /** Whether somebody holds or awaits a slot here, or the end of a pause. */
  readonly isInUse: () => boolean;
  /** Whether the directory keeps what the pool says. */
  readonly isKept: () => boolean;
  /** When an instance before said last that the pool rests. Null: never. */
  readonly restedAt: number | null;
  /** How long after that nobody may have told the pool of changes. 0: at once, and after the end of a process. */
  readonly readsAfterMs: number;
  /** Keeps when the pool said that it rests. */
  readonly remember: (at: number) => void;
  /** Tells the directory that the pool is in use, and takes over what it answers. False: in vain. */
  readonly wake: () => Promise<boolean>;
  readonly rest: () => Promise<void>;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/**
 * Tells the directory when the pool is in use, and when nobody has used it for some seconds. What it said last is shown
 * of a pool that rests, and changes are not told to it, so that nothing but a call wakes it.
 */
export class Presence {
  readonly #parts: PresenceParts;
  /** The last word to the directory; null: none of this instance. */
  #told: 'in_use' | 'resting' | null = null;
  #isSending = false;
  #againAt = -Infinity;
  #idleSince: InstantMs | null = null;
  /** Whether a timer looks whether the pool rests. */
  #isTimed = false;
  #restedAt: number | null;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
    this.#restedAt = parts.restedAt;
  }

  /** Whether the directory knows by this instance that the pool is in use. */
  get isKnown(): boolean {
    return this.#told === 'in_use';
  }

  /** Tells whether the pool may have been left alone with a change. */
  get mayBeUntold(): boolean {
    if (this.#told === 'in_use') return false;
    const { readsAfterMs, now } = this.#parts;
    if (this.#restedAt === null || readsAfterMs === 0) return readsAfterMs === 0;
    const restedMs = now() - this.#restedAt;
    return restedMs < 0 || restedMs >= readsAfterMs;
  }

  /** Notes an event. `isNews`: it may have changed what the directory keeps of a pool that rests. */
  note(isNews: boolean): void {
    const { isInUse, isKept } = this.#parts;
    if (isInUse()) {
      this.#idleSince = null;
      if (this.#told !== 'in_use' && isKept()) this.#wake();
      return;
    }
    this.#idleSince ??= this.#parts.now();
    if (isNews && this.#told === 'resting') this.#told = null;
    if (this.#told !== 'resting' && isKept()) this.#arm();
  }

  /** Notes that the directory knows of this instance, and has told it what holds. */
  woken(): void {
    this.#told = 'in_use';
    this.#idleSince ??= this.#parts.isInUse() ? null : this.#parts.now();
    if (this.#idleSince !== null) this.#arm();
  }

  #wake(): void {
    const { now, wake } = this.#parts;
    if (this.#isSending || now() < this.#againAt) return;
    this.#send(wake);
  }

  #arm(): void {
    if (!this.#isTimed) this.#setTimer(RESTS_AFTER_MS);
  }

  #setTimer(ms: number): void {
    this.#isTimed = true;
    setTimeout(() => this.#fire(), ms);
  }

  #fire(): void {
    this.#isTimed = false;
    const { now, rest, remember, readsAfterMs, isKept } = this.#parts;
    if (this.#idleSince === null || this.#told === 'resting' || !isKept()) return;
    const leftMs = this.#idleSince + RESTS_AFTER_MS - now();
    if (leftMs > 0 || this.#isSending) {
      this.#setTimer(Math.max(leftMs, AGAIN_MS));
      return;
    }
    // From now on: it may have arrived though its answer is lost.
    this.#told = 'resting';
    if (readsAfterMs > 0) {
      this.#restedAt = now();
      remember(this.#restedAt);
    }
    this.#send(async () => {
      await rest();
      return true;
    });
  }

  #send(message: () => Promise<boolean>): void {
    this.#isSending = true;
    const failed = (): void => {
      this.#told = null;
      this.#againAt = this.#parts.now() + AGAIN_MS;
    };
    const sent = message()
      .then((isHeard) => (isHeard ? undefined : failed()), failed)
      .finally(() => {
        this.#isSending = false;
        // Whoever came meanwhile was told of by nobody.
        this.note(false);
      });
    this.#parts.waitUntil(sent);
  }
}
