import type { Schedule, Timers } from '../runtime/async.ts';

/** When the shell acts next: answers that leave together after their writes, and the timer. */

/** Delay of writes that no response depends on, so that several share one. */
const DELAY_MS = 50;

/**
 * Combines the decisions of a turn into one write, and delays the answers that depend on it.
 *
 * The first answer leaves at once. Answers that follow while it is on its way leave together on the next turn. A commit
 * for each answer would block the process and reduce throughput by a factor of 2 to 20. A message for each would reduce
 * it by a fifth.
 */
export class Batch {
  readonly #write: (isBound: boolean) => void;
  /** Whether the pool is stored. If not, no answer waits for a write and no timer is set. */
  readonly #isStored: boolean;
  readonly #isCovered: () => boolean;
  readonly #after: Schedule;
  #answers: (() => void)[] = [];
  /** Whether one of the answers waits for a write. */
  #isAwaited = false;
  /** Whether the bound must be written at the end of the turn. */
  #isDue = false;
  /** Whether the bound must be part of the next delayed write. */
  #isDueSoon = false;
  #turnIsOpen = false;
  #cancel: (() => void) | null = null;

  /**
   * @param write writes everything pending, with or without the bound
   * @param isCovered whether the bound on disk covers all granted slots
   */
  constructor(
    write: (isBound: boolean) => void,
    isCovered: () => boolean,
    isStored: boolean,
    after: Schedule,
  ) {
    this.#write = write;
    this.#isCovered = isCovered;
    this.#after = after;
    this.#isStored = isStored;
  }

  /** Runs `answer` with the others of its turn. If `isCovered`, it waits for no write. */
  answer(answer: () => void, isCovered: boolean): void {
    this.#answers.push(answer);
    this.#isAwaited ||= !isCovered;
  }

  /** Resolves after the next write. */
  written(): Promise<void> {
    return new Promise((resolve) => {
      this.answer(resolve, false);
      this.settle();
    });
  }

  /** Ends a step. Answers leave now, unless others have left in this turn. */
  settle(): void {
    if (this.#turnIsOpen || (this.#answers.length === 0 && !this.#isDue)) return;
    this.#openTurn(false);
  }

  /** Writes at the end of this turn, so that no answer waits for it. */
  ahead(): void {
    this.#isDue = true;
  }

  /** Writes after a short delay, together with other changes. */
  soon(isBound: boolean): void {
    this.#isDueSoon ||= isBound;
    if (this.#isStored) this.#cancel ??= this.#after(DELAY_MS, () => this.#writeNow());
    else this.#writeNow();
  }

  #openTurn(isLater: boolean): void {
    this.#flush(isLater);
    if (!this.#isStored) return;
    this.#turnIsOpen = true;
    this.#after(0, () => {
      this.#turnIsOpen = false;
      if (this.#answers.length > 0 || this.#isDue) this.#openTurn(true);
    });
  }

  /** @param isLater whether earlier answers of this turn have already left */
  #flush(isLater: boolean): void {
    // The process may have been suspended since they were covered, and another instance may have started meanwhile.
    if (isLater && this.#answers.length > 0) this.#isAwaited ||= !this.#isCovered();
    if (this.#isAwaited || (isLater && this.#isDue)) this.#writeNow();
    const answers = this.#answers;
    this.#answers = [];
    for (const answer of answers) answer();
  }

  #writeNow(): void {
    const isBound = this.#isAwaited || this.#isDue || this.#isDueSoon;
    this.#cancel?.();
    this.#cancel = null;
    this.#isAwaited = false;
    this.#isDue = false;
    this.#isDueSoon = false;
    this.#write(isBound);
  }
}

/** One timer for everything that is due, because the runtime allows 10,000 timers and every waiter has a deadline. */
export class WakeTimer {
  readonly #timers: Timers;
  readonly #wake: () => void;
  #cancel: (() => void) | null = null;
  #at = Infinity;

  constructor(timers: Timers, wake: () => void) {
    this.#timers = timers;
    this.#wake = wake;
  }

  /**
   * Wakes no later than `at`. An earlier requested time stays in force, which is cheaper than setting the timer again.
   * Infinity means that nothing is due.
   */
  arm(at: number): void {
    this.#timers.check();
    if (at === Infinity) this.#disarm();
    if (at >= this.#at) return;
    this.#disarm();
    this.#at = at;
    this.#cancel = this.#timers.after(at - this.#timers.clock.now(), this.#wake);
  }

  /** Clears the timer at or after its time. Returns its delay in milliseconds, or null if it is not due. */
  takeOver(): number | null {
    const lateMs = this.#timers.clock.now() - this.#at;
    if (lateMs < 0) return null;
    this.#disarm();
    return lateMs;
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#at = Infinity;
  }
}
