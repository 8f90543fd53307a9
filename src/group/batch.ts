/** How long what nobody waits for waits for company. */
const DELAY_MS = 50;

/**
 * Gathers what a turn decides into one write, and lets nobody hear of what waits for it before. The first answer
 * is written for at once, those that come while that is on its way together on the next turn: a commit for each
 * would block the process and cost 2 to 20 times the throughput.
 */
export class Batch {
  readonly #write: (isBound: boolean) => void;
  /** False: nothing is written, so nobody waits for it and no timer is set. */
  readonly #isStored: boolean;
  #answers: (() => void)[] = [];
  #turnIsOpen = false;
  /** The bound is to be written with the next write, and right after this turn. */
  #isBound = false;
  #isDue = false;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** @param write writes all that there is to write now, the bound among it or not */
  constructor(write: (isBound: boolean) => void, isStored: boolean) {
    this.#write = write;
    this.#isStored = isStored;
  }

  /** Runs `answer` behind the next write. */
  afterWrite(answer: () => void): void {
    this.#answers.push(answer);
  }

  /** Resolves behind a write. */
  written(): Promise<void> {
    return new Promise((resolve) => {
      this.afterWrite(resolve);
      this.settle();
    });
  }

  /** Ends a turn: writes now if somebody waits for it and no write was made in this turn yet. */
  settle(): void {
    if (this.#turnIsOpen) return;
    if (this.#answers.length > 0) this.#openTurn(true);
    else if (this.#isDue) this.#openTurn(false);
  }

  /** Writes once this turn is over, so that nobody of it waits, nor of the next. */
  ahead(): void {
    this.#isBound = true;
    this.#isDue = true;
  }

  /** Writes within a moment, together with whatever else comes by then. */
  soon(isBound: boolean): void {
    this.#isBound ||= isBound;
    if (!this.#isStored) return this.#flush();
    this.#timer ??= setTimeout(() => this.#flush(), DELAY_MS);
  }

  /** Lets what is decided until the next turn share a write: one of now, or that one alone. */
  #openTurn(isNow: boolean): void {
    if (!this.#isStored) return this.#flush();
    this.#turnIsOpen = true;
    if (isNow) this.#flush();
    setTimeout(() => {
      this.#turnIsOpen = false;
      if (this.#answers.length > 0) this.#openTurn(true);
      else if (this.#isDue) this.#flush();
    }, 0);
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const answers = this.#answers;
    const isBound = this.#isBound || answers.length > 0;
    this.#answers = [];
    this.#isBound = false;
    this.#isDue = false;
    this.#write(isBound);
    for (const answer of answers) answer();
  }
}
