import type { Schedule } from '../runtime/call-clock.ts';

/** Delay of writes that no response depends on, so that several share one. */
const DELAY_MS = 50;

/**
 * Gathers what a turn decides into one write, and lets nobody hear of what waits for it before. The first answer
 * leaves at once, those that come while that is on its way together on the next turn: a commit for each
 * would block the process and cost 2 to 20 times the throughput, and a message for each a fifth more.
 */
export class Batch {
  readonly #write: (isBound: boolean) => void;
  /** False: nothing is written, so nobody waits for it and no timer is set. */
  readonly #isStored: boolean;
  readonly #isCovered: () => boolean;
  readonly #after: Schedule;
  #answers: (() => void)[] = [];
  /** One of the answers waits for a write. */
  #isAwaited = false;
  /** The bound is to be written at the end of the turn. */
  #isDue = false;
  /** The bound is to be written with what is written within a moment. */
  #isDueSoon = false;
  #turnIsOpen = false;
  #cancel: (() => void) | null = null;

  /**
   * @param write writes all that there is to write now, the bound among it or not
   * @param isCovered tells whether all that was handed out is covered by what is on disk
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

  /** Runs `answer` with the others of its turn; `isCovered`: it waits for no write. */
  answer(answer: () => void, isCovered: boolean): void {
    this.#answers.push(answer);
    this.#isAwaited ||= !isCovered;
  }

  /** Resolves behind a write. */
  written(): Promise<void> {
    return new Promise((resolve) => {
      this.answer(resolve, false);
      this.settle();
    });
  }

  /** Ends a step: answers now, unless others have left in this turn. */
  settle(): void {
    if (this.#turnIsOpen || (this.#answers.length === 0 && !this.#isDue)) return;
    this.#openTurn(false);
  }

  /** Writes once this turn is over, so that nobody waits for it. */
  ahead(): void {
    this.#isDue = true;
  }

  /** Writes within a moment, together with whatever else comes by then. */
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

  /** @param isLater the answers that others had to leave before have left */
  #flush(isLater: boolean): void {
    // The process may have been held up since they were covered, and another instance may have come meanwhile.
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
