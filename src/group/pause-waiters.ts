type Answer = (isOpen: boolean) => void;

/** Pause waiters: calls parked until the group is not paused, as many as may wait in its queue at the most. */
export class PauseWaiters {
  /** When each is answered, whether the group has opened or not. */
  readonly #parked = new Map<Answer, number>();
  readonly #max: number;
  #nextDueAt = Infinity;

  constructor(max: number) {
    this.#max = max;
  }

  /** Resolves with true when the group opens, with false after `sliceMs`, or at once if there are too many. */
  park(sliceMs: number, now: number): Promise<boolean> {
    if (this.#parked.size >= this.#max) return Promise.resolve(false);
    const dueAt = now + sliceMs;
    this.#nextDueAt = Math.min(this.#nextDueAt, dueAt);
    return new Promise((resolve) => this.#parked.set(resolve, dueAt));
  }

  get isAwaited(): boolean {
    return this.#parked.size > 0;
  }

  /** No slice ends before this. */
  nextDueAt(): number {
    return this.#nextDueAt;
  }

  open(): void {
    for (const answer of this.#parked.keys()) answer(true);
    this.#parked.clear();
    this.#nextDueAt = Infinity;
  }

  /** Answers those whose slice is over. */
  answerDue(now: number): void {
    if (now < this.#nextDueAt) return;
    this.#nextDueAt = Infinity;
    for (const [answer, dueAt] of this.#parked) {
      if (dueAt > now) {
        this.#nextDueAt = Math.min(this.#nextDueAt, dueAt);
        continue;
      }
      this.#parked.delete(answer);
      answer(false);
    }
  }
}
