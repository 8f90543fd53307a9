/** Calls that are parked until the group is not paused. */
export class Openings {
  readonly #parked = new Set<(isOpen: boolean) => void>();

  /** Resolves with true when the group opens, with false after `sliceMs`. */
  park(sliceMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => answer(false), sliceMs);
      const answer = (isOpen: boolean): void => {
        clearTimeout(timer);
        this.#parked.delete(answer);
        resolve(isOpen);
      };
      this.#parked.add(answer);
    });
  }

  get isAwaited(): boolean {
    return this.#parked.size > 0;
  }

  open(): void {
    for (const answer of this.#parked) answer(true);
  }
}
