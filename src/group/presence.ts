import type { InstantMs } from '../core/words/ids.ts';
import { pause } from '../runtime/background.ts';
import type { Schedule } from '../runtime/call-clock.ts';

/** How long after a message that failed the next one is sent, and how many are sent at the end of a window. */
const AGAIN_MS = 1_000;
const ATTEMPTS = 3;

interface PresenceParts {
  readonly now: () => InstantMs;
  readonly after: Schedule;
  /** Whether somebody holds or awaits a slot here, or the end of a pause. */
  readonly isInUse: () => boolean;
  /** How long nobody has used the pool, by what instances before wrote, too. */
  readonly idleMs: () => number;
  /** Whether the directory keeps what the pool says. */
  readonly isKept: () => boolean;
  readonly windowMs: number;
  /** Has the object woken at the end of a window, also if it is no more in memory by then. Null: no more. */
  readonly setAlarm: (at: number | null) => void;
  /** Tells the directory that the pool is in use, and takes over what it answers. False: in vain. */
  readonly wake: () => Promise<boolean>;
  /** Tells the directory that the pool rests, which ends windows up to this one. */
  readonly rest: (window: number) => Promise<void>;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/**
 * Tells the directory when the pool is in use, at most once in a window, and at the end of one that nobody has used it for
 * long. In a window the directory tells the pool of changes; one that rests reads it before it takes a newcomer.
 *
 * That a window is open is known by messages and by the alarm for its end, not by a clock: it opens when the directory has
 * answered, and is over before it is told so. A window is named by its end, and later ones have larger names.
 */
export class Presence {
  readonly #parts: PresenceParts;
  /** The end of the window. Null: the pool rests, or nobody knows. */
  #endsAt: number | null = null;
  /** The last window that was asked for. */
  #asked = -Infinity;
  /** Windows up to this one are over. */
  #over = -Infinity;
  #isSending = false;
  #againAt = -Infinity;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
  }

  /** Whether the directory tells this pool of changes. */
  get isInWindow(): boolean {
    return this.#endsAt !== null;
  }

  /**
   * Goes on in the window that an instance before has opened, whose alarm is set still. An alarm that is due may have been
   * on its way already.
   */
  recall(alarmAt: number | null): void {
    const { now, windowMs } = this.#parts;
    if (alarmAt === null || alarmAt <= now()) return;
    // The wall clock was set back since the alarm was set, which would come as much later.
    if (alarmAt > now() + windowMs) return this.#open(now() + windowMs);
    this.#endsAt = alarmAt;
    this.#asked = alarmAt;
  }

  /** Names the window that a message asks for. */
  nextWindow(): number {
    const { now, windowMs } = this.#parts;
    this.#asked = Math.max(now() + windowMs, this.#asked + 1);
    return this.#asked;
  }

  /** Notes that the directory knows of a window, and has told what holds. The answer may be a late one. */
  opened(window: number): void {
    if (window > Math.max(this.#over, this.#endsAt ?? this.#parts.now())) this.#open(window);
  }

  /** Notes an event. `isNews`: it may have changed what the directory keeps of a pool that rests. */
  note(isNews: boolean): void {
    const { isInUse, isKept, now, wake, waitUntil } = this.#parts;
    if (!isKept()) {
      this.#leave();
      return;
    }
    if (this.#isOpen() || this.#isSending || now() < this.#againAt) return;
    if (!isNews && !isInUse()) return;
    this.#isSending = true;
    const sent = wake().then((isHeard) => {
      this.#isSending = false;
      if (!isHeard) this.#againAt = now() + AGAIN_MS;
    });
    waitUntil(sent);
  }

  /** Says at the end of a window whether the pool is in use still. */
  async end(): Promise<void> {
    const { isInUse, idleMs, isKept, windowMs } = this.#parts;
    if (!isKept()) return this.#leave();
    return isInUse() || idleMs() < windowMs / 2 ? this.#goOn() : this.#rest();
  }

  async #goOn(): Promise<void> {
    for (let attempts = 1; attempts <= ATTEMPTS; attempts += 1) {
      if (await this.#parts.wake()) return;
      if (attempts < ATTEMPTS) await pause(AGAIN_MS, this.#parts.after);
    }
    // Nobody has told the directory that the window is over, so it counts the pool as in use.
    if (this.#endsAt !== null) this.#open(this.nextWindow());
  }

  async #rest(): Promise<void> {
    const { now, windowMs, rest } = this.#parts;
    // An instance that began with the alarm does not know the window: it ended just now, and a later one ends after this.
    const window = this.#endsAt ?? now() + windowMs / 2;
    // From now on: it may have arrived though its answer is lost.
    this.#endsAt = null;
    this.#over = window;
    this.#asked = Math.max(this.#asked, window);
    for (let attempts = 1; attempts <= ATTEMPTS && !this.isInWindow; attempts += 1) {
      try {
        return await rest(window);
      } catch {
        if (attempts < ATTEMPTS) await pause(AGAIN_MS, this.#parts.after);
      }
    }
  }

  #open(window: number): void {
    this.#endsAt = window;
    this.#parts.setAlarm(window);
  }

  /** Whether the window is open by the pool's own clock too: the alarm for its end may be late. */
  #isOpen(): boolean {
    return this.#endsAt !== null && this.#parts.now() < this.#endsAt;
  }

  #leave(): void {
    if (this.#endsAt === null) return;
    this.#endsAt = null;
    this.#parts.setAlarm(null);
  }
}
